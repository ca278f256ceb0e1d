/** Which role a command needs; every command is here, and a test runs each under exactly those rights. */
import type { Role } from '../index.ts'

/** Null: it asks nothing of the database. Of `release` and `tasks` what they do to runs and tasks by hand is an operator's. A later role of `reader`, `runner`, `operator` can do what an earlier one can. */
export const ROLE_OF_COMMAND: Readonly<Record<string, Role | null>> = {
  exec: 'runner',
  enqueue: 'runner',
  work: 'runner',
  claim: 'runner',
  heartbeat: 'runner',
  complete: 'runner',
  fail: 'runner',
  release: 'runner',
  hold: 'runner',
  effect: 'runner',
  effects: 'reader',
  fence: 'runner',
  reap: 'runner',
  runs: 'reader',
  show: 'reader',
  why: 'reader',
  cancel: 'operator',
  retry: 'operator',
  pause: 'operator',
  resume: 'operator',
  actions: 'reader',
  tasks: 'reader',
  missing: 'reader',
  backfill: 'operator',
  check: 'reader',
  metrics: 'reader',
  windows: null,
  prune: 'operator',
  verify: 'reader',
  doctor: 'reader',
  grants: null,
  completion: null,
  selftest: null,
  migrate: 'migrator',
}

/** For `--help`: a line a role, with the commands that it adds. */
export function rolesTable(): string {
  const roles: [Role, string][] = [['reader', 'reads'], ['runner', 'and runs'], ['operator', 'and acts by hand'], ['migrator', 'changes the tables']]
  return roles.map(([role, what]) => `  ${role.padEnd(10)}${what.padEnd(20)}${Object.keys(ROLE_OF_COMMAND).filter((name) => ROLE_OF_COMMAND[name] === role).join(', ')}`).join('\n')
}
