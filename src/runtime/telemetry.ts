/** OpenTelemetry through its API, where that is installed: spans and counts. Its types stay in here, for not everybody has them. */
import type { EventFacts } from '../model/event.ts'

export interface Span {
  /** For another process that goes on with it (W3C Trace Context); null where nothing is traced. */
  readonly traceparent: string | null
  /** What begins in `work` is a part of it. */
  within<T>(work: () => T): T
  /** @param error what went wrong, in one line */
  end(facts: EventFacts, error?: string): void
}

export interface Telemetry {
  /** @param parent a traceparent, for where no span is active */
  begin(name: string, facts: EventFacts, parent?: string): Span
  count(name: string, by: number, facts: EventFacts): void
  measure(name: string, seconds: number, facts: EventFacts): void
}

export const UNTRACED: Span = { traceparent: null, within: (work) => work(), end() {} }

const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/

/** Null where the package is not installed. */
export async function openTelemetry(): Promise<Telemetry | null> {
  const api = await import('@opentelemetry/api').catch(() => null)
  if (!api) return null
  const { context, trace, metrics, SpanStatusCode, isSpanContextValid } = api
  const tracer = trace.getTracer('runledger')
  const meter = metrics.getMeter('runledger')

  function parentOf(traceparent: string | undefined) {
    const [, traceId, spanId, flags] = (trace.getSpan(context.active()) ? null : TRACEPARENT.exec(traceparent ?? '')) ?? []
    if (traceId === undefined || spanId === undefined) return context.active()
    return trace.setSpanContext(context.active(), { traceId, spanId, traceFlags: parseInt(flags!, 16), isRemote: true })
  }

  return {
    begin(name, facts, parent) {
      const from = parentOf(parent)
      const span = tracer.startSpan(name, { attributes: attributes(facts) }, from)
      const inside = trace.setSpan(from, span)
      const known = span.spanContext()
      return {
        traceparent: isSpanContextValid(known) ? `00-${known.traceId}-${known.spanId}-${known.traceFlags.toString(16).padStart(2, '0')}` : null,
        within: (work) => context.with(inside, work),
        end(more, error) {
          span.setAttributes(attributes(more))
          if (error !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: error })
          span.end()
        },
      }
    },
    count: (name, by, facts) => meter.createCounter(name).add(by, attributes(facts)),
    measure: (name, seconds, facts) => meter.createHistogram(name, { unit: 's' }).record(seconds, attributes(facts)),
  }
}

function attributes(facts: EventFacts): Record<string, string | number | boolean> {
  const given: Record<string, string | number | boolean> = {}
  for (const name in facts) {
    const value = facts[name]
    if (value !== null && value !== undefined) given[`runledger.${name}`] = typeof value === 'bigint' ? String(value) : value
  }
  return given
}
