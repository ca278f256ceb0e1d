/**
 * Preload (`node --import`) that stands in for a host whose clock is set to HOST_CLOCK: `new Date()` and `Date.now()`
 * answer that instant. Code that lets today's season or today's offset into its reckoning gives itself away under it.
 */
const set = Date.parse(process.env['HOST_CLOCK'] ?? '')
const RealDate = Date

class HostDate extends RealDate {
  constructor(...parts: [] | ConstructorParameters<DateConstructor>) {
    if (parts.length === 0) super(set)
    else super(...(parts as [number]))
  }

  static override now(): number {
    return set
  }
}

globalThis.Date = HostDate as DateConstructor
