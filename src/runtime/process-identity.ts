/**
 * Proves that a process of this host is gone, so that a crash frees its run as fast as the kernel frees a lock.
 *
 * A pid alone proves nothing: it is used again, after a reboot and in every container. So an identity names the boot,
 * the pid namespace, and each process by pid and start time (proc(5): field 22 of /proc/PID/stat). Without /proc there
 * is no identity and no proof; then the lease decides alone.
 */
import { readFileSync, readlinkSync } from 'node:fs'

/** The identity of some processes of this host that live or die together as one owner; null where it cannot be had. */
export function processIdentity(pids: readonly number[]): string | null {
  const scope = ownScope()
  const starts = pids.map((pid) => [pid, startTime(pid)] as const)
  if (scope === null || starts.some(([, start]) => start === null)) return null
  return [scope, ...starts.map(([pid, start]) => `${pid}:${start}`)].join('/')
}

/**
 * True only when the identity was made in this boot and this pid namespace, and none of its processes exists any more.
 * Anything else (another host, another container, an unreadable /proc) is no proof.
 */
export function isProvablyGone(identity: string | null): boolean {
  return traceOf(identity) === 'gone'
}

/** What this host can tell of the processes of an identity: `unknown` of those of another host, boot or container. */
export function traceOf(identity: string | null): 'here' | 'gone' | 'unknown' {
  if (identity === null) return 'unknown'
  const [boot, namespace, ...processes] = identity.split('/')
  if (ownScope() !== `${boot}/${namespace}` || processes.length === 0) return 'unknown'
  const isGone = (process: string) => {
    const [pid, start] = process.split(':')
    return startTime(Number(pid)) !== start
  }
  return processes.every(isGone) ? 'gone' : 'here'
}

let scope: string | null | undefined

function ownScope(): string | null {
  if (scope !== undefined) return scope
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    scope = `${boot}/${readlinkSync('/proc/self/ns/pid').replace(/\D/g, '')}`
  } catch {
    scope = null // No Linux, or no /proc: no proof on this host.
  }
  return scope
}

/** Clock ticks after boot at which a process started; null when there is none, or only its zombie. */
function startTime(pid: number): string | null {
  let stat: string
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch (error) {
    // ENOENT and ESRCH say that it is gone; anything else says nothing, and what exists must not look gone.
    return ['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '') ? null : 'unknown'
  }
  // The command name stands in parentheses and may have any character, also a closing one.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const state = fields[0]
  return state === 'Z' || state === 'X' ? null : (fields[19] ?? null)
}
