/** The demonstration behind scripts/demo-ops: three weeks are lived through, then every question is asked twice. */
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { FakeHost } from './demo/fake-host.ts'
import { ask, questions } from './demo/ops-questions.ts'
import { live, NOW, thisMorning } from './demo/three-weeks.ts'

/** Windows before it are pruned on that morning. */
const PRUNED_AFTER = '14d'
const NEWEST_PRUNED = 'daily_news:2026-10-25-18:00'

const { values } = parseArgs({ options: { keep: { type: 'string' } } })
const folder = await mkdtemp(join(tmpdir(), 'runledger-ops-'))
let failed = 0
try {
  const host = new FakeHost(join(folder, 'ledger.db'))
  console.log(`${await live(host)} windows of six tasks in three weeks, while Berlin and New York changed their clocks. Now it is ${NOW.toISOString()}.\n`)
  const morning = await thisMorning(host)
  try {
    await show(host, 'missing', '--since', '21d')
    await show(host, 'check')
    await host.at(NOW, ['metrics'], 'cron') // As it did every minute before.
    await show(host, 'prune', '--older-than', PRUNED_AFTER, '--by', 'ann', '--because', 'retention')
    await show(host, 'why', 'import:2026-11-09-00:00')
    await show(host, 'why', 'invoices')
    for (const question of questions) {
      const { title, sql, command, agree } = await ask(host, question)
      check(agree, `${title}  SQL and runledger ${question.command.join(' ')} agree`, { sql, command })
    }
    await checkTheRest(host)
  } finally {
    await morning.end()
  }
  if (values.keep) await copyFile(host.file, values.keep)
} finally {
  await rm(folder, { recursive: true, force: true })
}
console.log(failed === 0 ? '\nevery question was answered twice, and alike' : `\n${failed} checks failed`)
process.exitCode = failed === 0 ? 0 : 1

/** What no statement answers: a window that was pruned stays so, and the ledger keeps its promises. */
async function checkTheRest(host: FakeHost): Promise<void> {
  const launch = ['exec', '--task', 'daily_news', '--cron', '0 18 * * *', '--tz', 'Asia/Shanghai', '--at', '2026-10-25T10:00:01Z', '--only-own', '--', 'echo', 'ran again']
  const again = await host.at(NOW, launch, 'tty')
  const verified = await host.at(NOW, ['verify'], 'tty')
  check(verified.code === 0, 'runledger verify finds no row that breaks a promise', verified)
  check(again.stdout === '' && /reason=pruned/.test(again.stderr), `the pruned window ${NEWEST_PRUNED} does not run again`, again)
}

async function show(host: FakeHost, ...args: string[]): Promise<void> {
  const { stdout, stderr } = await host.at(NOW, args, 'tty')
  console.log(`$ runledger ${args.join(' ')}\n${stdout}${stderr}`)
}

function check(holds: boolean, what: string, facts: unknown): void {
  console.log(`${holds ? 'ok  ' : 'FAIL'} ${what}`)
  if (holds) return
  failed++
  console.log(JSON.stringify(facts, null, 2))
}
