/** docs/queue.md: its commands and its code run, on every database, and do what they say. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, it } from 'node:test'
import type { Ledger, StandardSchema } from '../../src/index.ts'
import { openLedger } from '../../src/index.ts'
import { openStore } from '../../src/runtime/open-store.ts'
import type { Store } from '../../src/store/tables.ts'
import { openTestLedger } from '../../src/testing.ts'
import { ledgerOn } from '../support/cli.ts'
import { eachDatabase } from '../support/databases.ts'

const PAGE = readFileSync(new URL('../../docs/queue.md', import.meta.url), 'utf8')
const sh = [...PAGE.matchAll(/```sh\n([^`]+)```/g)].map(([, text]) => text!.trim())

/** The code under a name, types taken off, as a function of what it names. */
function code(name: string): (names: Record<string, unknown>, result: string) => Promise<unknown> {
  const [, text = ''] = new RegExp(`\`\`\`ts ${name}\\n([\\s\\S]*?)\`\`\``).exec(PAGE) ?? []
  assert.ok(text, `there is code named ${name}`)
  const plain = text.replace(/interface \w+ \{\n[\s\S]*?\n\}\n/g, '').replaceAll('<Tasks>', '')
  return (names, result) => {
    // eslint-disable-next-line typescript/no-implied-eval -- the page is ours, and it is to run as it stands
    const run = new Function(...Object.keys(names), `return (async () => {\n${plain}\nreturn ${result}\n})()`) as (...values: unknown[]) => Promise<unknown>
    return run(...Object.values(names))
  }
}

eachDatabase('docs/queue.md', (db) => {
  const cli = ledgerOn(db)
  let ledger: Ledger
  let store: Store
  before(async () => {
    store = await openStore(cli.url)
    ledger = await openLedger(cli.url, { heartbeats: 'loop' })
  })
  after(async () => {
    await ledger.close()
    await store.close()
  })
  const keys = async () => (await cli.sql(`select task_key from task_runs where task_name = 'send_invoice' order by task_key`)).map((row) => row['task_key'])

  it('the command enqueues, and so does the code, in a transaction too', async () => {
    const [, ...words] = sh[0]!.replaceAll("'", '').split(' ')
    assert.equal((await cli.run(words)).code, 0)
    await code('enqueue')({ ledger, orders: [1, 2] }, 'null')
    await cli.sql('create table orders (id integer)')
    const { db } = store
    await code('tx')({ ledger, db }, 'null')
    assert.deepEqual(await keys(), ['send_invoice:order-1', 'send_invoice:order-2', 'send_invoice:order-42', 'send_invoice:order-43', 'send_invoice:order-44'])
    assert.deepEqual((await cli.sql('select id from orders')).map((row) => row['id']), [44])
  })

  it('the worker of the page works them off, with an effect each', async () => {
    const sent: number[] = []
    const worker = (await code('work')({ ledger, mailer: { send: async ({ order }: { order: number }) => void sent.push(order) } }, 'worker')) as Awaited<ReturnType<Ledger['worker']>>
    while (worker.status().completed < 5) await new Promise((resolve) => setTimeout(resolve, 20))
    await worker.stop()
    assert.deepEqual(sent.toSorted((a, b) => a - b), [1, 2, 42, 43, 44])
    const [row] = await cli.sql(`select result from task_runs where task_key = 'send_invoice:order-1'`)
    assert.deepEqual(typeof row!['result'] === 'string' ? JSON.parse(row!['result']) : row!['result'], { mailed: 1 })
  })

  it('a ledger with types and a schema opens', async () => {
    const invoiceSchema: StandardSchema<{ order: number }> = { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value: value as { order: number } }) } }
    const opened = (await code('types')({ openLedger, url: cli.url, invoiceSchema }, 'ledger')) as Ledger
    assert.equal((await opened.enqueue('send_invoice', { key: 'order-1' })).duplicate, true)
    await opened.close()
  })
})

it('the test of the page passes', async () => {
  const codeUnderTest = (ledger: Ledger) => ledger.enqueue('send_invoice', { payload: { order: 45 } })
  const { completed, failed } = (await code('testing')({ openTestLedger, codeUnderTest }, '{ completed, failed }')) as { completed: string[]; failed: unknown[] }
  assert.deepEqual([completed.length, failed], [1, []])
})

it('every command of the page has the flags it is given, and every flag of its table is there', async () => {
  const { enqueueCommand } = await import('../../src/cli/enqueue.ts')
  const { workCommand } = await import('../../src/cli/work.ts')
  const flags = new Set([...Object.keys(enqueueCommand.options), ...Object.keys(workCommand.options)])
  for (const [, flag] of PAGE.matchAll(/`--([a-z-]+)`/g)) assert.ok(flags.has(flag!), flag)
  for (const line of sh) for (const [, flag] of line.split(' -- ')[0]!.matchAll(/--([a-z-]+)/g)) assert.ok(flags.has(flag!), flag)
})
