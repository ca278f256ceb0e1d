/** Process 1 of a container: a shell that reaps, with the wrapper as its child. Costs nothing to any other process. */
import { accessSync, constants, readFileSync } from 'node:fs'

/*
 * What a job leaves behind becomes a child of process 1, and Node waits only for children it started itself: measured, a
 * double-forking job piles up zombies under it until the run ends. So process 1 turns into `sh`, which reaps whatever comes
 * while it waits, and starts the same command line again as its child; signals go through, and so does the exit code.
 * dash drops environment variables whose names are no identifiers (`app.mode`): the wrapper takes the environment from
 * /proc/1/environ instead, which still is what process 1 was given. The value of --db goes by the environment as well:
 * it may have a password, and the shell's command line stays what it is for everybody to read.
 */
const MARK = 'RUNLEDGER_UNDER_INIT'
const SHELL = '/bin/sh'

const INIT_SCRIPT = String.raw`# runledger init: passes signals on, reaps orphans
for s in HUP INT QUIT TERM USR1 USR2; do trap "early=$s; kill -$s \$job" $s; done
job= early=
exec 3<&0
"$@" <&3 3<&- & job=$!
exec 2>/dev/null
[ "$early" ] && kill -"$early" "$job"
while :; do
  wait "$job"
  code=$?
  kill -0 "$job" || exit "$code"
done
`

/**
 * To be called first of all. In process 1 it does not return: the same command line starts again under the shell.
 * There, it restores the environment and returns the value of --db, if one was given.
 * Without /bin/sh the wrapper remains process 1: it works, zombies stay until its end.
 */
export function underInit(): string | undefined {
  if (process.pid === 1) becomeInit()
  const url = process.env[MARK]
  if (url === undefined || process.ppid !== 1) return undefined
  restoreEnvironment()
  return url === '' ? undefined : url
}

function becomeInit(): void {
  if (!isExecutable(SHELL) || process.execve === undefined) return
  const { words, url } = withoutDatabase(process.argv.slice(1))
  const again = [process.execPath, ...process.execArgv, ...words]
  process.execve(SHELL, ['sh', '-c', INIT_SCRIPT, 'runledger-init', ...again], { ...process.env, [MARK]: url })
}

/** `--db URL` and `--db=URL` taken out of what stands before the job's own command line; the last one counts. */
function withoutDatabase(given: readonly string[]): { words: string[]; url: string } {
  const words = [...given]
  let url = ''
  for (let at = 0; at < words.length && words[at] !== '--'; ) {
    const value = words[at] === '--db' ? words[at + 1] : /^--db=([^]*)/.exec(words[at]!)?.[1]
    if (value === undefined) at++
    else words.splice(at, words[at] === '--db' ? 2 : 1)
    url = value ?? url
  }
  return { words, url }
}

function restoreEnvironment(): void {
  const given = processOneEnvironment()
  if (given !== null) for (const name of Object.keys(process.env)) delete process.env[name]
  Object.assign(process.env, given)
  delete process.env[MARK]
}

function processOneEnvironment(): Record<string, string> | null {
  try {
    const entries = readFileSync('/proc/1/environ', 'utf8').split('\0').filter((entry) => entry.includes('='))
    return Object.fromEntries(entries.map((entry) => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)]))
  } catch {
    return null
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
