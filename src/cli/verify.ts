/** `runledger verify`: holds every row against the promises of the ledger. */
import { invalidOption } from '../model/errors.ts'
import { PROMISES } from '../model/finding.ts'
import type { Command } from './command.ts'
import { withLedger } from './database.ts'
import { EXIT } from './exit.ts'
import { text } from './flags.ts'
import { jsonLine } from './log.ts'

const help = `
Usage: runledger verify [--task T] [--json]

Reads the whole ledger in short statements, beside running work, and tells what contradicts a promise, a line a finding:
the number of the promise, the key it is about, and the facts. It changes nothing. What is found was written past the
ledger (by hand, by a restored backup, by a bug); docs/upkeep.md says what to do about it.

  --task T   only this task

${Object.entries(PROMISES).map(([number, promise]) => `  promise ${number.padEnd(3)}${promise}`).join('\n')}

Exit codes: 0 every promise holds; 1 there are findings; 64 usage; 69 the database is unavailable; 78 schema.

Example: runledger verify --json
`

export const verifyCommand: Command = {
  name: 'verify',
  summary: "hold the ledger's rows against its promises",
  help,
  options: { task: { type: 'string' } },
  async run({ flags, words }, io) {
    if (words.length > 0) throw invalidOption('verify', `takes no word, got ${JSON.stringify(words[0]!.slice(0, 40))}`)
    return withLedger(flags, io, async (ledger) => {
      let findings = 0
      const findingsOf = ledger.upkeep.verify({ task: text(flags, 'task') })
      for (;;) {
        const { value, done } = await findingsOf.next()
        if (done) {
          if (!flags['json']) io.out(`${findings === 0 ? 'every promise holds' : `${findings} findings`}: ${value.runs} runs, ${value.lines} lines of history, ${value.effects} effects, ${value.scopes} scopes of fences\n`)
          return findings === 0 ? EXIT.ok : EXIT.found
        }
        findings++
        const { promise, task, key, problem } = value
        io.out(flags['json'] ? `${jsonLine({ promise, task_name: task, key, problem })}\n` : `promise ${promise}: ${key} ${problem}\n`)
      }
    })
  },
}
