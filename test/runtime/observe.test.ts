/** What a ledger does is told once, to whoever listens: a logger, a channel, a tracer; and no secret with it. */
import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { readFileSync } from 'node:fs'
import { after, before, it } from 'node:test'
import { inspect } from 'node:util'
import { context, metrics, ROOT_CONTEXT, SpanStatusCode, trace, type Context, type ContextManager, type MeterProvider } from '@opentelemetry/api'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { EVENTS, type EventFacts, type Logger } from '../../src/model/event.ts'
import { openLedger, type Ledger } from '../../src/runtime/ledger.ts'
import { eachLedger, request, type Bench } from '../support/ledgers.ts'

interface Heard {
  readonly level: string
  readonly facts: EventFacts & { event: string }
  readonly message: string
}

function recorder(): { logger: Logger; heard: Heard[] } {
  const heard: Heard[] = []
  const at = (level: string) => (facts: object, message: string) => void heard.push({ level, facts: facts as Heard['facts'], message })
  return { heard, logger: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') } }
}

/** A claim, a refused one, an effect, a failure, a release, a completion, and a run whose owner is gone. */
async function makeHistory(bench: Bench, ledger: Ledger, task: string): Promise<void> {
  const launch = { task, key: 'a', maxAttempts: 5, backoff: 0 } as const
  const claimed = async () => {
    const outcome = await ledger.claim(launch)
    assert.ok(outcome.status === 'claimed')
    return outcome
  }
  const first = await claimed()
  await ledger.claim(launch)
  await first.effect('mail', () => ({ secret: 'hunterTwo' }))
  await first.fail('broken', { exitCode: 3, outputTail: 'hunterTwo' })
  await (await claimed()).release()
  await (await claimed()).complete()
  await bench.claim(request(task, 'dead'))
  await bench.age(`${task}:dead`)
  await ledger.reap()
}

const TOLD = ['claim', 'conflict', 'effect', 'fail', 'claim', 'release', 'claim', 'complete', 'reap'].map((event) => `runledger:${event}`)

eachLedger('observe', (bench) => {
  it('a logger hears each verb once, facts first, at its level; the same fits console', async () => {
    const { logger, heard } = recorder()
    const task = bench.task()
    await makeHistory(bench, await bench.open({ logger, telemetry: false }), task)

    assert.deepEqual(heard.map(({ facts }) => facts.event), TOLD)
    assert.deepEqual(heard.map(({ level }) => level), ['info', 'info', 'debug', 'warn', 'info', 'info', 'info', 'info', 'warn'])
    const [claim, conflict, , fail] = heard
    assert.deepEqual([claim!.message, claim!.facts['attempt'], claim!.facts['taskKey'], typeof claim!.facts['durationMs']], [`${task}:a claimed`, 1, `${task}:a`, 'number'])
    assert.deepEqual([conflict!.message, conflict!.facts['reason'], conflict!.facts['heldByPid']], [`${task}:a refused: held`, 'held', process.pid])
    assert.equal(fail!.facts['exitCode'], 3)
    assert.ok(!inspect(heard, { depth: 9 }).includes('hunterTwo'))
    const fits: Logger = console
    assert.equal(typeof fits.debug, 'function')
  })

  it('a channel hears the same payloads, and one that nobody listens to is not written to', async () => {
    const task = bench.task()
    const heard: string[] = []
    const listen = (message: unknown, name: string | symbol) => void ((message as EventFacts)['task'] === task && heard.push(String(name)))
    for (const event of EVENTS) subscribe(`runledger:${event}`, listen)
    await makeHistory(bench, await bench.open({ telemetry: false }), task)
    for (const event of EVENTS) unsubscribe(`runledger:${event}`, listen)
    assert.deepEqual(heard, TOLD)
    await makeHistory(bench, await bench.open({ telemetry: false }), bench.task())
    assert.deepEqual(heard, TOLD)
  })

  it('a lost lease and a verb that throws are told as errors, with the code', async () => {
    const { logger, heard } = recorder()
    const ledger = await bench.open({ logger, telemetry: false })
    const claim = await ledger.claim({ task: bench.task(), key: 'a', maxAttempts: 3 })
    assert.ok(claim.status === 'claimed')
    await bench.age(claim.taskKey)
    await ledger.reap()
    await assert.rejects(claim.complete(), { code: 'LEASE_LOST' })
    assert.deepEqual(heard.map(({ level, facts }) => [level, facts.event]), [['info', 'runledger:claim'], ['warn', 'runledger:reap'], ['error', 'runledger:lost']])

    const other = await ledger.claim({ task: bench.task(), key: 'a' })
    assert.ok(other.status === 'claimed')
    await assert.rejects(other.effect('mail', () => Promise.reject(new Error('no answer'))))
    assert.deepEqual([heard.at(-1)!.facts.event, heard.at(-1)!.facts['verb'], heard.at(-1)!.facts['error']], ['runledger:error', 'effect', 'no answer'])
    await other.complete()
  })
})

/** Only what an SDK sets up by itself: the active context follows promises. */
class AsyncContext implements ContextManager {
  readonly #storage = new AsyncLocalStorage<Context>()
  active = () => this.#storage.getStore() ?? ROOT_CONTEXT
  with = <A extends unknown[], F extends (...args: A) => ReturnType<F>>(to: Context, work: F, self?: ThisParameterType<F>, ...args: A): ReturnType<F> => this.#storage.run(to, () => Reflect.apply(work, self, args) as ReturnType<F>)
  bind = <T>(_: Context, target: T): T => target
  enable = () => this
  disable = () => this
}

eachLedger('OpenTelemetry', (bench) => {
  const exporter = new InMemorySpanExporter()
  const counted: [string, EventFacts][] = []
  before(() => {
    context.setGlobalContextManager(new AsyncContext())
    trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }))
    const meter = { createCounter: (name: string) => ({ add: (_: number, facts: EventFacts) => void counted.push([name, facts]) }), createHistogram: (name: string) => ({ record: (_: number, facts: EventFacts) => void counted.push([name, facts]) }) }
    metrics.setGlobalMeterProvider({ getMeter: () => meter } as unknown as MeterProvider)
  })
  after(() => {
    trace.disable()
    context.disable()
    metrics.disable()
  })

  it('a run is a span, its verbs and what its handler does are parts of it, and all of it is part of the caller', async () => {
    exporter.reset()
    counted.length = 0
    const task = bench.task()
    const ledger = await openLedger(bench.url, { heartbeats: 'loop' })
    const tracer = trace.getTracer('test')
    const traceparent = await tracer.startActiveSpan('caller', async (caller) => {
      const seen: (string | null)[] = []
      await ledger.run({ task, key: 'a' }, async (claim) => {
        seen.push(claim.traceparent)
        tracer.startSpan('job').end()
        await claim.effect('mail', () => 'sent')
      })
      await ledger.claim({ task, key: 'a' })
      caller.end()
      return seen[0]!
    })
    await ledger.close()

    const spans = exporter.getFinishedSpans()
    const named = (name: string) => spans.find((span) => span.name === name)!
    const parent = (name: string) => spans.find((span) => span.spanContext().spanId === named(name).parentSpanContext?.spanId)?.name
    assert.deepEqual(['runledger.run', 'job', 'runledger.effect', 'runledger.claim'].map(parent), ['caller', 'runledger.run', 'runledger.run', 'caller'])
    assert.ok(spans.every((span) => span.spanContext().traceId === named('caller').spanContext().traceId))
    const run = named('runledger.run').spanContext()
    assert.equal(traceparent, `00-${run.traceId}-${run.spanId}-01`)
    assert.deepEqual([named('runledger.run').attributes['runledger.taskKey'], named('runledger.run').attributes['runledger.status']], [`${task}:a`, 'complete'])
    assert.deepEqual(counted.map(([name]) => name), ['runledger.claim', 'runledger.effect', 'runledger.complete', 'runledger.run.duration', 'runledger.conflict'])
    // No key a run: each would be a time series of its own.
    assert.deepEqual(counted.at(-1)![1], { 'runledger.task': task, 'runledger.reason': 'done' })
  })

  it('a failed run is a failed span; with telemetry off there is none', async () => {
    exporter.reset()
    const ledger = await openLedger(bench.url, { heartbeats: 'loop' })
    const quiet = await openLedger(bench.url, { heartbeats: 'loop', telemetry: false })
    const task = bench.task()
    await assert.rejects(ledger.run({ task, key: 'a' }, () => Promise.reject(new Error('broken'))))
    const silent = await quiet.claim({ task: bench.task(), key: 'a' })
    assert.ok(silent.status === 'claimed')
    await silent.complete()
    await Promise.all([ledger.close(), quiet.close()])
    const runs = exporter.getFinishedSpans().filter(({ name }) => name === 'runledger.run')
    assert.deepEqual(runs.map(({ status }) => status), [{ code: SpanStatusCode.ERROR, message: 'Error: broken' }])
    assert.equal(silent.traceparent, null)
  })

  it('docs/observing.md names every event, in its order, and no other', () => {
    const page = readFileSync(new URL('../../docs/observing.md', import.meta.url), 'utf8')
    assert.deepEqual([...page.matchAll(/^\| `runledger:([a-z_]+)` \|/gm)].map(([, event]) => event), [...EVENTS])
  })

  it('a trace that the process was started in goes on, where no span is active', async () => {
    exporter.reset()
    const traceId = '0af7651916cd43dd8448eb211c80319c'
    const ledger = await openLedger(bench.url, { heartbeats: 'loop', traceparent: `00-${traceId}-b7ad6b7169203331-01` })
    await ledger.run({ task: bench.task(), key: 'a' }, () => {})
    await ledger.close()
    assert.ok(exporter.getFinishedSpans().every((span) => span.spanContext().traceId === traceId))
  })
})
