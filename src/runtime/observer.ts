/** The one passage of the verbs: what each did, and how long it took, is told here and nowhere else. */
import { channel } from 'node:diagnostics_channel'
import { EVENTS, LEVELS, sentence, type EventFacts, type EventName, type Logger } from '../model/event.ts'
import { isLedgerError } from '../model/errors.ts'
import { UNTRACED, type Span, type Telemetry } from './telemetry.ts'

const CHANNELS = Object.fromEntries(EVENTS.map((event) => [event, channel(`runledger:${event}`)])) as Record<EventName, ReturnType<typeof channel>>

/** An event and what it says beyond the facts of the verb; null for nothing. */
export type Told = { readonly event: EventName; readonly facts?: EventFacts } | null

export class Observer {
  readonly #logger: Logger | undefined
  readonly #telemetry: Telemetry | null
  readonly #parent: string | undefined

  /** @param parent the trace that this process is a part of */
  constructor(logger?: Logger, telemetry: Telemetry | null = null, parent?: string) {
    this.#logger = logger
    this.#telemetry = telemetry
    this.#parent = parent
  }

  /** Tells whoever listens; costs next to nothing where nobody does. */
  tell(event: EventName, facts: EventFacts): void {
    if (CHANNELS[event].hasSubscribers) CHANNELS[event].publish(facts)
    this.#logger?.[LEVELS[event]]({ event: `runledger:${event}`, ...facts }, sentence(event, facts))
    this.#telemetry?.count(`runledger.${event}`, 1, countable(facts))
  }

  /** Does the verb in a span of its own and tells how it ended; what it throws is told and thrown on. */
  async verb<T>(name: string, facts: EventFacts, work: () => Promise<T>, toldOf: (result: T) => Told): Promise<T> {
    const span = this.#telemetry?.begin(`runledger.${name}`, facts, this.#parent) ?? UNTRACED
    const began = performance.now()
    const took = () => ({ durationMs: Math.round((performance.now() - began) * 1000) / 1000 })
    try {
      const result = await span.within(work)
      const told = toldOf(result)
      if (told) this.tell(told.event, { ...facts, ...told.facts, ...took() })
      span.end(told?.facts ?? {})
      return result
    } catch (error) {
      const problem = error instanceof Error ? error.message.split('\n')[0]! : String(error)
      this.tell('error', { ...facts, verb: name, code: isLedgerError(error) ? error.code : null, error: problem, ...took() })
      span.end({}, problem)
      throw error
    }
  }

  /** The span of a run, from its claim to its end: what its handler does is a part of it. */
  begin(facts: EventFacts): Span {
    const began = performance.now()
    const span = this.#telemetry?.begin('runledger.run', facts, this.#parent) ?? UNTRACED
    return {
      ...span,
      end: (more, error) => {
        span.end(more, error)
        this.#telemetry?.measure('runledger.run.duration', (performance.now() - began) / 1000, countable({ ...facts, ...more }))
      },
    }
  }
}

/** Only what has few values: a key a run would be a time series a run. */
function countable({ task, reason, status, code, verb }: EventFacts): EventFacts {
  return { task, reason, status, code, verb }
}
