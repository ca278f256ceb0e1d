/** Adds up rounds for each fault and database, and prints them as a table that docs/reliability.md can take as it is. */
import { summed, type Figures } from '../../src/proof/figures.ts'
import type { RoundResult } from '../../src/proof/round.ts'

export interface Cell {
  readonly fault: string
  readonly database: string
  readonly rounds: number
  readonly faults: number
  readonly broken: readonly string[]
  readonly figures: Figures
}

export class Tally {
  readonly #rounds = new Map<string, { fault: string; database: string; results: Pick<RoundResult, 'faults' | 'figures' | 'verdicts'>[] }>()

  add(fault: string, database: string, { faults, figures, verdicts }: RoundResult): void {
    const name = `${fault} ${database}`
    const cell = this.#rounds.get(name) ?? { fault, database, results: [] }
    cell.results.push({ faults, figures, verdicts })
    this.#rounds.set(name, cell)
  }

  get cells(): Cell[] {
    return [...this.#rounds.values()].map(({ fault, database, results }) => ({
      fault,
      database,
      rounds: results.length,
      faults: results.reduce((sum, { faults }) => sum + faults, 0),
      broken: results.flatMap(({ verdicts }) => verdicts.flatMap(({ promise, broken }) => broken.map((text) => `${promise}: ${text}`))),
      figures: summed(results.map(({ figures }) => figures)),
    }))
  }

  get runs(): number {
    return this.cells.reduce((sum, { figures }) => sum + figures.runs, 0)
  }
}

const COLUMNS: readonly (readonly [string, (cell: Cell) => string | number])[] = [
  ['fault', ({ fault }) => fault],
  ['database', ({ database }) => database],
  ['runs', ({ figures }) => figures.runs],
  ['of the queue', ({ figures }) => figures.queued],
  ['faults', ({ faults }) => faults],
  ['starts', ({ figures }) => figures.starts],
  ['done again', ({ figures }) => figures.repeated],
  ['caught by effect', ({ figures }) => figures.caughtByEffect],
  ['caught by fence', ({ figures }) => figures.caughtByFence],
  ['late writes refused', ({ figures }) => figures.refused],
  ['promises broken', ({ broken }) => broken.length],
]

export function markdown(cells: readonly Cell[]): string {
  const rows = [COLUMNS.map(([title]) => title), COLUMNS.map(() => '---'), ...cells.map((cell) => COLUMNS.map(([, of]) => String(of(cell))))]
  return rows.map((row) => `| ${row.join(' | ')} |\n`).join('')
}
