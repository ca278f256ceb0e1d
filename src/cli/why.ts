/** `runledger why KEY|TASK`: in words why a run or a task is where it is, and what can be done. */
import type { Operator } from '../index.ts'
import { invalidOption } from '../model/errors.ts'
import type { Command } from './command.ts'
import { withLedger } from './database.ts'
import { EXIT } from './exit.ts'
import { jsonLine } from './log.ts'
import { tellAbsent } from './why/absent-story.ts'
import { tellRun } from './why/run-story.ts'
import { tellTask } from './why/task-story.ts'
import { reasonsJson } from './why/reasons-json.ts'

const help = `
Usage: runledger why KEY|TASK [--json]

Says in words why a run is not running now, or has not ended: who holds it since when and on what evidence that counts
as alive or dead, what is in its way, when it is due, which launches were refused; and what you can do about it. Of a
task: what holds it up, which window should have run, how it ended last. Changes nothing. Run it on the host of the holder,
where it can be: there it also sees whether the process lives.

Exit codes: 0 told; 1 nothing is recorded of it; 64 usage; 69 the database is unavailable; 78 schema.

Example: runledger why daily_news
`

export const whyCommand: Command = {
  name: 'why',
  summary: 'say why a run or a task is where it is, and what can be done',
  help,
  options: {},
  async run({ flags, words }, io) {
    const [subject, ...more] = words
    if (subject === undefined || subject === '' || more.length > 0) throw invalidOption('why', 'takes one key or task, such as daily_news:2026-09-20-18:00 or daily_news')
    const reasons = await withLedger(flags, io, (ledger) => ledger.operator.why(subject))
    if (flags['json']) io.out(`${jsonLine(reasonsJson(reasons))}\n`)
    else io.out(`${tell(reasons).join('\n')}\n`)
    return EXIT.ok
  },
}

function tell(reasons: Awaited<ReturnType<Operator['why']>>): string[] {
  if (reasons.about === 'run') return tellRun(reasons)
  return reasons.about === 'task' ? tellTask(reasons) : tellAbsent(reasons)
}
