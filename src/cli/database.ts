/** Which database a command works on: `--db`, RUNLEDGER_DB, the file named by RUNLEDGER_DB_FILE, or this host's own file. */
import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { openLedger, type Ledger, type LedgerOptions } from '../index.ts'
import { invalidOption } from '../model/errors.ts'
import type { FlagValues, Io } from './command.ts'

export function databaseUrl(flags: FlagValues, env: NodeJS.ProcessEnv): string {
  const flag = flags['db']
  if (typeof flag === 'string') return flag
  if (env['RUNLEDGER_DB']) return env['RUNLEDGER_DB']
  if (env['RUNLEDGER_DB_FILE']) return urlFromFile(env['RUNLEDGER_DB_FILE'])
  return `sqlite:${defaultFile(env)}`
}

/** Where the secrets of systemd credentials and of containers stand: a file, so that no command line has the password. */
function urlFromFile(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    throw invalidOption('RUNLEDGER_DB_FILE', `${path} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'error'})`, error)
  }
}

/** The same file from every working directory: one ledger a host for root, one for each other user. */
function defaultFile(env: NodeJS.ProcessEnv): string {
  if (process.getuid?.() === 0) return '/var/lib/runledger/ledger.db'
  const state = env['XDG_STATE_HOME']?.startsWith('/') ? env['XDG_STATE_HOME'] : join(env['HOME'] ?? homedir(), '.local', 'state')
  return join(state, 'runledger', 'ledger.db')
}

export function connectTimeout(flags: FlagValues): string {
  return typeof flags['connect-timeout'] === 'string' ? flags['connect-timeout'] : '10s'
}

/** OpenTelemetry costs a start-up, so it is not even looked for unless one of its own variables asks for it. */
export function tracing(env: NodeJS.ProcessEnv): Pick<LedgerOptions, 'telemetry' | 'traceparent'> {
  return { telemetry: Object.keys(env).some((name) => name.startsWith('OTEL_')), traceparent: env['TRACEPARENT'] }
}

/** Opens the ledger that the flags name, does the work, and closes it whatever happens. */
export async function withLedger<T>(flags: FlagValues, io: Io, work: (ledger: Ledger) => Promise<T>, options: LedgerOptions = {}): Promise<T> {
  const ledger = await openLedger(databaseUrl(flags, io.env), { connectTimeout: connectTimeout(flags), heartbeats: 'loop', ...tracing(io.env), ...options })
  try {
    return await work(ledger)
  } finally {
    await ledger.close()
  }
}
