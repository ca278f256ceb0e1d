/** What of a SQLite file matters to a ledger: that its commits stay, and who may open it. */
import { statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { ok, problem, warning, type Checkup } from '../model/checkup.ts'
import type { LedgerNames } from './ledger-names.ts'

export function examineSqlite(file: DatabaseSync, path: string, names: LedgerNames): Checkup[] {
  const pragma = (name: string) => Object.values(file.prepare(`pragma ${name}`).get() ?? {})[0]
  const { version } = file.prepare('select sqlite_version() as version').get() as { version: string }
  const journal = String(pragma('journal_mode'))
  return [
    ok('version', `SQLite ${version}${names.prefix === '' ? '' : `, tables ${names.prefix}…`}`),
    journal === 'wal' || path === ':memory:' ? ok('journal', `journal_mode ${journal}, every commit flushed (synchronous ${String(pragma('synchronous'))})`) : problem('journal', `journal_mode is ${journal}, and not wal`, 'close whatever else has the file open, then open the ledger again'),
    ...(path === ':memory:' ? [] : [ok('file system', 'local: a network file system is refused when the file is opened'), modesOf(resolve(path))]),
  ]
}

function modesOf(path: string): Checkup {
  const [file, folder] = [statSync(path), statSync(dirname(path))]
  const told = `${path} is ${octal(file.mode)}, its folder ${octal(folder.mode)}`
  if ((file.mode & 0o002) !== 0 || (folder.mode & 0o1002) === 0o002) return problem('file modes', `${told}: everybody may write to it`, `chmod o-w ${path} ${dirname(path)}`)
  if ((file.mode & 0o004) !== 0 && (folder.mode & 0o001) !== 0) return warning('file modes', `${told}: everybody may read the output of jobs`, `chmod o-r ${path}`)
  return ok('file modes', told)
}

function octal(mode: number): string {
  return (mode & 0o7777).toString(8).padStart(4, '0')
}
