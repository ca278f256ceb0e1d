/** `runledger doctor`: what is around the ledger, what is wrong with it, and what to do. */
import { doctor, type Checkup } from '../index.ts'
import { durationMs } from '../model/duration.ts'
import { invalidOption } from '../model/errors.ts'
import { paint } from './colour.ts'
import type { Command } from './command.ts'
import { connectTimeout, databaseUrl } from './database.ts'
import { jsonLine } from './log.ts'

const help = `
Usage: runledger doctor [--db URL] [--json]

Looks at the connection and the server, the schema, the difference of the clocks, this user's rights, isolation,
collations, time zones, a pooler in between (of a SQLite file: its journal and its modes), who launches each task from
where, two schedules for one task, late heartbeats, and leases that nobody closes. Each line is ok, a warning or a
problem, with what to do. Changes nothing.

Exit codes: 0 all is well; 1 warnings; 2 problems, an unreachable database among them; 64 usage.

Example: runledger doctor --db postgres://app@db.example/app
`

const COLOURS = { ok: 'green', warning: 'yellow', problem: 'red' } as const
const EXITS = { ok: 0, warning: 1, problem: 2 } as const

export const doctorCommand: Command = {
  name: 'doctor',
  summary: 'look at everything around the ledger',
  help,
  options: {},
  async run({ flags, words }, io) {
    if (words.length > 0) throw invalidOption('doctor', `takes no word, got ${JSON.stringify(words[0]!.slice(0, 40))}`)
    let worst = 0
    for await (const checkup of doctor(databaseUrl(flags, io.env), durationMs('connect-timeout', connectTimeout(flags), { zero: true }))) {
      worst = Math.max(worst, EXITS[checkup.state])
      io.out(flags['json'] ? `${jsonLine({ check: checkup.check, state: checkup.state, said: checkup.said, todo: checkup.todo })}\n` : told(checkup))
    }
    return worst
  },
}

function told({ check, state, said, todo }: Checkup): string {
  return `${paint(state.padEnd(9), COLOURS[state])}${check}: ${said}\n${todo === null ? '' : `         to do: ${todo}\n`}`
}
