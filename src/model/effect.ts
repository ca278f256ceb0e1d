/** Effects: names, keys, states, and what may be recorded of one. */
import { invalidOption } from './errors.ts'
import { checkKey } from './names.ts'

/**
 * `started` perform was called and has not come back; `in_doubt` it came back without saying whether it happened;
 * `done` it happened; `not_done` it certainly did not, so it may be begun again. A `started` effect whose attempt
 * does not live any more is in doubt as well.
 */
export const EFFECT_STATUSES = ['started', 'in_doubt', 'done', 'not_done'] as const
export type EffectStatus = (typeof EFFECT_STATUSES)[number]

/** One row of `task_effects`: what is known of an effect, and which attempt called it last. */
export interface EffectRecord {
  /** The idempotency key: the same on every attempt. */
  readonly effectKey: string
  readonly name: string
  readonly taskKey: string
  readonly task: string
  readonly status: EffectStatus
  /** This call of perform; each one has its own. */
  readonly callId: string
  /** How often perform was called. */
  readonly calls: number
  readonly instanceId: string
  readonly attempt: number
  readonly fence: bigint
  readonly host: string | null
  readonly pid: number | null
  readonly startedAt: Date
  readonly doneAt: Date | null
  /** As JSON; null where nothing was returned, or it could not be recorded (see `problem`). */
  readonly result: string | null
  /** Why it is in doubt, or why the result of a done one is not recorded. */
  readonly problem: string | null
  /** The operator who said what became of it, if one had to. */
  readonly resolvedBy: string | null
  readonly resolvedAt: Date | null
  /** Judged by the database's clock when it was read: the attempt that called it still holds its run. */
  readonly live: boolean
}

const MAX_NAME_LENGTH = 100
/** What the strictest of the well-known payment interfaces accept as an idempotency key. */
const MAX_EFFECT_KEY_LENGTH = 255
/** Stands between task key and name, and in neither a name nor a business key: so no two effects share a key. */
const SEPARATOR = '#'

/**
 * The idempotency key of an effect: of the run and the name, never of the attempt or of chance; or the business key,
 * which is the same in every run and task. @throws INVALID_OPTION
 */
export function effectKey(taskKey: string, name: string, businessKey?: string): string {
  checkEffectName(name)
  if (businessKey !== undefined) return without(SEPARATOR, 'key', checkKey('key', businessKey))
  const key = `${taskKey}${SEPARATOR}${name}`
  if (key.length > MAX_EFFECT_KEY_LENGTH) throw invalidOption('effect', `the key made of task key and name is ${key.length} characters long; at most ${MAX_EFFECT_KEY_LENGTH} are accepted: choose a shorter name, or a business key`)
  return key
}

/** Whether the key belongs to one run; a business key stands for the deed itself, whichever run does it. */
export function isOfOneRun(effectKey: string): boolean {
  return effectKey.includes(SEPARATOR)
}

function checkEffectName(name: string): void {
  without(SEPARATOR, 'effect', checkKey('effect', name))
  if (name.length > MAX_NAME_LENGTH) throw invalidOption('effect', `the name is ${name.length} characters long; at most ${MAX_NAME_LENGTH} are accepted`)
}

function without(character: string, option: string, text: string): string {
  if (text.includes(character)) throw invalidOption(option, `must not have a ${character}: it separates task key and name in the keys of effects`)
  return text
}

/**
 * To be thrown by a `perform` that knows for certain that nothing happened (the connection was refused, the card was
 * declined): the effect is then recorded as not done and may be begun again. Any other error leaves it in doubt.
 */
export class NotPerformed extends Error {
  override readonly name = 'NotPerformed'

  /** @param reason why nothing happened, in words or as the error that says so */
  constructor(reason: string | Error) {
    super(typeof reason === 'string' ? reason : reason.message, typeof reason === 'string' ? undefined : { cause: reason })
  }
}

/** Of this or of another copy of the package. */
export function isNotPerformed(error: unknown): boolean {
  return error instanceof Error && error.name === 'NotPerformed'
}
