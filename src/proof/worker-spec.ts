/** What a worker of the proof is told: whose runs, under which terms, and which trouble it makes for itself. */

export interface ProofTask {
  readonly name: string
  /** At most one run of the task at a time; else only its keys exclude each other. */
  readonly exclusive: boolean
  /** Its keys are 1 … `keys`. */
  readonly keys: number
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
  /** The job holds a connection of the ledger's pool in a transaction for so long, with a chance of a third. */
  readonly holdMs: number
  /** A database that is away is asked again for so long. */
  readonly patienceMs: number
}

/** The worker's spec stands here, as JSON; the database in RUNLEDGER_DB, so that no password is in `ps`. */
export const SPEC_VARIABLE = 'RUNLEDGER_PROOF_WORKER'

/** The file, beside the histories, that the jobs themselves write to: starts that the ledger does not know show there. */
export const WITNESS = 'witness'

/** What excludes others while a key of the task is processing; also the scope of its fences. */
export function concurrencyKeyOf({ name, exclusive }: Pick<ProofTask, 'name' | 'exclusive'>): string | null {
  return exclusive ? name : null
}
