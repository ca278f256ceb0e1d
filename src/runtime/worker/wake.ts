/** Waits until there may be something to do: a hint, a wish of our own, or the poll, whichever is first. */

export class Wake {
  #hinted = false
  #resolve: (() => void) | null = null

  /** There may be something now. Heard also when nobody waits yet. */
  hint(): void {
    this.#hinted = true
    this.#resolve?.()
  }

  /** At most `ms`. @returns true for a hint, false when the time is over */
  async wait(ms: number): Promise<boolean> {
    if (!this.#hinted) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, ms)
      this.#resolve = resolve
      await promise
      clearTimeout(timer)
      this.#resolve = null
    }
    const hinted = this.#hinted
    this.#hinted = false
    return hinted
  }
}

/** Between three quarters and five quarters of it, so that many workers that began together do not ask together. */
export function jittered(ms: number): number {
  return ms * (0.75 + Math.random() / 2)
}
