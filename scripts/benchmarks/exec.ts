/** How long `runledger exec -- true` takes on SQLite, beside the start of Node alone and beside flock(1). */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { median, shown } from './median.ts'

const ROUNDS = 60
const WARM_UP = 5

const folder = mkdtempSync(join(tmpdir(), 'bench-exec-'))
const cli = join(import.meta.dirname, '../../dist/bin/runledger.js')
const execOf = (...flags: string[]) => [process.execPath, cli, 'exec', '--task', 'bench', ...flags, '--', 'true']
const commands = {
  'node -e 0': [process.execPath, '-e', '0'],
  'flock -n FILE true': ['flock', '-n', join(folder, 'lock'), 'true'],
  'runledger exec --task T -- true': execOf(),
  'the same, --cron … --tz UTC': execOf('--cron', '* * * * * *'),
  'the same, --cron … --tz Asia/Shanghai': execOf('--cron', '* * * * * *', '--tz', 'Asia/Shanghai'),
}
type Name = keyof typeof commands

const times = Object.fromEntries(Object.keys(commands).map((name) => [name, []])) as unknown as Record<Name, number[]>
try {
  for (let round = -WARM_UP; round < ROUNDS; round++) {
    for (const name of inTurn(round)) {
      const ms = timed(commands[name])
      if (round >= 0) times[name].push(ms)
    }
  }
} finally {
  rmSync(folder, { recursive: true })
}

const node = median(times['node -e 0'])
const flock = median(times['flock -n FILE true'])
console.log(`exec on SQLite, Node ${process.versions.node}: median wall time of ${ROUNDS} interleaved runs`)
for (const [name, ms] of Object.entries(times)) {
  const ratios = `${shown(median(ms) / node)} × node -e 0, ${shown(median(ms) / flock)} × flock`
  console.log(`  ${name.padEnd(40)}${shown(median(ms)).padStart(7)} ms   ${ratios}`)
}

/** Forwards and backwards, so that nobody always runs after the same other. */
function inTurn(round: number): Name[] {
  const names = Object.keys(commands) as Name[]
  return round % 2 === 0 ? names : names.toReversed()
}

function timed([program = '', ...words]: string[]): number {
  const env = { ...process.env, RUNLEDGER_DB: `sqlite:${join(folder, 'ledger.db')}` }
  const before = performance.now()
  const { status, stderr } = spawnSync(program, words, { env, stdio: ['ignore', 'ignore', 'pipe'] })
  const ms = performance.now() - before
  if (status !== 0) throw new Error(`${program} ${words.join(' ')} ended with ${status}\n${stderr.toString()}`)
  return ms
}
