/** Reads the files of a proof back into operations: what was asked, when, and with which answer. */
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Facts, Line, Phase } from './history.ts'

export interface Operation {
  /** Which process. */
  readonly by: string
  readonly did: string
  readonly invokedAt: number
  /** When the answer was there; Infinity without one. */
  readonly endedAt: number
  /** `unknown` also where the process died before it had an answer. */
  readonly end: Exclude<Phase, 'invoked'>
  /** Of the question and of the answer. */
  readonly facts: Facts
}

export interface History {
  readonly operations: readonly Operation[]
  /** From when on a process may count as dead: when it was killed, or its last line if it ended without a word; Infinity if it lived. */
  readonly deadFrom: ReadonlyMap<string, number>
}

/** The last word of a process that ended well. */
export const GOODBYE = 'goodbye'
/** By whoever kills: a fact `victim` names the process. */
export const KILLED = 'killed'

export function readHistory(folder: string): History {
  const files = readdirSync(folder).filter((name) => name.endsWith('.jsonl'))
  const byProcess = files.map((name) => ({ by: basename(name, '.jsonl'), lines: linesOf(join(folder, name)) }))
  const operations = byProcess.flatMap(({ by, lines }) => operationsOf(by, lines)).toSorted((a, b) => a.invokedAt - b.invokedAt)
  return { operations, deadFrom: new Map(byProcess.map(({ by, lines }) => [by, deathOf(by, lines, operations)])) }
}

/** A process that was killed while it wrote leaves half a line, which says nothing. */
function linesOf(file: string): Line[] {
  return readFileSync(file, 'utf8').split('\n').slice(0, -1).map((line) => JSON.parse(line) as Line)
}

function operationsOf(by: string, lines: readonly Line[]): Operation[] {
  const ends = new Map(lines.filter(({ phase }) => phase !== 'invoked' && phase !== 'seen').map((line) => [line.number, line]))
  return lines.flatMap(({ at, did, phase, number, facts }): Operation[] => {
    if (phase === 'seen') return [{ by, did, invokedAt: at, endedAt: at, end: 'seen', facts }]
    if (phase !== 'invoked') return []
    const end = ends.get(number)
    return [{ by, did, invokedAt: at, endedAt: end?.at ?? Infinity, end: (end?.phase ?? 'unknown') as Operation['end'], facts: { ...facts, ...end?.facts } }]
  })
}

function deathOf(by: string, lines: readonly Line[], operations: readonly Operation[]): number {
  const kill = operations.find(({ did, facts }) => did === KILLED && facts['victim'] === by)
  if (kill) return kill.invokedAt
  const last = lines.at(-1)
  return last === undefined || last.did === GOODBYE ? Infinity : last.at
}
