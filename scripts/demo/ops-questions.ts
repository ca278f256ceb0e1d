/** The questions of docs/operators.md, each asked of the ledger by its SQL and by command; both must say the same. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FakeHost } from './fake-host.ts'
import { NOW } from './three-weeks.ts'

type Row = Record<string, unknown>

export interface Question {
  /** Its number in docs/operators.md. */
  readonly number: number
  /** What stands in place of the examples of that page. */
  readonly instead?: Readonly<Record<string, string>>
  fromSql(rows: readonly Row[]): unknown
  readonly command: readonly string[]
  fromCommand(lines: readonly Row[]): unknown
}

const PAGE = readFileSync(join(import.meta.dirname, '../../docs/operators.md'), 'utf8')

const keysOf = (rows: readonly Row[]) => rows.map((row) => row['task_key']).toSorted()
const history = (lines: readonly Row[]) => lines.filter((line) => line['kind'] === 'history')
const pick = (rows: readonly Row[], ...columns: string[]) => rows.map((row) => columns.map((column) => row[column] ?? null))
const sorted = (rows: readonly unknown[]) => rows.map((row) => JSON.stringify(row)).toSorted()

export const questions: readonly Question[] = [
  { number: 1, fromSql: keysOf, command: ['runs', '--status', 'processing', '--json'], fromCommand: keysOf },
  {
    number: 2,
    instead: { '2026-09-20T18:00:00': '2026-11-05T06:00:00', '2026-09-21T08:00:00': '2026-11-09T06:00:00' },
    fromSql: keysOf,
    command: ['runs', '--status', 'failed', '--since', '4d', '--json'],
    fromCommand: keysOf,
  },
  {
    number: 3,
    instead: { daily_news: 'import' },
    fromSql: (rows) => pick(rows, 'task_key', 'reason', 'held_by_key'),
    command: ['show', 'import:2026-11-03-08:00', '--json'],
    fromCommand: (lines) => pick(history(lines), 'task_key', 'reason', 'held_by_key'),
  },
  { number: 4, fromSql: keysOf, command: ['runs', '--status', 'failed', '--json'], fromCommand: (lines) => keysOf(lines.filter((run) => run['failure_reason'] === 'lost')) },
  {
    number: 5,
    instead: { '2026-09-01T00:00:00': '2026-10-01T00:00:00' },
    fromSql: ([row]) => Number(row!['runs']),
    command: ['runs', '--task', 'daily_news', '--status', 'completed', '--limit', '1000', '--json'],
    fromCommand: (lines) => lines.length,
  },
  {
    number: 6,
    fromSql: (rows) => pick(rows, 'launcher', 'refused'),
    command: ['show', 'daily_news:2026-11-05-18:00', '--json'],
    fromCommand: (lines) => history(lines).filter((line) => line['outcome'] === 'conflict').map((line) => [line['launcher'], 1]),
  },
  {
    number: 7,
    fromSql: (rows) => sorted(pick(rows, 'task_name', 'pending', 'running')),
    command: ['metrics'],
    fromCommand: (lines) => sorted(tasksOf(lines).map((task) => [task, sample(lines, `runledger_runs{task="${task}",status="pending"}`), sample(lines, `runledger_runs{task="${task}",status="processing"}`)])),
  },
  { number: 8, fromSql: keysOf, command: ['check', '--json'], fromCommand: (lines) => keysOf(lines.filter((line) => line['kind'] === 'stale')) },
  { number: 9, fromSql: keysOf, command: ['runs', '--status', 'pending', '--json'], fromCommand: keysOf },
  {
    number: 10,
    instead: { 'daily_news:2026-09-20-18:00': 'daily_news:2026-11-05-18:00' },
    fromSql: (rows) => pick(rows, 'outcome', 'reason', 'launcher'),
    command: ['show', 'daily_news:2026-11-05-18:00', '--json'],
    fromCommand: (lines) => pick(history(lines), 'outcome', 'reason', 'launcher'),
  },
  {
    number: 11,
    instead: { daily_news: 'sync' },
    fromSql: (rows) => pick(rows, 'gap_from', 'gap_to'),
    command: ['missing', '--task', 'sync', '--since', '21d', '--json'],
    fromCommand: (lines) => [[lines[0]!['window_start'], lines.at(-1)!['window_end']]],
  },
  { number: 12, fromSql: (rows) => pick(rows, 'task_name', 'schedule', 'zone', 'expected_since', 'pruned_before'), command: ['tasks', '--json'], fromCommand: (lines) => pick(lines, 'task_name', 'schedule', 'zone', 'expected_since', 'pruned_before') },
  {
    number: 13,
    fromSql: (rows) => sorted(pick(rows, 'task_name', 'schedule', 'launcher')),
    command: ['tasks', '--launchers', '--json'],
    fromCommand: (lines) => sorted(pick(lines.filter((one) => lines.some((other) => other['task_name'] === one['task_name'] && other['schedule'] !== one['schedule'])), 'task_name', 'schedule', 'launcher')),
  },
  { number: 14, fromSql: (rows) => sorted(pick(rows, 'action', 'task_name', 'acted_by', 'because')), command: ['actions', '--json'], fromCommand: (lines) => sorted(pick(lines, 'action', 'task_name', 'acted_by', 'because')) },
  {
    number: 15,
    fromSql: (rows) => sorted(rows.map((row) => [`runledger_run_endings_total{task="${String(row['task_name'])}",status="${String(row['outcome'])}",reason="${String(row['reason'])}"}`, Number(row['endings'])])),
    command: ['metrics'],
    fromCommand: (lines) => sorted(lines.filter(({ name }) => String(name).startsWith('runledger_run_endings_total')).map(({ name, value }) => [name, value])),
  },
  { number: 16, fromSql: (rows) => pick(rows, 'effect_key', 'task_key'), command: ['effects', '--in-doubt', '--json'], fromCommand: (lines) => pick(lines, 'effect_key', 'task_key') },
]

/** @returns what the two say, and whether it is the same */
export async function ask(host: FakeHost, question: Question): Promise<{ title: string; sql: unknown; command: unknown; agree: boolean }> {
  const { title, statement } = sectionOf(question.number)
  const spoken = Object.entries(question.instead ?? {}).reduce((text, [example, ours]) => text.replaceAll(example, ours), statement)
  const said = await host.at(NOW, question.command, 'tty')
  const sql = question.fromSql(host.sqlAt(NOW, spoken))
  const command = question.fromCommand(linesOf(said.stdout))
  return { title, sql, command, agree: JSON.stringify(sql) === JSON.stringify(command) && JSON.stringify(sql) !== '[]' }
}

function sectionOf(number: number): { title: string; statement: string } {
  const section = PAGE.split(/^## /m).find((part) => part.startsWith(`${number}. `))
  const [, statement] = /```sql\n([\s\S]*?)```/.exec(section ?? '') ?? []
  if (section === undefined || statement === undefined) throw new Error(`question ${number} is not in docs/operators.md`)
  return { title: section.slice(0, section.indexOf('\n')), statement }
}

/** JSON, an object a line; or the samples of the Prometheus text format. */
function linesOf(text: string): Row[] {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return lines.map((line) => {
    if (line.startsWith('{')) return JSON.parse(line) as Row
    const end = line.lastIndexOf(' ')
    return { name: line.slice(0, end), value: Number(line.slice(end + 1)) }
  })
}

function sample(lines: readonly Row[], name: string): number {
  return Number(lines.find((line) => line['name'] === name)?.['value'])
}

function tasksOf(lines: readonly Row[]): string[] {
  return lines.flatMap(({ name }) => /^runledger_runs\{task="([^"]+)",status="pending"\}$/.exec(String(name))?.[1] ?? [])
}
