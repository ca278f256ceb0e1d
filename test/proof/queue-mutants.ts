/** Copies of the product in which one guard of the queue is taken out, to see that the checker misses it. */
import { LEASE_MS, type Mutant } from './mutants.ts'

const DYING = { deathChance: 0.1 } as const
/** Its handlers come back after their leases are over, when others are at work on the runs. */
const LATE = { blockMs: 2 * LEASE_MS, blockChance: 0.5, jobMs: 0 } as const

const SLOT = 'const slot = mayGo ? slotsOf(key, row.concurrency_limit).findIndex((name) => !active.has(name)) : -1'
const ATTEMPT = 'case when attempt = 0 then 1 else attempt end'

export const QUEUE_MUTANTS: readonly Mutant[] = [
  { without: 'the limit of a concurrency key', breaks: ['exclusion'], edits: [['store/take-keyed.ts', SLOT, 'const slot = 0'], ['store/take-keyed.ts', `active_key: sql.ref('concurrency_key'), fence: counter`, 'active_key: null, fence: counter'], ['store/take-keyed.ts', 'active_key: slotsOf(row.concurrency_key!, slot).at(-1)!', 'active_key: null']] },
  { without: 'the owner in the completion of a batch', breaks: ['holder-only', 'one-run'], worker: LATE, withinMs: 6_000, edits: [['store/transition-batch.ts', 'if (of.every((one) => one.attempt === attempt && one.fence === fence)) return', 'if (attempt) return keys\n  return'], ['store/transition-batch.ts', "${from === 'processing' ? sql`and instance_id = ${of[0]!.instanceId}` : sql``}", '']] },
  { without: 'counting the attempt in the take', breaks: ['attempts'], worker: DYING, edits: [['store/take-batch.ts', 'attempt: sql`attempt + 1`', `attempt: sql\`${ATTEMPT}\``], ['store/take-batch.ts', 'attempt: row.attempt + 1', 'attempt: Math.max(row.attempt, 1)'], ['store/take-keyed.ts', 'attempt: sql<number>`attempt + 1`', `attempt: sql<number>\`${ATTEMPT}\``]] },
  { without: 'the commit before a completion is acknowledged', breaks: ['durable', 'one-run'], worker: DYING, edits: [['runtime/worker/completer.ts', 'const lost = await settle(', 'for (const one of group) one.closed(true)\n      const lost = await settle(']] },
  { without: 'the commit of an enqueue', breaks: ['durable'], withinMs: 4_000, edits: [['runtime/enqueue.ts', 'const there = await settle(store,', 'const there = Math.random() < 0.2 ? new Set<string>() : await settle(store,']] },
  { without: 'raising the fence of a concurrency key', breaks: ['fences'], withinMs: 3_000, edits: [['store/take-keyed.ts', 'set({ counter: fence })', 'set({ counter: sql<bigint>`counter` })']] },
]

/** SQLite has one writer at a time, and so no such guard. */
export const ROW_LOCK_MUTANT: Mutant = { without: 'the locks of the rows that are taken', breaks: ['one-winner', 'attempts', 'ledger-first', 'exclusion', 'no-surprise'], edits: [['dialect/mysql-batch.ts', 'select.forUpdate().skipLocked()', 'select']] }
