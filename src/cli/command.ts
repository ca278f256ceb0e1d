/** What a subcommand is: its words, its flags and the function that does it and returns the exit code. */
import type { ParseArgsConfig } from 'node:util'

/** Where a command speaks and what it may read; tests hand in their own. */
export interface Io {
  /** Results, for people or programs: stdout. */
  out(text: string): void
  /** What the command says about itself: stderr. */
  err(text: string): void
  readonly env: NodeJS.ProcessEnv
}

export type FlagValues = Readonly<Record<string, string | boolean | undefined>>

export interface Invocation {
  readonly flags: FlagValues
  /** Words before `--`. */
  readonly words: readonly string[]
  /** Words after `--`, untouched; empty when there was none. */
  readonly rest: readonly string[]
}

export interface Command {
  readonly name: string
  /** One line for the list in `runledger --help`. */
  readonly summary: string
  /** The whole `--help` text of this command: synopsis, flags with defaults, exit codes, an example. */
  readonly help: string
  /** The command's own flags; the common ones (--db, --json, --log-format, --help …) are added by main. */
  readonly options: NonNullable<ParseArgsConfig['options']>
  /** Does it. Throws LedgerError for what the user or the database did wrong; main turns that into an exit code. */
  run(invocation: Invocation, io: Io): Promise<number>
}
