/** What happens while the hosts of scripts/demo-cron work: two kills, the end of the launches, and the questions to the ledger. */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { printAccount } from './account.ts'
import { checks } from './checks.ts'

const [run = '', seconds = '', ...hosts] = process.argv.slice(2)
const first = Number(readFileSync(`${run}/first-window`, 'utf8'))
const ledger = new pg.Client(readFileSync(`${run}/database-url`, 'utf8').trim())
await ledger.connect()

const end = Date.now() + Number(seconds) * 1000
say(`three hosts (${hosts.map((host) => host.split('=')[0]).join(', ')}) launch daily_news and stock_sync at every full minute`)
await killIn('stock_sync', 1, 'the job', (pid) => `kill -KILL $(pgrep -P ${pid} php)`)
await killIn('daily_news', 3, 'the launcher', (pid) => `kill -KILL ${pid}`)
await sleep(end - Date.now())
writeFileSync(`${run}/stop`, '')
say('no more launches; waiting for what still runs')
await untilQuiet()
await printAccount(ledger)
process.exitCode = await ask()
await ledger.end()

/** Waits until the nth window of a task has been running for some seconds, then kills on the host that runs it. */
async function killIn(task: string, nth: number, whom: string, command: (pid: number) => string): Promise<void> {
  const window = new Date((first + 60 * nth) * 1000)
  for (;;) {
    const { rows } = await ledger.query<{ host: string; pid: string }>(
      `select host, pid from task_runs where task_name = $1 and window_start = $2 and status = 'processing' and started_at < clock_timestamp() - interval '6 seconds'`,
      [task, window],
    )
    const [holder] = rows
    if (holder) {
      inHost(holder.host, command(Number(holder.pid)))
      return say(`SIGKILL to ${whom} of ${task} (window ${clock(window)}) on ${holder.host}, pid ${holder.pid} there`)
    }
    if (Date.now() > end) throw new Error(`window ${clock(window)} of ${task} never ran for six seconds`)
    await sleep(500)
  }
}

/** Process ids are those of the host's own namespace, as they stand in the ledger. */
function inHost(name: string, command: string): void {
  const unshare = hosts.find((host) => host.startsWith(`${name}=`))?.split('=')[1]
  const init = readFileSync(`/proc/${unshare}/task/${unshare}/children`, 'utf8').trim()
  execFileSync('nsenter', ['--target', init, '--mount', '--pid', '--', 'sh', '-c', command])
}

/** Until nothing is processing or could still be taken up by a launcher that runs, three looks in a row. */
async function untilQuiet(): Promise<void> {
  const deadline = Date.now() + 150_000
  for (let quiet = 0; quiet < 3 && Date.now() < deadline; ) {
    await sleep(1000)
    const { rowCount } = await ledger.query(`select from task_runs where status in ('pending', 'processing')`)
    quiet = rowCount === 0 ? quiet + 1 : 0
  }
}

async function ask(): Promise<number> {
  let failed = 0
  for (const { promise, violations } of checks) {
    const { rows } = await ledger.query(violations)
    console.log(`${rows.length === 0 ? 'ok  ' : 'FAIL'} ${promise}`)
    for (const row of rows) console.log(`       ${JSON.stringify(row)}`)
    if (rows.length > 0) failed++
  }
  console.log(`\n${checks.length - failed} checks passed, ${failed} failed`)
  return failed === 0 ? 0 : 1
}

function say(what: string): void {
  console.log(`${clock(new Date())}  ${what}`)
}

function clock(at: Date): string {
  return at.toISOString().slice(11, 19)
}
