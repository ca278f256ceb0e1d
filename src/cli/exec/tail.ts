/** The last bytes of a job's output, in a ring that is allocated once and never grows. */

export interface Tail {
  /** Takes the bytes up (copies what it keeps). */
  add(chunk: Uint8Array): void
  /** The last bytes, oldest first, and how many came in all. */
  contents(): Buffer
  readonly total: number
}

/** Keeps the last `size` bytes of whatever is added, from however many streams, in the order of arrival. */
export function startTail(size: number): Tail {
  const ring = Buffer.alloc(size)
  let next = 0
  let total = 0

  function add(chunk: Uint8Array): void {
    total += chunk.byteLength
    if (size === 0) return
    const kept = chunk.byteLength > size ? chunk.subarray(chunk.byteLength - size) : chunk
    const upToEnd = Math.min(kept.byteLength, size - next)
    ring.set(kept.subarray(0, upToEnd), next)
    ring.set(kept.subarray(upToEnd), 0)
    next = (next + kept.byteLength) % size
  }

  function contents(): Buffer {
    if (total <= size) return Buffer.from(ring.subarray(0, total))
    return Buffer.concat([ring.subarray(next), ring.subarray(0, next)])
  }

  return {
    add,
    contents,
    get total() {
      return total
    },
  }
}
