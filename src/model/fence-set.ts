/** The fences of a scope, for millions of them: they are dense, so 32 share a number. */
export class FenceSet {
  readonly #masks = new Map<number, number>()
  #greatest = 0n

  get greatest(): bigint {
    return this.#greatest
  }

  /** @returns false when it was there already */
  add(fence: bigint): boolean {
    if (fence > this.#greatest) this.#greatest = fence
    const [place, bit] = [Number(fence >> 5n), 1 << Number(fence & 31n)]
    const mask = this.#masks.get(place) ?? 0
    if ((mask & bit) !== 0) return false
    this.#masks.set(place, mask | bit)
    return true
  }
}
