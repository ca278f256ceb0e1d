/** A verdict for people: what must be zero first, then what was measured. */
import type { Verdict } from './judge.ts'

const PROMISES = {
  lost: 'acknowledged completions that are not there',
  doubled: 'runs started again after they were acknowledged',
  fencesTwice: 'fences given to two claims of one scope',
  together: 'runs of one concurrency key at work together',
  contradictions: 'rows that contradict each other',
} as const

export function isBroken(verdict: Verdict): boolean {
  return Object.keys(PROMISES).some((name) => verdict[name as keyof typeof PROMISES] > 0)
}

export function print(title: string, verdict: Verdict, figures: Readonly<Record<string, number | string>>): void {
  const refused = Object.entries(verdict.refused).map(([code, count]) => `${count} ${code}`).join(', ') || 'none'
  const lines = {
    'runs started': verdict.started,
    'completions acknowledged': verdict.acknowledged,
    ...Object.fromEntries(Object.entries(PROMISES).map(([name, words]) => [words, verdict[name as keyof typeof PROMISES]])),
    'attempts after one that was lost': verdict.repeated,
    'told to workers': refused,
    ...figures,
  }
  console.log(`\n${title}`)
  for (const [words, figure] of Object.entries(lines)) console.log(`  ${words.padEnd(58)}${typeof figure === 'number' ? Math.round(figure) : figure}`)
}
