/** How long a piece of work takes when nothing else is in its way. */

/** Milliseconds; the best of three, since a busy machine may stop the process in the middle of any one. */
export function milliseconds(work: () => unknown): number {
  const once = (): number => {
    const began = performance.now()
    work()
    return performance.now() - began
  }
  return Math.min(once(), once(), once())
}
