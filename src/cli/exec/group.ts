/** A process group: signals to all of it, and the knowledge whether anybody is left. */
import { readFileSync, readdirSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** Sends to every process of the group; false when that reached nobody: none is left, or all are another user's (sudo). */
export function signalGroup(pgid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pgid, signal)
  } catch {
    return false
  }
}

const FIRST_LOOK_MS = 5
const LONGEST_PAUSE_MS = 50

/**
 * Resolves when no process of the group is left; after `graceMs` they get SIGKILL. What even that does not end (a process
 * stuck in the kernel on a dead disk, another user's) keeps it waiting: the job is still there, and nobody may be told otherwise.
 */
export async function endOfGroup(pgid: number, graceMs: number): Promise<void> {
  const deadline = performance.now() + graceMs
  for (let pause = FIRST_LOOK_MS, killed = false; isAlive(pgid); pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    const left = deadline - performance.now()
    if (left <= 0 && !killed) killed = signalGroup(pgid, 'SIGKILL')
    await sleep(killed ? pause : Math.min(pause, Math.max(left, 1)))
  }
}

/** A zombie is counted as gone: under a process 1 that does not reap it stays for ever, and it does nothing any more. */
function isAlive(pgid: number): boolean {
  try {
    process.kill(-pgid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
  const states = memberStates(pgid)
  return states === null || states.some((state) => state !== 'Z' && state !== 'X')
}

/** The states of the group's processes as /proc gives them; null without /proc, where zombies cannot be told apart. */
function memberStates(pgid: number): string[] | null {
  let pids: string[]
  try {
    pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  } catch {
    return null
  }
  return pids.flatMap((pid) => {
    const [state, , group] = afterName(pid)
    return state !== undefined && Number(group) === pgid ? [state] : []
  })
}

/** The fields of /proc/PID/stat after the program's name, which may contain spaces and parentheses: state, ppid, pgrp, … */
function afterName(pid: string): string[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  } catch {
    return [] // it is over meanwhile
  }
}
