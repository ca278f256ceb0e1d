/** The command line of scripts/prove, checked before anything is started. */
import { parseArgs } from 'node:util'
import type { DatabaseName } from '../../test/support/databases.ts'
import { refuse } from '../usage.ts'

export interface ProofOptions {
  readonly long: boolean
  readonly figures: boolean
  readonly faults: readonly string[]
  readonly databases: readonly DatabaseName[]
  readonly seed: number
  /** How many to go on for, keys of each task, trials: where they were said. */
  readonly runs: number | undefined
  readonly keys: number | undefined
  readonly trials: number | undefined
}

const DATABASES: readonly DatabaseName[] = ['sqlite', 'postgres', 'mariadb', 'mysql']

const usage = (faults: readonly string[]) => `usage: scripts/prove [--long] [--only 'FAULT …'] [--db 'DATABASE …'] [--seed N] [--runs N] [--keys N]
       scripts/prove --figures [--trials N] [--db 'DATABASE …'] [--seed N]

Crashes, cuts, freezes and confuses the ledger and its databases, and checks afterwards that every promise was kept.

  --long       until there were 100,000 runs; then a million bad inputs and all states of the model
  --only       ${faults.join(' ')}
  --db         ${DATABASES.join(' ')}
  --seed N     the same choices again (random; it is printed)
  --runs N     until there were so many
  --keys N     keys of each of the two tasks that are launched in a round
  --figures    how long a run waits after the death of its owner, and a ledger after a crash of its server
  --trials N   measured so often (20)

Exit codes: 0 all promises were kept, 1 some were broken, and are listed; 64 usage.
`

/** Ends the process where it was asked for help (0), or for something that is not there (64). @param faults all there are */
export function readOptions(words: readonly string[], faults: readonly string[]): ProofOptions {
  const { values } = parsed(words)
  if (values.help) {
    process.stdout.write(usage(faults))
    process.exit(0)
  }
  const options: ProofOptions = {
    long: values.long ?? false,
    figures: values.figures ?? false,
    faults: chosen('only', values.only, faults),
    databases: chosen('db', values.db, DATABASES),
    seed: wholeNumber('seed', values.seed, 0) ?? Math.floor(Math.random() * 1_000_000),
    runs: wholeNumber('runs', values.runs, 1),
    keys: wholeNumber('keys', values.keys, 1),
    trials: wholeNumber('trials', values.trials, 1),
  }
  if (values.check) process.exit(0)
  return options
}

/** `check`, for scripts/prove: only read. */
function parsed(words: readonly string[]) {
  try {
    return parseArgs({ args: [...words], options: { long: { type: 'boolean' }, figures: { type: 'boolean' }, only: { type: 'string' }, db: { type: 'string' }, seed: { type: 'string' }, runs: { type: 'string' }, keys: { type: 'string' }, trials: { type: 'string' }, help: { type: 'boolean', short: 'h' }, check: { type: 'boolean' } } })
  } catch (error) {
    return refuse(`scripts/prove: ${(error as Error).message.split(/[.\n] ?/)[0]!}; --help says what there is`)
  }
}

function wholeNumber(flag: string, text: string | undefined, min: number): number | undefined {
  if (text === undefined) return undefined
  if (!/^\d{1,9}$/.test(text) || Number(text) < min) refuse(`scripts/prove: --${flag} must be a whole number from ${min} to 999999999, got ${JSON.stringify(text)}`)
  return Number(text)
}

function chosen<Name extends string>(flag: string, words: string | undefined, all: readonly Name[]): readonly Name[] {
  if (words === undefined) return all
  const named = words.split(/[ ,]+/).filter((word) => word !== '')
  const unknown = named.filter((word) => !(all as readonly string[]).includes(word))
  if (unknown.length > 0 || named.length === 0) refuse(`scripts/prove: --${flag} knows no ${JSON.stringify(unknown.join(' '))}; there are ${all.join(', ')}`)
  return named as Name[]
}
