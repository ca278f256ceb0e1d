/** `runledger enqueue`: puts one run in line, or one for each line of stdin. */
import { readFileSync } from 'node:fs'
import type { Enqueued, EnqueueOptions } from '../index.ts'
import { invalidOption } from '../model/errors.ts'
import type { Command, FlagValues } from './command.ts'
import { withLedger } from './database.ts'
import { EXIT } from './exit.ts'
import { instant, required, text, wholeNumber } from './flags.ts'
import { jsonLine } from './log.ts'

const help = `
Usage: runledger enqueue --task T [--key K] [--payload JSON] [flags]
       runledger enqueue --task T --lines [flags] < FILE

Puts a run in line for a worker (runledger work, or ledger.worker in a program). A key that is there already, in
whatever state, is a duplicate: said, and nothing is changed. Without a key each call makes a run of its own.

  --task T               the task's name: letters, digits and _ . / -
  --key K                the business key, such as order-42; the run is then T:K
  --payload JSON         what the worker gets; - reads it from stdin
  --lines                one run a line of stdin, {"key":…,"payload":…}, both optional; all of them or none
  --queue Q              the queue it stands in (default)
  --priority N           lower first, -32768 to 32767 (0)
  --at INSTANT           not before it
  --delay D              not before D from now
  --concurrency-key C    at most one run with it is processing, of whatever task
  --concurrency-limit N  or at most N (1)
  --max-attempts N       attempts in all (3)
  --backoff D            pause before the second attempt, doubled for each further one (10s)
  --timeout D            how long one attempt may take

Exit codes: 0 enqueued, or there already; 64 usage (nothing was enqueued); 69 the database is unavailable; 78 schema
behind or ahead.

Example: runledger enqueue --task send_invoice --key order-42 --payload '{"order":42}'
`

const string = { type: 'string' } as const

export const enqueueCommand: Command = {
  name: 'enqueue',
  summary: 'put runs in line for a worker',
  help,
  options: {
    task: string, key: string, payload: string, lines: { type: 'boolean' }, queue: string, priority: string, at: string, delay: string,
    'concurrency-key': string, 'concurrency-limit': string, 'max-attempts': string, backoff: string, timeout: string,
  },
  async run({ flags, words }, io) {
    if (words.length > 0) throw invalidOption('enqueue', `takes no word, got ${JSON.stringify(words[0]!.slice(0, 40))} (--payload JSON)`)
    const task = required(flags, 'task')
    const runs = flags['lines'] ? linesOf(flags) : [{ ...termsOf(flags), key: text(flags, 'key'), payload: payloadOf(flags) }]
    const enqueued = await withLedger(flags, io, (ledger) => ledger.enqueueMany(task, runs))
    if (flags['json']) for (const one of enqueued) io.out(`${jsonLine({ task_key: one.taskKey, duplicate: one.duplicate })}\n`)
    else io.out(flags['lines'] ? summary(enqueued) : enqueued.map(sentence).join(''))
    return EXIT.ok
  },
}

function sentence({ taskKey, duplicate }: Enqueued): string {
  return duplicate ? `duplicate: ${taskKey} is there already\n` : `enqueued ${taskKey}\n`
}

function summary(enqueued: readonly Enqueued[]): string {
  const duplicates = enqueued.filter(({ duplicate }) => duplicate).length
  return `${enqueued.length - duplicates} enqueued, ${duplicates} there already\n`
}

function termsOf(flags: FlagValues): EnqueueOptions {
  const limit = wholeNumber(flags, 'concurrency-limit', 1, 100)
  const key = text(flags, 'concurrency-key')
  if (limit !== undefined && key === undefined) throw invalidOption('concurrency-limit', 'needs --concurrency-key')
  const [at, delay] = [instant(flags, 'at'), text(flags, 'delay')]
  if (at !== undefined && delay !== undefined) throw invalidOption('delay', 'cannot stand beside --at')
  return {
    queue: text(flags, 'queue'),
    priority: priorityOf(flags),
    availableAt: at ?? delay,
    concurrencyKey: key === undefined || limit === undefined ? key : { key, limit },
    maxAttempts: wholeNumber(flags, 'max-attempts', 1, 1000),
    backoff: text(flags, 'backoff'),
    timeout: text(flags, 'timeout'),
  }
}

function priorityOf(flags: FlagValues): number | undefined {
  const value = text(flags, 'priority')
  if (value !== undefined && !/^-?\d{1,5}$/.test(value)) throw invalidOption('priority', `must be a whole number from -32768 to 32767, got ${JSON.stringify(value.slice(0, 40))}`)
  return value === undefined ? undefined : Number(value)
}

function payloadOf(flags: FlagValues): unknown {
  const value = text(flags, 'payload')
  return value === undefined ? undefined : parsed('payload', value === '-' ? readFileSync(0, 'utf8') : value)
}

function linesOf(flags: FlagValues): EnqueueOptions[] {
  for (const name of ['key', 'payload']) if (flags[name] !== undefined) throw invalidOption(name, 'cannot stand beside --lines: each line has its own')
  const terms = termsOf(flags)
  const lines = readFileSync(0, 'utf8').split('\n')
  return lines.flatMap((line, index) => (line.trim() === '' ? [] : [{ ...terms, ...lineOf(line, index + 1) }]))
}

function lineOf(line: string, number: number): Pick<EnqueueOptions, 'key' | 'payload'> {
  const value = parsed(`line ${number}`, line)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalidOption(`line ${number}`, 'must be an object, such as {"key":"order-42","payload":{}}')
  const { key, payload, ...rest } = value as Record<string, unknown>
  const [unknown] = Object.keys(rest)
  if (unknown !== undefined) throw invalidOption(`line ${number}`, `may only have key and payload, got ${JSON.stringify(unknown.slice(0, 40))}`)
  if (key !== undefined && typeof key !== 'string') throw invalidOption(`line ${number}`, 'the key must be a text')
  return { key, payload }
}

function parsed(where: string, json: string): unknown {
  try {
    return JSON.parse(json)
  } catch (error) {
    throw invalidOption(where, `is not JSON (${(error as Error).message.split('\n')[0]})`, error)
  }
}
