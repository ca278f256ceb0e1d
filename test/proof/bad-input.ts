/** Input as nobody should give it: nearly right, broken, hostile, huge. */
import fc from 'fast-check'

/** Stands for a password; no output may have it. */
export const SECRET = 'hunter2-marker'

const odd = fc.constantFrom('', ' ', '\0', '\n', '\r\n', '\u001b[31m', '\u202e', '\ud800', '💥', 'é', '％', "'", '"', '`', '\\', ';--', '$(x)', '%s', '%00', '__proto__', 'constructor', 'NaN', 'null', '-0', '1e309', '9'.repeat(400))

/** Pieces that belong together, in an order they may not have, with something odd between them. */
function nearly(pieces: readonly string[], joiner: readonly string[] = [' ']): fc.Arbitrary<string> {
  const piece = fc.oneof({ weight: 8, arbitrary: fc.constantFrom(...pieces) }, { weight: 1, arbitrary: odd }, { weight: 1, arbitrary: fc.string({ maxLength: 6, unit: 'binary' }) })
  return fc.tuple(fc.array(piece, { maxLength: 9 }), fc.constantFrom(...joiner)).map(([parts, by]) => parts.join(by))
}

export const anyText = fc.oneof({ weight: 3, arbitrary: fc.string({ unit: 'binary', maxLength: 60 }) }, { weight: 2, arbitrary: odd }, { weight: 1, arbitrary: fc.integer({ min: 0, max: 70_000 }).map((length) => 'x'.repeat(length)) })

export const cronText = fc.oneof(
  { weight: 6, arbitrary: nearly(['*', '*/2', '0', '59', '60', '7', '31', '29', 'feb', 'FEB', 'mon', 'sun-sat', '1-5', '5-1', '*/0', '1,2,3', '1,', '-1', '1-', '0-59/7', 'L', '?', '#', '@daily', '@reboot', '99999999999']) },
  { weight: 3, arbitrary: fc.tuple(...Array.from({ length: 5 }, () => fc.constantFrom('*', '0', '29', '30', '31', '2', '*/3', '1-5', '4'))).map((fields) => fields.join(' ')) },
  { weight: 1, arbitrary: anyText },
)
export const zoneText = fc.oneof({ weight: 4, arbitrary: fc.constantFrom('UTC', 'Asia/Shanghai', 'America/New_York', 'Pacific/Apia', 'Australia/Lord_Howe', 'Africa/Casablanca', 'Asia/Kathmandu') }, { weight: 2, arbitrary: nearly(['Etc', 'GMT', '+14', '-12', 'UTC+3', 'EST5EDT', 'Asia', 'local', 'Europe/Berlin', '../etc/passwd'], ['/', '']) }, { weight: 1, arbitrary: anyText })
export const periodText = fc.oneof({ weight: 5, arbitrary: fc.tuple(fc.constantFrom('0', '1', '-1', '3', '15', '1.5', '99999', ''), fc.constantFrom('s', 'm', 'h', 'd', 'w', 'mo', 'y', 'ms', '', 'M')).map(([count, unit]) => count + unit) }, { weight: 1, arbitrary: anyText })
export const instantOf = fc.oneof({ weight: 4, arbitrary: fc.date({ min: new Date('1990-01-01'), max: new Date('2060-01-01'), noInvalidDate: true }) }, { weight: 1, arbitrary: fc.date() })

/** A secret somewhere in something like a URL. */
export const urlWithSecret = fc
  .tuple(nearly(['postgres', 'mysql', 'sqlite', '://', ':', '//', 'user', '@', 'h', '/', 'db', '?', '#', '%', '&', '=', 'sslmode', 'schema', '[::1]', '5432', 'timezone', 'host'], ['']), nearly([':', '@', '/', '?', '#', 'h', '%', '=', '&', 'db', '5432'], ['']))
  .map(([before, after]) => `${before}${SECRET}${after}`)

export const jsonLike = fc.oneof(
  { weight: 4, arbitrary: fc.anything({ withBigInt: true, withDate: true, withMap: true, withSet: true, withTypedArray: true, withNullPrototype: true, withObjectString: true, withSparseArray: true, withUnicodeString: true } as object) as fc.Arbitrary<unknown> },
  { weight: 1, arbitrary: anyText as fc.Arbitrary<unknown> },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 2_000 }).map((depth): unknown => Array.from({ length: depth }).reduce((inner: unknown) => [inner], null)) },
)
export const claimText = fc.oneof(
  fc.json(),
  anyText,
  fc.record({ status: anyText, task: anyText, task_key: anyText, instance_id: fc.oneof(fc.uuid(), anyText), attempt: fc.oneof(fc.integer(), anyText), max_attempts: fc.oneof(fc.integer(), anyText), fence: fc.oneof(fc.nat(), anyText), window_start: fc.oneof(anyText, fc.constant(null)), window_end: anyText, lease_seconds: fc.oneof(fc.double(), anyText), backoff_seconds: fc.oneof(fc.double(), fc.constant(null)) }, { requiredKeys: [] }).map((fields) => JSON.stringify(fields)),
)
/** Of a flag: what may stand on a command line, so without NUL. */
export const flagText = fc.oneof({ weight: 3, arbitrary: periodText }, { weight: 3, arbitrary: anyText }, { weight: 2, arbitrary: fc.constantFrom('1', '0', '-1', '5s', 'a', '2026-09-20T10:00:00Z', '2026-02-30T00:00:00Z', 'completed', '[]', '{}') }).map((text) => text.replaceAll('\0', ''))
