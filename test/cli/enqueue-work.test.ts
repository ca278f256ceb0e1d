/** The command line of queue mode: what was enqueued is worked off by a command, and stopping loses nothing. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { eachDatabase } from '../support/databases.ts'
import { fieldsOf, ledgerOn, sh } from '../support/cli.ts'

eachDatabase('enqueue and work', (db) => {
  const ledger = ledgerOn(db)

  it('a run is enqueued once by its key, and the command gets its payload and environment', async (t) => {
    const first = await ledger.run(['enqueue', '--task', 'invoice', '--key', 'order-42', '--payload', '{"order":42}', '--queue', 'mail', '--json'])
    const again = await ledger.run(['enqueue', '--task', 'invoice', '--key', 'order-42', '--queue', 'mail'])
    assert.deepEqual([first.code, JSON.parse(first.stdout)], [0, { task_key: 'invoice:order-42', duplicate: false }])
    assert.deepEqual([again.code, again.stdout], [0, 'duplicate: invoice:order-42 is there already\n'])

    const worker = ledger.start(t, ['work', '--task', 'invoice', '--queue', 'mail', '--poll', '100ms', ...sh('echo "$RUNLEDGER_TASK_KEY $RUNLEDGER_ATTEMPT $RUNLEDGER_FENCE $(cat)"')])
    await worker.line(/key=invoice:order-42 .*status=completed/)
    worker.process.kill('SIGTERM')
    const { code, stdout, stderr } = await worker.end

    assert.deepEqual([code, stdout.replaceAll(' ', '')], [0, 'invoice:order-4211{"order":42}\n'])
    assert.match(stderr, /status=connected[^]*status=stopping[^]*status=stopped/)
  })

  it('lines of stdin are enqueued together, or not at all', async () => {
    const bad = await ledger.run(['enqueue', '--task', 'lines', '--lines'], { stdin: '{"key":"a"}\n{"key":1}\n' })
    assert.deepEqual([bad.code, bad.stderr], [64, 'runledger: INVALID_OPTION: line 2: the key must be a text\n'])
    const good = await ledger.run(['enqueue', '--task', 'lines', '--lines'], { stdin: '{"key":"a","payload":[1]}\n\n{"key":"b"}\n{"key":"a"}\n' })
    assert.deepEqual([good.code, good.stdout], [0, '2 enqueued, 1 there already\n'])
    assert.equal((await ledger.sql(`select task_key from task_runs where task_name = 'lines'`)).length, 2)
  })

  it('a command that fails is tried again, and then the run has failed with its exit code', async (t) => {
    await ledger.run(['enqueue', '--task', 'bad', '--key', 'a', '--max-attempts', '2', '--backoff', '10ms'])
    const worker = ledger.start(t, ['work', '--task', 'bad', '--poll', '100ms', ...sh('echo trouble >&2; exit 3')])
    await worker.until((stderr) => (stderr.match(/status=failed/g) ?? []).length === 2, 'two failures')
    worker.process.kill('SIGTERM')
    await worker.end

    const [row] = await ledger.sql(`select status, failure_reason, exit_code, output_tail from task_runs where task_key = 'bad:a'`)
    assert.deepEqual([row!['status'], row!['failure_reason'], row!['exit_code'], String(row!['output_tail'])], ['failed', 'exit', 3, 'trouble\n'])
  })

  it('told to stop, it ends a command that takes too long and gives its run back; a second signal ends it at once', async (t) => {
    for (const [key, signals] of [['once', 1], ['twice', 2]] as const) {
      await ledger.run(['enqueue', '--task', 'slow', '--key', key])
      const worker = ledger.start(t, ['work', '--task', 'slow', '--poll', '100ms', '--stop-timeout', signals === 1 ? '100ms' : '1h', '--kill-after', '30s', ...sh('trap "" TERM; [ "$RUNLEDGER_TASK_KEY" = slow:once ] && trap "exit 7" TERM; echo begun >&2; while :; do sleep 0.05; done')])
      await worker.line(/^begun/)
      worker.process.kill('SIGTERM')
      if (signals === 2) {
        await worker.line(/status=stopping/)
        await new Promise((resolve) => setTimeout(resolve, 300)) // A second one within a moment is an echo of the first.
        worker.process.kill('SIGTERM')
      }
      const { code, stderr } = await worker.end

      assert.equal(code, 0)
      const released = stderr.split('\n').find((line) => /status=released/.test(line))
      assert.equal(fieldsOf(released ?? '')['key'], `slow:${key}`, stderr)
      const [row] = await ledger.sql(`select status, attempt from task_runs where task_key = 'slow:${key}'`)
      assert.deepEqual([row!['status'], row!['attempt']], ['pending', 0])
      await ledger.sql(`update task_runs set status = 'completed', finished_at = created_at, ready_queue = null where task_key = 'slow:${key}'`)
    }
  })

  it('bad input gets one line and exit code 64, and writes nothing', async () => {
    const bad: [string[], RegExp][] = [
      [['enqueue'], /task: is missing/],
      [['enqueue', '--task', 't', '--payload', '{'], /payload: is not JSON/],
      [['enqueue', '--task', 't', '--priority', 'high'], /priority: must be a whole number/],
      [['enqueue', '--task', 't', '--concurrency-key', 'a#2'], /concurrency-key: must not have a #/],
      [['enqueue', '--task', 't', '--at', '2030-01-01T00:00:00Z', '--delay', '5s'], /delay: cannot stand beside --at/],
      [['enqueue', '--task', 't', '--queue', 'a b'], /queue: .* may only have/],
      [['work', '--task', 't'], /work: needs a command after --/],
      [['work', '--task', 't', '--concurrency', '0', '--', 'true'], /concurrency: must be/],
      [['work', '--task', 't', 'word', '--', 'true'], /does not know what to do with "word"/],
    ]
    for (const [args, told] of bad) {
      const { code, stdout, stderr } = await ledger.run(args)
      assert.deepEqual([code, stdout], [64, ''], args.join(' '))
      assert.match(stderr, told)
    }
    assert.deepEqual(await ledger.sql(`select task_key from task_runs where task_name = 't'`), [])
  })
}, { atOnce: true })
