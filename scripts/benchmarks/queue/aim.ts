/** What a ratio is to reach, and whether it did. */
import { shown } from '../median.ts'

export function atLeast(aim: number, what: string, ratio: number): string {
  return `  ${what}: ${shown(ratio)}; aim at least ${aim}: ${ratio >= aim ? 'met' : 'MISSED'}`
}

export function atMost(aim: number, what: string, ms: number): string {
  return `  ${what}: ${shown(ms)} ms; aim at most ${shown(aim)}: ${ms <= aim ? 'met' : 'MISSED'}`
}
