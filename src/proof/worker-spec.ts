/** What a worker of the proof is told: whose runs, under which terms, and which trouble it makes for itself. */

export interface ProofTask {
  readonly name: string
  /** At most one run of the task at a time; else only its keys exclude each other. */
  readonly exclusive: boolean
  /** Its keys are 1 … `keys`. */
  readonly keys: number
}

/** Runs that are enqueued and taken from the line, by workers of the queue. */
export interface QueuedTask {
  readonly name: string
  /** Its keys are 1 … `keys`. */
  readonly keys: number
  /** So many concurrency keys, each of which lets through so many runs at a time; null for none. */
  readonly concurrency: { readonly keys: number; readonly limit: number } | null
}

/** Which part of the queued runs a worker enqueues. */
export interface Share {
  readonly nth: number
  readonly of: number
}

export interface WorkerSpec {
  /** Names its file in the folder. */
  readonly name: string
  readonly role: 'worker' | 'reaper'
  /** The pid of who starts it: when that is gone, so is the worker. */
  readonly parent: number
  /** Where the histories and the witness are. */
  readonly folder: string
  readonly seed: number
  readonly tasks: readonly ProofTask[]
  readonly queued: readonly QueuedTask[]
  /** It works on the queue, and enqueues this part of it first; null for one that launches. */
  readonly share: Share | null
  readonly leaseMs: number
  /** A job lasts up to this long. */
  readonly jobMs: number
  readonly maxAttempts: number
  /** As if on another host: no death of it can be proven, its lease decides alone. */
  readonly elsewhere: boolean
  readonly heartbeats: 'thread' | 'loop'
  /** How many jobs it has at once. */
  readonly lanes: number
  /** The job blocks the event loop for so long, with this chance. */
  readonly blockMs: number
  readonly blockChance: number
  /** The job kills its own process (SIGKILL), with this chance: in the middle of its effect, at work, or before it closes its run. */
  readonly deathChance: number
  /** The job holds a connection of the ledger's pool in a transaction for so long, with this chance. */
  readonly holdMs: number
  readonly holdChance: number
  /** A database that is away is asked again for so long. */
  readonly patienceMs: number
}

/** The worker's spec stands here, as JSON; the database in RUNLEDGER_DB, so that no password is in `ps`. */
export const SPEC_VARIABLE = 'RUNLEDGER_PROOF_WORKER'

/** The file, beside the histories, that the jobs themselves write to: starts that the ledger does not know show there. */
export const WITNESS = 'witness'

/** What a run excludes others by, and how many of them go at a time. */
export interface Scope {
  readonly scope: string
  readonly limit: number
}

export function scopeOfLaunch({ name, exclusive }: ProofTask, key: string): Scope {
  return { scope: exclusive ? name : `${name}:${key}`, limit: 1 }
}

export function scopeOfQueued({ name, concurrency }: QueuedTask, nth: number): Scope {
  return concurrency === null ? { scope: `${name}:${nth}`, limit: 1 } : { scope: `${name}-${nth % concurrency.keys}`, limit: concurrency.limit }
}

/** The first and the last key of a part. */
export function shareOf({ keys }: QueuedTask, { nth, of }: Share): { readonly first: number; readonly last: number } {
  return { first: Math.floor((keys * nth) / of) + 1, last: Math.floor((keys * (nth + 1)) / of) }
}
