/** The command line: finds the command, reads its flags, runs it, and is the one place that turns an error into an exit code. */
import { writeSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { invalidOption } from '../model/errors.ts'
import type { Command, FlagValues, Io } from './command.ts'
import { COMMANDS } from './commands.ts'
import { COMMON_FLAGS } from './common-flags.ts'
import { exitCodeOf, EXIT, lineOf } from './exit.ts'
import { version } from './version.ts'

const COMMON_HELP = `
Everywhere:
  --db URL              postgres://…, mysql://… or sqlite:PATH; or RUNLEDGER_DB, or a file named by RUNLEDGER_DB_FILE.
                        Default: a SQLite file of this host (root: /var/lib/runledger/ledger.db)
  --connect-timeout D   how long a database that does not answer is asked again (10s)
  --log-format F        logfmt or json, on stderr
  --json                results as JSON, one object a line, on stdout
  --help, --version
`

function overview(): string {
  const lines = Object.entries(COMMANDS).map(([name, { summary }]) => `  ${name.padEnd(12)}${summary}`)
  return `runledger ${version}: a durable ledger of job runs in your database

Usage: runledger COMMAND [flags] [-- CMD ARG…]

${lines.join('\n')}

runledger COMMAND --help says more.
${COMMON_HELP}`
}

async function run(argv: readonly string[], io: Io): Promise<number> {
  const [name, ...words] = argv
  if (name === undefined) throw invalidOption('command', 'is missing; runledger --help lists them')
  if (name === '--help' || name === '-h' || name === 'help') return say(io, overview())
  if (name === '--version') return say(io, `${version}\n`)
  const entry = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (!entry) throw invalidOption('command', `there is no '${name.slice(0, 40)}'; runledger --help lists them`)
  const command = await entry.load()
  const { flags, before, rest } = parse(command, words)
  if (flags['help']) return say(io, `${command.help.trim()}\n${COMMON_HELP}`)
  if (flags['version']) return say(io, `${version}\n`)
  return command.run({ flags, words: before, rest }, io)
}

/** What stands after the first `--` belongs to the child and is not looked at. */
function parse(command: Command, words: readonly string[]): { flags: FlagValues; before: string[]; rest: string[] } {
  const dashes = words.indexOf('--')
  const ours = dashes < 0 ? words : words.slice(0, dashes)
  try {
    const { values, positionals } = parseArgs({ args: [...ours], options: { ...COMMON_FLAGS, ...command.options }, allowPositionals: true })
    return { flags: values as FlagValues, before: positionals, rest: dashes < 0 ? [] : words.slice(dashes + 1) }
  } catch (error) {
    // The parser's first sentence names the flag; what follows is advice about positionals.
    const [sentence = ''] = (error as Error).message.split(/\. |\n/)
    throw invalidOption(command.name, sentence.charAt(0).toLowerCase() + sentence.slice(1), error)
  }
}

function say(io: Io, text: string): number {
  io.out(text)
  return EXIT.ok
}

const io: Io = { out: writeOut, err: writeErr, env: process.env }

/** Node's stream for stdout is made when it is first needed. A reader that went away (`runledger runs | head`) is no error of ours. */
function writeOut(text: string): void {
  const { stdout } = process
  if (stdout.listenerCount('error') === 0) {
    stdout.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error
    })
  }
  stdout.write(text)
}

const FULL_MS = 1000

/** Not through process.stderr, which makes our descriptor, and that of everybody who shares it, non-blocking. */
function writeErr(text: string): void {
  const bytes = Buffer.from(text)
  const deadline = Date.now() + FULL_MS
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(2, bytes, at)
    } catch (error) {
      // Somebody has made it non-blocking, and it is full. Otherwise nobody listens, and there is nobody left to tell.
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || Date.now() > deadline) return
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)
    }
  }
}

const argv = process.argv.slice(2)
// A password in --db stood on our command line; from here on `ps` shows the command's name instead.
process.title = `runledger ${argv[0] ?? ''}`.trim()

// Not awaited: the bundle is a script.
void run(argv, io).then(
  (code) => void (process.exitCode = code),
  (error: unknown) => {
    io.err(lineOf(error, process.env))
    process.exitCode = exitCodeOf(error)
  },
)
