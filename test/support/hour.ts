/** For tests whose windows are hours of the real clock. */
import { setTimeout as sleep } from 'node:timers/promises'

const HOUR_MS = 3_600_000
/** As long as the tests of a file take at most. */
const ROOM_MS = 30_000

/** The beginning of the hour so many hours before this one. */
export function hour(back: number): Date {
  return new Date(Math.floor(Date.now() / HOUR_MS) * HOUR_MS - back * HOUR_MS)
}

/** Just before a full hour it waits for that to pass, for else the windows are others at the end of a test than at its beginning. */
export async function awayFromTheHour(): Promise<void> {
  const left = HOUR_MS - (Date.now() % HOUR_MS)
  if (left < ROOM_MS) await sleep(left + 100)
}
