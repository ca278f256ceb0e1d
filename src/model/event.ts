/** What a ledger tells while it works: to a logger, to channels of node:diagnostics_channel, to OpenTelemetry. */

/** Each is a channel, `runledger:claim` and so on; docs/observing.md has their payloads. */
export const EVENTS = ['claim', 'conflict', 'queued', 'complete', 'fail', 'release', 'lost', 'heartbeat_missed', 'effect', 'reap', 'prune', 'error'] as const
export type EventName = (typeof EVENTS)[number]

/** Plain values; never a password, a payload or a result. */
export type EventFacts = Readonly<Record<string, string | number | bigint | boolean | null | undefined>>

/**
 * Facts first and then the sentence, as pino wants it; `console` takes it the same way.
 */
export interface Logger {
  debug(facts: object, message: string): void
  info(facts: object, message: string): void
  warn(facts: object, message: string): void
  error(facts: object, message: string): void
}

/** What is expected is information; what somebody should know of is a warning; a promise that did not hold is an error. */
export const LEVELS: Readonly<Record<EventName, keyof Logger>> = {
  claim: 'info', conflict: 'info', queued: 'info', complete: 'info', fail: 'warn', release: 'info', lost: 'error', heartbeat_missed: 'warn', effect: 'debug', reap: 'warn', prune: 'info', error: 'error',
}

/** The sentence to an event; its facts stand beside it. */
export function sentence(event: EventName, { task, taskKey, reason, verb }: EventFacts): string {
  const what = String(taskKey ?? task ?? 'ledger')
  const sentences: Record<EventName, string> = {
    claim: `${what} claimed`, conflict: `${what} refused: ${reason}`, queued: `${what} queued`, complete: `${what} completed`, fail: `${what} failed`, release: `${what} given back`,
    lost: `${what} is not ours any more`, heartbeat_missed: `${what}: a heartbeat did not get through`, effect: `${what}: effect done`, reap: `${what} lost its owner`, prune: `${what} pruned`, error: `${what}: ${verb} did not succeed`,
  }
  return sentences[event]
}
