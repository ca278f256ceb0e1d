/** Reads many rows in the order of an instant, a page at a time and each row once, while others add and delete. */

export interface Place {
  readonly id: string
  readonly at: Date
}

/**
 * Instants come back in milliseconds, though the database may have microseconds; so a page begins with the last
 * millisecond of the page before and passes over what was seen of it.
 * @param read the rows from an instant on (null: from the first), in its order, at most so many
 */
export async function* pagesByInstant<T>(size: number, read: (from: Date | null, limit: number) => Promise<T[]>, placeOf: (row: T) => Place): AsyncGenerator<T[]> {
  let from: Date | null = null
  let seen = new Set<string>()
  for (;;) {
    const page = await read(from, size + seen.size)
    const fresh = page.filter((row) => !seen.has(placeOf(row).id))
    if (fresh.length === 0) return
    yield fresh
    const last = placeOf(fresh.at(-1)!).at
    const isOfLast = ({ at }: Place) => at.getTime() === last.getTime()
    const before = from !== null && isOfLast({ id: '', at: from }) ? [...seen] : []
    seen = new Set([...before, ...fresh.map(placeOf).filter(isOfLast).map(({ id }) => id)])
    from = last
  }
}
