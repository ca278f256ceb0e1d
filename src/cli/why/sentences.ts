/** Sentences about holders, pauses and refused launches that the stories of a run and of a task share. */
import type { HeldRun, HistoryLine, Pause, Run, TaskLauncher } from '../../index.ts'
import { shortInstant, span } from '../table.ts'

/** `server-02 pid 18342 (cron)` */
export function whoHas(run: Pick<Run, 'host' | 'pid' | 'launcher'>): string {
  return `${run.host ?? 'an unknown host'} pid ${run.pid ?? '?'} (${run.launcher ?? 'unknown launcher'})`
}

/** On what evidence the holder counts as alive or dead. */
export function evidenceOf({ run, evidence }: HeldRun, now: Date): string {
  const beat = `its last heartbeat came ${span(run.heartbeatAt, now)} ago`
  if (evidence.process === 'gone') return `It counts as dead: process ${run.pid} is gone from this host, whatever its lease says; ${beat}.`
  if (evidence.verdict === 'dead') return `It counts as dead: ${beat}, and its lease ran out ${span(evidence.leaseEndsAt, now)} ago, at ${shortInstant(evidence.leaseEndsAt)}.`
  const process = evidence.process === 'here' ? 'its process runs on this host' : `whether its process lives can only be seen on ${run.host}`
  return `It counts as alive: ${beat}, and its lease lasts until ${shortInstant(evidence.leaseEndsAt)}, ${span(now, evidence.leaseEndsAt)} from now, if it is not renewed; ${process}.`
}

export function aboutPause({ at, by, because }: Pause): string {
  return `The task is paused since ${shortInstant(at)}${by === null ? '' : ` by ${by}`}${because === null ? '' : `: ${because}`}. Until it is resumed nothing of it begins, on any host.`
}

export function refusals(conflicts: readonly HistoryLine[]): string[] {
  if (conflicts.length === 0) return []
  const line = ({ endedAt, reason, host, pid, launcher, taskKey, heldByKey, heldByHost, heldByPid }: HistoryLine) =>
    `  ${shortInstant(endedAt)}  ${reason}: ${host} pid ${pid} (${launcher}) wanted ${taskKey}${heldByHost === null ? '' : `; ${heldByKey} was held by ${heldByHost} pid ${heldByPid}`}`
  return ['', 'Launches that were refused, the newest first:', ...conflicts.map(line)]
}

/** Where a launch should have come from. */
export function seenLaunchers(launchers: readonly TaskLauncher[]): string[] {
  if (launchers.length === 0) return []
  return [`It was launched by ${launchers.map(({ launcher, host, lastSeenAt }) => `${launcher} on ${host} (last seen ${shortInstant(lastSeenAt)}, right to the hour)`).join('; ')}.`]
}

/** `  runledger cancel KEY    what for`, in one column. */
export function advice(actions: readonly (readonly [string, string])[]): string[] {
  if (actions.length === 0) return []
  const width = Math.max(...actions.map(([command]) => command.length))
  return ['', 'What you can do:', ...actions.map(([command, why]) => `  ${command.padEnd(width)}   ${why}`)]
}
