/**
 * A wrapper as `exec` is one, without a database: `node fixture-wrapper.ts [-- ] CMD ARG…`, so that tests can kill, freeze and
 * starve a real process. Settings come by FIXTURE_* variables, which the child does not get to see.
 */
import { appendFileSync, writeSync } from 'node:fs'
import { startChild } from '../../../src/cli/exec/child.ts'
import type { Child } from '../../../src/cli/exec/child.ts'
import { findCommand } from '../../../src/cli/exec/find-command.ts'
import { underInit } from '../../../src/cli/exec/init.ts'
import { exitCodeOf, onSignals } from '../../../src/cli/exec/signals.ts'
import { startWatchdog } from '../../../src/cli/exec/watchdog.ts'

underInit()

const settings: Record<string, string> = {}
const env: NodeJS.ProcessEnv = {}
for (const [name, value] of Object.entries(process.env)) (name.startsWith('FIXTURE_') ? settings : env)[name] = value as string

const instanceId = settings['FIXTURE_INSTANCE'] ?? 'fixture-instance'
const graceMs = Number(settings['FIXTURE_GRACE_MS'] ?? 2000)
const [command = '', ...args] = process.argv.slice(process.argv.indexOf('--') + 1)

/** One JSON line per step, into the file the test names. */
function report(facts: object): void {
  if (settings['FIXTURE_REPORT']) appendFileSync(settings['FIXTURE_REPORT'], `${JSON.stringify(facts)}\n`)
}

function leave(code: number, problem: string): never {
  writeSync(2, `fixture: ${problem}\n`)
  process.exit(code)
}

/** The signals that came before there was a child to hand them to. */
const early: [NodeJS.Signals, 'forward' | 'stop' | 'kill'][] = []
let child: Child | null = null

const removeSignals = onSignals((signal, order) => {
  report({ step: 'signal', signal, order })
  if (child === null) return void early.push([signal, order])
  if (order === 'forward') child.signal(signal)
  else void child.terminate(order === 'kill' ? 'SIGKILL' : signal)
})

const found = findCommand(command, env, process.cwd())
if ('problem' in found) leave(found.exitCode, found.problem)

const shell = settings['FIXTURE_SHELL']?.split(' ') as [string, ...string[]] | undefined
const watchdog = await startWatchdog({ instanceId, graceMs, ...(shell && { shell }) })
if (watchdog.problem !== null) report({ step: 'unwatched', problem: watchdog.problem })

const started = await startChild({
  path: found.path,
  argv0: command,
  args,
  env,
  instanceId,
  tailBytes: Number(settings['FIXTURE_TAIL_BYTES'] ?? 1000),
  graceMs,
  watchdog,
})
if ('problem' in started) leave(started.exitCode, started.problem)
child = started
report({ step: 'started', pid: child.pid, wrapper: process.pid })
for (const [signal] of early) void child.terminate(signal)

/** Stands for the heartbeats: while this process is frozen, none comes. */
const leaseMs = Number(settings['FIXTURE_LEASE_MS'] ?? 0)
if (leaseMs > 0) watchdog.lease(leaseMs)
const beats = leaseMs > 0 ? setInterval(() => watchdog.lease(leaseMs), Number(settings['FIXTURE_BEAT_MS'] ?? leaseMs / 3)) : undefined

const end = await child.ended
report({ step: 'ended', exitCode: end.exitCode, signal: end.signal, tail: end.outputTail.toString('latin1') })
clearInterval(beats)
removeSignals()
const lost = await child.flushed()
report({ step: 'flushed', lost: lost?.message ?? null, rssMiB: Math.round(process.resourceUsage().maxRSS / 1024) })
process.exit(exitCodeOf(end))
