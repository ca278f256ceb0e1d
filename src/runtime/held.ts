/**
 * The attempts that this process holds. A claim whose answer was lost is recognised by its instance in the row, so one
 * that has been handed out already, to another launch of the same key, must not be handed out again.
 */
import type { Holder } from '../model/run.ts'

const held = new Set<string>()

/** @returns false when this very attempt is held already */
export function hold(of: Holder): boolean {
  if (isHeld(of)) return false
  held.add(nameOf(of))
  return true
}

export function isHeld(of: Holder): boolean {
  return held.has(nameOf(of))
}

/** After its closing write: the row cannot be taken for ours any more. */
export function letGo(of: Holder): void {
  held.delete(nameOf(of))
}

function nameOf({ instanceId, fence, taskKey }: Holder): string {
  return `${instanceId} ${fence} ${taskKey}`
}
