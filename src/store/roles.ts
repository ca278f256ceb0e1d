/** Roles: what who uses the ledger for what needs to be able to do to its tables, and no more. */
import { LEDGER_TABLES } from '../dialect/ledger-names.ts'
import type { Rights, TableRight } from '../dialect/rights.ts'

/** Each can do what those before it can; `migrator` is apart, since it changes the tables and not only what is in them. */
export const ROLES = ['reader', 'runner', 'operator', 'migrator'] as const
export type Role = (typeof ROLES)[number]

type Writes = Readonly<Record<string, readonly TableRight[]>>

/** Claims, closes and reaps runs, performs effects, passes fences; tells what its tasks are, and counts what ended. */
const RUNNER: Writes = {
  task_runs: ['insert', 'update'],
  task_attempts: ['insert'],
  task_fences: ['insert', 'update'],
  tasks: ['insert', 'update'],
  task_launchers: ['insert', 'update', 'delete'],
  task_totals: ['insert', 'update'],
  task_effects: ['insert', 'update'],
  fenced_resources: ['insert', 'update'],
}

/** Acts on runs and tasks by hand, which is recorded, and takes old ones away. */
const OPERATOR: Writes = {
  ...RUNNER,
  task_runs: ['insert', 'update', 'delete'],
  task_attempts: ['insert', 'update', 'delete'],
  task_effects: ['insert', 'update', 'delete'],
  task_actions: ['insert'],
}

const WRITES: Readonly<Record<Role, Writes>> = { reader: {}, runner: RUNNER, operator: OPERATOR, migrator: {} }

export function rightsOf(role: Role): Rights {
  const tables = Object.fromEntries(LEDGER_TABLES.map((table): [string, TableRight[]] => [table, ['select', ...(WRITES[role][table] ?? [])]]))
  return { tables, schema: role === 'migrator' }
}
