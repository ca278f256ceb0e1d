/** Plays faults on databases until there were enough runs, and says what was executed, injected and broken (`scripts/prove`). */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { seeded } from '../../src/proof/random.ts'
import { placeOf, type DatabaseName, type TestDatabase } from '../../test/support/databases.ts'
import { FAULTS } from './faults.ts'
import { readOptions } from './options.ts'
import { measureRecovery } from './recovery.ts'
import { Stage, type Size } from './stage.ts'
import { markdown, Tally } from './tally.ts'

const SHORT: Size = { keys: 20, queued: 300, faults: 6, workers: 3, withinMs: 300_000, leaseMs: 1000 }
const LONG: Size = { keys: 25, queued: 2000, faults: 40, workers: 3, withinMs: 240_000, leaseMs: 1000 }
const LONG_RUNS = 100_000
const TRIALS = 20

const options = readOptions(process.argv.slice(2), Object.keys(FAULTS))
const { seed, faults, databases } = options
const named = options.long ? LONG : SHORT
/** Faults come at a pace, so more keys meet more of them. */
const size = options.keys === undefined ? named : { ...named, keys: options.keys, faults: Math.ceil(options.keys / 4) }
const wanted = options.runs ?? (options.long ? LONG_RUNS : 0)

const folder = mkdtempSync(join(tmpdir(), 'runledger-prove-'))
const random = seeded(seed)
const tally = new Tally()
const failed: string[] = []
console.log(`seed ${seed}`)
// Who has no time left still hears of what was proven until then.
process.once('SIGINT', () => {
  report()
  process.exit(130)
})
try {
  if (options.figures) await figures()
  else await proof()
} finally {
  rmSync(folder, { recursive: true, force: true })
}
process.exit(failed.length === 0 ? process.exitCode : 1)

async function proof(): Promise<void> {
  do {
    for (const fault of faults) for (const database of databases) if (FAULTS[fault]!.on.includes(database)) await play(fault, database)
  } while (tally.runs < wanted)
  report()
}

/** Times in milliseconds. */
async function figures(): Promise<void> {
  const trials = options.trials ?? TRIALS
  const print = (row: readonly string[]) => console.log(`| ${row.join(' | ')} |`)
  print(['time in ms', 'database', 'trials', 'p50', 'p95', 'max'])
  print(Array.from({ length: 6 }, () => '---'))
  for (const database of databases) await onStage('figures', database, async (stage) => (await measureRecovery(stage, trials)).forEach(print))
}

function report(): void {
  const broken = tally.cells.flatMap(({ fault, database, broken }) => broken.map((text) => `${fault} on ${database}: ${text}`))
  console.log(`\n${markdown(tally.cells)}\n${tally.runs} runs, ${tally.cells.reduce((sum, { faults }) => sum + faults, 0)} faults, ${broken.length} promises broken (seed ${seed})`)
  for (const text of [...failed, ...broken.slice(0, 50)]) console.log(`  ${text}`)
  process.exitCode = broken.length + failed.length === 0 ? 0 : 1
}

async function play(fault: string, database: DatabaseName): Promise<void> {
  const begun = performance.now()
  await onStage(fault, database, async (stage) => {
    const result = await FAULTS[fault]!.play(stage)
    tally.add(fault, database, result)
    const broken = result.verdicts.flatMap((verdict) => verdict.broken)
    console.log(`${fault} on ${database}: ${result.figures.runs} runs, ${result.faults} faults, ${broken.length} broken, ${((performance.now() - begun) / 1000).toFixed(1)} s (seed ${stage.seed})`)
    if (broken.length > 0) console.log(broken.slice(0, 5).map((text) => `  ${text}`).join('\n'))
  })
}

async function onStage(what: string, database: DatabaseName, work: (stage: Stage) => Promise<void>): Promise<void> {
  const made: string[] = []
  const place = placeOf(database)
  const db: TestDatabase = {
    name: database,
    async url() {
      made.push(await place.create())
      return made.at(-1)!
    },
    admin: (sql, url = made.at(-1)!) => place.query(url, sql),
  }
  const roundSeed = Math.floor(random() * 1_000_000)
  const stage = new Stage(db, join(folder, `${what}-${roundSeed}`), roundSeed, size)
  try {
    await work(stage)
  } catch (error) {
    failed.push(`${what} on ${database} could not be played: ${String(error)}`)
    console.log(failed.at(-1))
  } finally {
    stage.close()
    await Promise.all(made.map((url) => place.drop(url)))
  }
}
