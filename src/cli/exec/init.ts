/** Process 1 of a container: a shell that reaps, with the wrapper as its child. Costs nothing to any other process. */
import { accessSync, constants, readFileSync } from 'node:fs'

/*
 * What a job leaves behind becomes a child of process 1, and Node waits only for children it started itself: measured, a
 * double-forking job piles up zombies under it until the run ends. So process 1 turns into `sh`, which reaps whatever comes
 * while it waits, and starts the same command line again as its child; signals go through, and so does the exit code.
 * dash drops environment variables whose names are no identifiers (`app.mode`): the wrapper takes the environment from
 * /proc/1/environ instead, which still is what process 1 was given.
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
 * There, it restores the environment. Without /bin/sh the wrapper remains process 1: it works, zombies stay until its end.
 */
export function underInit(): void {
  if (process.pid === 1) return becomeInit()
  if (process.env[MARK] !== undefined && process.ppid === 1) restoreEnvironment()
}

function becomeInit(): void {
  if (!isExecutable(SHELL) || process.execve === undefined) return
  const again = [process.execPath, ...process.execArgv, ...process.argv.slice(1)]
  process.execve(SHELL, ['sh', '-c', INIT_SCRIPT, 'runledger-init', ...again], { ...process.env, [MARK]: '1' })
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
