/** `runledger grants`: the SQL that gives a user a role on the ledger. */
import { grants, type Role } from '../index.ts'
import { durationMs } from '../model/duration.ts'
import { invalidOption } from '../model/errors.ts'
import type { Command } from './command.ts'
import { connectTimeout, databaseUrl } from './database.ts'
import { EXIT } from './exit.ts'
import { oneOf, required, text } from './flags.ts'
import { jsonLine } from './log.ts'
import { rolesTable } from './roles.ts'

const help = `
Usage: runledger grants --role reader|runner|operator|migrator [--user NAME] [--db URL] [--json]

Prints what an administrator types to give a user that there is already the rights of a role, for the database, schema
and table prefix of --db; of a SQLite file, who must be able to open it. Changes nothing.

  --role R      each can do what those above it can; the migrator is apart
  --user NAME   the user (ledger_ROLE); on MySQL and MariaDB NAME@HOST, any host without

${rolesTable()}

Tables are granted one by one, so migrate first, and print and apply this again after an upgrade with a migration.

Exit codes: 0; 64 usage; 69 the database is unavailable.

Example: runledger grants --role runner --user cron --db postgres://admin@db.example/app | psql app
`

export const grantsCommand: Command = {
  name: 'grants',
  summary: 'print the SQL that gives a user a role',
  help,
  options: { role: { type: 'string' }, user: { type: 'string' } },
  async run({ flags, words }, io) {
    if (words.length > 0) throw invalidOption('grants', `takes no word, got ${JSON.stringify(words[0]!.slice(0, 40))}`)
    required(flags, 'role')
    const role = oneOf<Role>(flags, 'role', ['reader', 'runner', 'operator', 'migrator'])!
    const lines = await grants(databaseUrl(flags, io.env), role, text(flags, 'user'), durationMs('connect-timeout', connectTimeout(flags), { zero: true }))
    for (const line of lines) io.out(flags['json'] ? `${jsonLine({ role, statement: line })}\n` : `${line}\n`)
    return EXIT.ok
  },
}
