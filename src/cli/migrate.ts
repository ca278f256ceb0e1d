/** `runledger migrate [up|status]` */
import { migrate, migrationStatus } from '../index.ts'
import { durationMs } from '../model/duration.ts'
import { invalidOption } from '../model/errors.ts'
import type { Command } from './command.ts'
import { connectTimeout, databaseUrl } from './database.ts'
import { EXIT } from './exit.ts'
import { jsonLine } from './log.ts'

const help = `
Usage: runledger migrate [up|status] [--db URL] [--json]

up (the default) applies what the schema lacks; any number of hosts may do it at once, and one that was killed is
simply started again. status lists every migration and changes nothing; it exits 78 when the schema is behind or ahead.
A SQLite file migrates itself.

Example: runledger migrate --db postgres://app@db.example/app
`

export const migrateCommand: Command = {
  name: 'migrate',
  summary: 'bring the schema of a database server up to date',
  help,
  options: {},
  async run({ flags, words }, io) {
    const [verb = 'up', ...more] = words
    if ((verb !== 'up' && verb !== 'status') || more.length > 0) throw invalidOption('migrate', `takes up or status, got ${JSON.stringify(words.join(' ').slice(0, 60))}`)
    const url = databaseUrl(flags, io.env)
    const patienceMs = durationMs('connect-timeout', connectTimeout(flags), { zero: true })
    if (verb === 'up') {
      const applied = await migrate(url, patienceMs)
      io.out(flags['json'] ? `${jsonLine({ applied })}\n` : applied.length === 0 ? 'the schema is up to date\n' : applied.map((name) => `applied ${name}\n`).join(''))
      return EXIT.ok
    }
    const state = await migrationStatus(url, patienceMs)
    for (const { name, appliedAt, known } of state) {
      const word = !known ? 'unknown to this version' : appliedAt ? `applied ${appliedAt.toISOString()}` : 'missing'
      io.out(flags['json'] ? `${jsonLine({ name, applied_at: appliedAt, known })}\n` : `${name}  ${word}\n`)
    }
    return state.every(({ appliedAt, known }) => known && appliedAt) ? EXIT.ok : EXIT.schema
  },
}
