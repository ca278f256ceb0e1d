/** Time zones by IANA name: which names are accepted, and how far a zone's clocks are from UTC at an instant. */
import { IANAZone } from 'luxon'
import { invalidOption } from '../errors.ts'
import { MINUTE_MS } from './wall-clock.ts'

/**
 * Area/Place, each part with a capital. That leaves out offsets (`+05:00` knows no season) and abbreviations, which
 * Intl would accept: there `BST` is Bangladesh and `IST` is India, not what a reader in London or Dublin means.
 */
const PLACE = /^[A-Z][\w+-]*(?:\/[A-Z][\w+-]*)+$/

/** The name itself, when it is `UTC` or a place this Node knows. @throws INVALID_OPTION naming `tz`. */
export function requireZone(name: string): string {
  if (name === 'UTC') return name
  const quoted = JSON.stringify(name.slice(0, 60))
  if (!PLACE.test(name)) throw invalidOption('tz', `must be UTC or an IANA name such as Europe/London, got ${quoted}`)
  if (!IANAZone.create(name).isValid) throw invalidOption('tz', `no time zone is called ${quoted}`)
  return name
}

/** What the zone's clocks show minus UTC, in milliseconds; local mean time, before standard time, has odd seconds. */
export function offsetMs(zone: string, at: number): number {
  // The default zone spares a short process its first use of Intl, about 15 ms.
  if (zone === 'UTC') return 0
  return Math.round(IANAZone.create(zone).offset(at) * MINUTE_MS)
}

/** `-04:00`, `+05:45`, `-04:56:02`. */
export function writeOffset(offset: number): string {
  const iso = new Date(Math.abs(offset)).toISOString()
  const wholeMinutes = offset % MINUTE_MS === 0
  return `${offset < 0 ? '-' : '+'}${iso.slice(11, wholeMinutes ? 16 : 19)}`
}
