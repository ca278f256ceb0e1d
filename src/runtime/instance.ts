/** Who we are: one start of one process, as it stands in the rows of what it holds. */
import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { isatty } from 'node:tty'
import { v7 as uuidv7 } from 'uuid'
import { invalidOption } from '../model/errors.ts'
import { checkKey } from '../model/names.ts'
import type { Instance } from '../model/run.ts'
import { processIdentity } from './process-identity.ts'

const MAX_ID_LENGTH = 36
const MAX_IDENTITY_LENGTH = 200
const MAX_HOST_LENGTH = 255
const MAX_LAUNCHER_LENGTH = 100

/**
 * @param helpers pids of processes without whose death this instance is not dead either (the watchdog of `exec`)
 * @param owner the process that does the work; its death proves nothing unless it is `provable`
 * @throws INVALID_OPTION for an id that no column could hold
 */
export function newInstance(id: string = uuidv7(), helpers: readonly number[] = [], owner = { pid: process.pid, provable: true }): Instance {
  const identity = owner.provable ? processIdentity([owner.pid, ...helpers]) : null
  return {
    id: checkInstanceId(id),
    host: hostname().slice(0, MAX_HOST_LENGTH), // Two hosts that differ only beyond it still differ by instance id.
    pid: owner.pid,
    processIdentity: identity !== null && identity.length <= MAX_IDENTITY_LENGTH ? identity : null, // A part of it would prove too much.
    launcher: findLauncher(process.env).slice(0, MAX_LAUNCHER_LENGTH),
  }
}

/** @throws INVALID_OPTION */
export function checkInstanceId(id: string): string {
  if (id.length > MAX_ID_LENGTH) throw invalidOption('instance', `is ${id.length} characters long; at most ${MAX_ID_LENGTH} are accepted`)
  return checkKey('instance', id)
}

/** Programs that launch jobs, by the name of their process. */
const LAUNCHERS: Readonly<Record<string, string>> = { cron: 'cron', crond: 'cron', anacron: 'cron', atd: 'at', supervisord: 'supervisord', supercronic: 'cron', 'containerd-shim': 'container', runsvdir: 'runit' }
const SHELLS = new Set(['sh', 'dash', 'bash', 'zsh', 'ksh', 'fish', 'busybox', 'ash', 'sudo', 'su', 'runledger', 'node', 'env', 'timeout', 'nice', 'ionice'])

/**
 * What started this process: the first known launcher above it, `tty` for a person at a terminal, else the name of the
 * first ancestor that is no shell. `RUNLEDGER_LAUNCHER` overrules.
 */
export function findLauncher(env: NodeJS.ProcessEnv): string {
  if (env['RUNLEDGER_LAUNCHER']) return env['RUNLEDGER_LAUNCHER'].replace(/[^\w.@:/-]/g, '_')
  const ancestors = namesOfAncestors(process.ppid)
  const known = ancestors.map((name) => LAUNCHERS[name]).find((launcher) => launcher !== undefined)
  if (known !== undefined) return known
  if (env['INVOCATION_ID'] !== undefined && ancestors.at(-1) === 'systemd') return 'systemd'
  if (isatty(0)) return 'tty'
  return ancestors.find((name) => !SHELLS.has(name)) ?? ancestors[0] ?? 'unknown'
}

function namesOfAncestors(pid: number): string[] {
  const names: string[] = []
  try {
    for (let at = pid; at > 0 && names.length < 12; ) {
      const stat = readFileSync(`/proc/${at}/stat`, 'utf8')
      names.push(stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')')))
      at = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
    }
  } catch {
    // An ancestor ended while we looked, or there is no /proc: what we have is enough for a label.
  }
  return names
}
