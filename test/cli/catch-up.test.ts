/** What the next launch does about windows that nobody ran: it tells of them, and runs those that the task wants caught up. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { fieldsOf, ledgerOn, newFolder, sh } from '../support/cli.ts'
import { eachDatabase } from '../support/databases.ts'
import { awayFromTheHour, hour } from '../support/hour.ts'

eachDatabase('catching up', (db) => {
  before(awayFromTheHour)

  const ledger = ledgerOn(db)
  const folder = newFolder()
  const path = (name: string) => join(folder, name)
  const lines = (name: string) => readFileSync(path(name), 'utf8').split('\n').slice(0, -1)
  const key = (task: string, back: number) => `${task}:${hour(back).toISOString().slice(0, 16).replace('T', '-')}`
  const exec = (task: string, ...flags: string[]) => ['exec', '--task', task, '--every', '1h', ...flags, ...sh(`echo $RUNLEDGER_TASK_KEY >>${path(task)}`)]
  const set = (task: string, ...flags: string[]) => ledger.run(['tasks', 'set', '--task', task, '--every', '1h', '--since', hour(4).toISOString(), ...flags])
  const gapOf = (stderr: string) => fieldsOf(stderr.split('\n').find((line) => / status=gap /.test(line)) ?? '')
  const missing = async (task: string) => (await ledger.run(['missing', '--task', task, '--json'])).stdout.split('\n').filter(Boolean).map((line) => (JSON.parse(line) as { task_key: string; state: string })).filter(({ state }) => state !== 'late').map(({ task_key, state }) => [task_key, state])

  describe('each with a task of its own', { concurrency: 3 }, () => {
    it('none: the launch tells of the gap, runs its own window only, and missing shows the gap', async () => {
      await set('none')
      const { code, stderr } = await ledger.run(exec('none'))

      const gap = gapOf(stderr)
      assert.deepEqual([code, gap['missed'], gap['queued'], gap['since'], gap['catch_up']], [0, '4', '0', hour(4).toISOString(), 'none'])
      assert.deepEqual(lines('none'), [key('none', 0)])
      assert.deepEqual(await missing('none'), [4, 3, 2, 1].map((back) => [key('none', back), 'missing']))
    })

    it('latest: the same launch runs the latest of them before its own window', async () => {
      await set('latest', '--catch-up', 'latest')
      const { stderr } = await ledger.run(exec('latest'))

      assert.deepEqual([gapOf(stderr)['missed'], gapOf(stderr)['queued']], ['4', '1'])
      assert.deepEqual(lines('latest'), [key('latest', 1), key('latest', 0)])
    })

    it('all: the same launch runs all of them, the oldest first, each under its own key; the next has none to tell', async () => {
      await set('all', '--catch-up', 'all')
      const first = await ledger.run(exec('all'))
      const second = await ledger.run(exec('all'))

      assert.equal(gapOf(first.stderr)['queued'], '4')
      assert.deepEqual(lines('all'), [4, 3, 2, 1, 0].map((back) => key('all', back)))
      assert.doesNotMatch(second.stderr, /status=gap/)
      assert.deepEqual(await missing('all'), [])
    })

    it('--only-own looks at nothing else', async () => {
      await set('own', '--catch-up', 'all')
      const { stderr } = await ledger.run(exec('own', '--only-own'))

      assert.doesNotMatch(stderr, /status=gap/)
      assert.deepEqual(lines('own'), [key('own', 0)])
    })

    it('case 18: launches of several hosts at one instant run every missed window once', async () => {
      await set('crowd', '--catch-up', 'all')
      await Promise.all(Array.from({ length: 4 }, () => ledger.run(exec('crowd', '--overlap', 'queue'))))

      assert.deepEqual(lines('crowd').toSorted(), [4, 3, 2, 1, 0].map((back) => key('crowd', back)).toSorted())
    })

    it('case 68: a window whose launch met an overlap is the policy\'s loss and not caught up', async (t) => {
      await set('busy', '--catch-up', 'all')
      const long = ledger.start(t, ['exec', '--task', 'busy', '--every', '1h', '--at', hour(4).toISOString(), '--only-own', ...sh(`while [ ! -e ${path('busy.go')} ]; do sleep 0.05; done`)])
      await long.line(/status=started/)
      assert.match((await ledger.run(['exec', '--task', 'busy', '--every', '1h', '--at', hour(3).toISOString(), '--only-own', '--', 'true'])).stderr, /reason=overlap/)
      writeFileSync(path('busy.go'), '')
      await long.end
      await ledger.run(exec('busy'))

      assert.deepEqual(lines('busy'), [2, 1, 0].map((back) => key('busy', back)))
    })

    it('a launch runs its job even when the gap cannot be looked at', async () => {
      await set('broken', '--catch-up', 'all')
      await ledger.sql(`update tasks set schedule = 'nonsense' where task_name = 'broken'`)
      const { code, stderr } = await ledger.run(exec('broken'))

      assert.equal(code, 0)
      assert.match(stderr, / status=gap_unknown error=/)
      assert.deepEqual(lines('broken'), [key('broken', 0)])
    })
  })
})
