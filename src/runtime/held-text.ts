/** Runs that are held, and the names of such, as one text: for the thread of the heartbeats, a thousand at a time. */
import type { HeldRun } from './group-heart.ts'

/** No key has a control character. */
const SEPARATOR = '\n'

export function heldText(runs: readonly HeldRun[]): string {
  return runs.map(({ of, claimedAt }) => `${of.instanceId} ${of.attempt} ${of.fence} ${claimedAt} ${of.taskKey}`).join(SEPARATOR)
}

export function heldOf(text: string): HeldRun[] {
  return text === '' ? [] : text.split(SEPARATOR).map(heldRun)
}

export function namesText(names: readonly string[]): string {
  return names.join(SEPARATOR)
}

export function namesOf(text: string): string[] {
  return text === '' ? [] : text.split(SEPARATOR)
}

/** A key may have spaces; what stands before it has none. */
function heldRun(line: string): HeldRun {
  const [instanceId = '', attempt, fence = '', claimedAt] = line.split(' ', 4)
  const taskKey = line.slice(instanceId.length + attempt!.length + fence.length + claimedAt!.length + 4)
  return { of: { taskKey, instanceId, attempt: Number(attempt), fence: BigInt(fence) }, claimedAt: Number(claimedAt) }
}
