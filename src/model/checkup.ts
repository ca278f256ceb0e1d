/** What doctor finds of one thing it looks at. */

export type Health = 'ok' | 'warning' | 'problem'

export interface Checkup {
  /** What was looked at: `connection`, `clock`, `launches of daily_news`. */
  readonly check: string
  readonly state: Health
  /** In words, with the facts. */
  readonly said: string
  /** What to do about it; null where there is nothing to do. */
  readonly todo: string | null
}

export function ok(check: string, said: string): Checkup {
  return { check, state: 'ok', said, todo: null }
}

export function warning(check: string, said: string, todo: string): Checkup {
  return { check, state: 'warning', said, todo }
}

export function problem(check: string, said: string, todo: string): Checkup {
  return { check, state: 'problem', said, todo }
}
