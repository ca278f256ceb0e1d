/** Bad input is refused by name: never a crash, never a hang, never a secret in what is said. RUNLEDGER_FUZZ=1000000 for a long run. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { after, before, describe, it } from 'node:test'
import fc from 'fast-check'
import { COMMANDS } from '../../src/cli/commands.ts'
import { lineOf } from '../../src/cli/exit.ts'
import { parseDatabaseUrl } from '../../src/dialect/url.ts'
import { checkLaunch, claimFromEnv, claimJson, cron, every, isLedgerError, migrate, nextStart, parseClaim, windowAt, windowsBetween, type Schedule } from '../../src/index.ts'
import { effectKey } from '../../src/model/effect.ts'
import { jsonText, jsonValue } from '../../src/model/json-value.ts'
import { boundText } from '../../src/model/text.ts'
import { parseInstant } from '../../src/model/window/instant.ts'
import { errorText } from '../../src/runtime/ending.ts'
import { isProvablyGone } from '../../src/runtime/process-identity.ts'
import { anyText, claimText, cronText, flagText, instantOf, jsonLike, periodText, SECRET, urlWithSecret, zoneText } from './bad-input.ts'

const INPUTS = Number(process.env['RUNLEDGER_FUZZ'] ?? 10_000)
const LONGEST_MS = 50

/** A part of all inputs goes to each. */
function fuzz<T extends [unknown, ...unknown[]]>(part: number, arbitraries: { [K in keyof T]: fc.Arbitrary<T[K]> }, take: (...input: T) => void): void {
  fc.assert(
    fc.property(...(arbitraries as unknown as [fc.Arbitrary<unknown>]), (...input) => quickly(() => take(...(input as unknown as T)))),
    { numRuns: Math.ceil(INPUTS * part), endOnFailure: INPUTS > 10_000 },
  )
}

/** Of this process's own time: on a busy machine others stop us in the middle of any one. What took long, if only to be compiled, is asked again. */
function quickly(work: () => void): void {
  let best = Infinity
  for (let again = 0; again < 4 && best > LONGEST_MS; again++) {
    const begun = process.cpuUsage()
    work()
    const { user, system } = process.cpuUsage(begun)
    best = Math.min(best, (user + system) / 1000)
  }
  assert.ok(best <= LONGEST_MS, `it took ${best} ms`)
}

/** What it gives, or undefined when it is refused, by name and in one line. */
function orRefused<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    assert.ok(isLedgerError(error) && error.code === 'INVALID_OPTION', inspect(error))
    assert.doesNotMatch(error.message, /[\n\r\u001b]/, 'one line, and nothing that a terminal obeys')
    assert.ok(error.message.length < 1_000, `a message of ${error.message.length} characters`)
    return undefined
  }
}

function useSchedule(schedule: Schedule | undefined, at: Date): void {
  if (!schedule) return
  orRefused(() => {
    const window = windowAt(schedule, at)
    if (window) assert.ok(window.start <= at && window.end > at, 'an instant is in its window')
    assert.ok(nextStart(schedule, at) > at)
    checkLaunch({ task: 't', window: schedule, at })
    let count = 0
    for (const one of windowsBetween(schedule, at, new Date(at.getTime() + 3_600_000))) if (++count > 3) return assert.ok(one)
    return undefined
  })
}

describe('fuzz', () => {
  it('cron expressions and zones', () => fuzz(0.25, [cronText, zoneText, instantOf], (text, zone, at) => useSchedule(orRefused(() => cron(text, zone)), at)))
  it('periods and zones', () => fuzz(0.1, [periodText, zoneText, instantOf], (text, zone, at) => useSchedule(orRefused(() => every(text, zone)), at)))
  it('tasks, keys and the terms of a launch', () =>
    fuzz(0.15, [anyText, anyText, flagText, flagText, fc.oneof(fc.integer(), fc.double())], (task, key, lease, backoff, maxAttempts) => {
      const known = orRefused(() => checkLaunch({ task, key, lease, backoff, maxAttempts }))
      if (known) assert.equal(known.taskKey, `${task}:${key}`)
      orRefused(() => checkLaunch({ task: 't', key, lease: backoff, heartbeat: lease }))
      orRefused(() => effectKey('t:a', task, key))
    }))
  it('instants', () => fuzz(0.05, [fc.oneof(anyText, flagText, instantOf.map((at) => (Number.isNaN(at.getTime()) ? '' : at.toISOString())))], (text) => void orRefused(() => parseInstant('since', text))))

  it('database URLs, without a part of them in what is said', () =>
    fuzz(0.15, [urlWithSecret], (url) => {
      try {
        parseDatabaseUrl(url)
      } catch (error) {
        assert.ok(isLedgerError(error) && error.code === 'INVALID_OPTION', inspect(error))
        assert.ok(!inspect(error, { depth: 9 }).includes(SECRET), inspect(error))
      }
    }))

  it('values to be recorded as JSON come back the same, or are refused with a reason', () =>
    fuzz(0.1, [jsonLike], (value) => {
      const json = jsonText(value)
      if ('problem' in json) return assert.ok(json.problem.length > 0)
      if (json.text !== null) assert.equal(JSON.stringify(jsonValue(json.text)), json.text)
    }))
  it('claims on paper and in the environment', () =>
    fuzz(0.1, [claimText, anyText], (text, other) => {
      const ref = orRefused(() => parseClaim(text))
      if (ref) assert.ok(claimJson(ref))
      orRefused(() => claimFromEnv({ RUNLEDGER_TASK_KEY: other, RUNLEDGER_INSTANCE_ID: other, RUNLEDGER_TASK: text, RUNLEDGER_FENCE: other, RUNLEDGER_ATTEMPT: other, RUNLEDGER_WINDOW_START: other, RUNLEDGER_WINDOW_END: text }))
    }))
  it('what jobs print, throw and leave in a row is bounded, and proves nothing', () =>
    fuzz(0.05, [fc.oneof(anyText, jsonLike), fc.nat(2_000)], (thrown, bytes) => {
      const text = errorText(thrown)
      assert.ok(Buffer.byteLength(boundText(text, bytes, 'tail')) <= bytes)
      if (typeof thrown === 'string') assert.equal(isProvablyGone(thrown), false)
    }))
})

describe('fuzz', () => {
  const folder = mkdtempSync(join(tmpdir(), 'runledger-fuzz-'))
  const url = `sqlite:${join(folder, 'ledger.db')}`
  before(() => migrate(url))
  after(() => rmSync(folder, { recursive: true, force: true }))

  /** They start other programs, or go on until they are told to stop. */
  const APART = new Set(['exec', 'effect', 'hold', 'selftest', 'work'])

  it('flags and words of every command: an exit code, or one line that says what is wrong', async () => {
    for (const [name, { load }] of Object.entries(COMMANDS)) {
      if (APART.has(name)) continue
      const command = await load()
      const flags = Object.entries(command.options).filter(([flag]) => flag !== 'every' && flag !== 'hold')
      const given = fc.record(Object.fromEntries(flags.map(([flag, { type }]) => [flag, type === 'boolean' ? fc.boolean() : flagText])), { requiredKeys: [] })
      const words = fc.oneof(fc.array(flagText, { maxLength: 2 }), fc.constant(['resolve', 't:a#mail']), fc.constant(['check', 'r', '1']), fc.constant(['up']))
      await fc.assert(
        fc.asyncProperty(given, words, fc.boolean(), async (some, said, json) => {
          let out = ''
          const io = { out: (text: string) => void (out += text), err: (text: string) => void (out += text), env: { RUNLEDGER_DB: url, FUZZ: SECRET } }
          try {
            const code = await command.run({ flags: { ...(some as Record<string, string | boolean>), json, 'connect-timeout': '0s' }, words: said, rest: [] }, io)
            assert.ok(Number.isInteger(code) && code >= 0 && code < 256 && code !== 70, String(code))
          } catch (error) {
            assert.ok(isLedgerError(error) && error.code !== 'INTERNAL', inspect(error))
            assert.match(lineOf(error, {}), /^runledger: [A-Z_]+: [^\n]*\n$/)
          }
          assert.ok(!out.includes(SECRET))
        }),
        { numRuns: Math.ceil((INPUTS * 0.05) / Object.keys(COMMANDS).length), endOnFailure: true },
      )
    }
  })
})
