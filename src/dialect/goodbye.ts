/** The end of a pool of connections, also when a dead network swallows every word: a process that is done must not stay for it. */
import { setTimeout as sleep } from 'node:timers/promises'

const PATIENCE_MS = 1_000

/** @param end takes leave of the server on every connection @param cut closes what is open then, or after a second */
export async function goodbye(end: () => Promise<void>, cut: () => void): Promise<void> {
  const waiting = new AbortController()
  const ended = end()
  ended.catch(() => {}) // Once cut, nobody asks any more how it ended.
  await Promise.race([ended, sleep(PATIENCE_MS, undefined, { signal: waiting.signal }).catch(() => {})])
  waiting.abort()
  cut()
}
