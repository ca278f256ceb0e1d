/** Copies of the product in which one guard is taken out, to see that the checker misses it. */
import type { Edit } from '../../scripts/proof/programs.ts'
import type { PromiseName } from '../../src/proof/promises.ts'
import type { WorkerSpec } from '../../src/proof/worker-spec.ts'

export interface Mutant {
  /** What was taken out. */
  readonly without: string
  /** Where the checker must complain; any of them is right. */
  readonly breaks: readonly PromiseName[]
  /** What brings it to light. */
  readonly worker?: Partial<WorkerSpec>
  /** Where the workers cannot come to their end, so that nobody waits for it. */
  readonly withinMs?: number
  readonly edits: readonly Edit[]
}

/** A statement in the middle of a transaction fails now and then, in the words of every driver: rolled back and tried again, it does no harm. */
export const FAILING_STATEMENT: Mutant['edits'] = [['store/transition.ts', 'if (history) await', `if (history && Math.random() < 0.3) throw Object.assign(new Error('injected'), { errcode: 5, code: '40P01', errno: 1213 })\n  if (history) await`]]

export const LEASE_MS = 500
/** Holds its run beyond its lease, a little: then its successor is still at work. */
const SLOW = { blockMs: 1.3 * LEASE_MS, blockChance: 0.4, jobMs: 250 } as const
const DYING = { deathChance: 0.3 } as const

const OWNER = `if (from === 'processing') update = update.where('instance_id', '=', of.instanceId).where('fence', '=', of.fence)`
const SEEN = `.where('status', '=', from)\n    .where('attempt', '=', of.attempt)`

export const MUTANTS: readonly Mutant[] = [
  { without: 'the owner in the guarded write', breaks: ['holder-only', 'one-run'], worker: SLOW, edits: [['store/transition.ts', OWNER, ''], ['store/transition.ts', `.where('attempt', '=', of.attempt)`, `.where('attempt', from === 'processing' ? '>=' : '=', of.attempt)`]] },
  { without: 'the owner in the heartbeat', breaks: ['holder-only'], worker: SLOW, edits: [['store/close.ts', `.where('instance_id', '=', of.instanceId)\n      .where('attempt', '=', of.attempt)\n      .where('fence', '=', of.fence)\n      .where('status', '=', 'processing')`, `.where('status', '=', 'processing')`]] },
  { without: 'the state and the attempt in the guarded write', breaks: ['one-winner', 'attempts', 'holder-only'], worker: SLOW, edits: [['store/transition.ts', SEEN, '']] },
  { without: 'active_key', breaks: ['exclusion'], edits: [['store/claim.ts', 'active_key: concurrencyKey', 'active_key: null']] },
  { without: 'counting the attempt in the claim', breaks: ['attempts'], worker: DYING, edits: [['store/claim.ts', 'const attempt = run.attempt + 1', 'const attempt = Math.max(run.attempt, 1)']] },
  { without: 'the limit of attempts', breaks: ['attempts', 'no-surprise'], worker: { ...DYING, maxAttempts: 1 }, withinMs: 8_000, edits: [['store/lost.ts', 'cancelled || run.attempt >= run.maxAttempts', 'cancelled']] },
  { without: 'rollback', breaks: ['attempts', 'durable', 'no-surprise'], edits: [...FAILING_STATEMENT, ['dialect/sqlite.ts', 'retryTransient(diagnose, () => db.transaction().execute(work))', 'retryTransient(diagnose, () => work(db as never))']] },
  { without: 'raising the fence', breaks: ['fences'], edits: [['dialect/sqlite.ts', 'do update set counter = counter + 1', 'do update set counter = counter + 0'], ['store/fence.ts', 'else counter end + 1`', 'else counter end + 0`']] },
  { without: 'the fence at the resource', breaks: ['fences'], worker: SLOW, edits: [['dialect/sqlite.ts', `guardFence('sqlite', on as Kysely<unknown>, table(FENCED_RESOURCES), resource, token)`, 'Promise.resolve(on !== null && resource !== String(token) && guardFence !== null && FENCED_RESOURCES !== null)']] },
  { without: "the database's clock, with a host that is five seconds ahead", breaks: ['holder-only'], worker: SLOW, edits: [['store/read-run.ts', `sql.ref('lease_seconds'))} < \${store.now()}`, `sql.ref('lease_seconds'))} < \${store.instant(new Date(Date.now() + (process.pid % 2) * 5_000))}`]] },
  { without: 'proof of death', breaks: ['holder-only'], edits: [['runtime/process-identity.ts', `return traceOf(identity) === 'gone'`, `return identity !== null`]] },
  { without: 'the end of a lease', breaks: ['recovery'], worker: DYING, withinMs: 6_000, edits: [['store/read-run.ts', `(status = 'processing' and `, `(status = 'processing' and 1 = 0 and `]] },
  { without: 'the line of a conflict', breaks: ['one-winner'], edits: [['store/conflict.ts', 'await insertLine(', 'if (Math.random() < 0.9) await insertLine(']] },
  { without: 'telling a conflict from a failure', breaks: ['conflicts'], edits: [['store/conflict.ts', `outcome: 'conflict'`, `outcome: 'failed'`]] },
  { without: 'the commit of a completion', breaks: ['durable'], edits: [['store/close.ts', `return store.statement((db) => transition(store, db, { move: 'complete', of, ending }))`, `return Math.random() < 0.3 ? Promise.resolve(true) : store.statement((db) => transition(store, db, { move: 'complete', of, ending }))`]] },
  { without: 'the row behind a claim', breaks: ['ledger-first'], edits: [['dialect/sqlite.ts', 'const columns = Object.keys(values)', 'if (Math.random() < 0.2) return fence\n  const columns = Object.keys(values)']] },
  { without: 'doubt about an effect', breaks: ['effects'], worker: DYING, edits: [['runtime/effect.ts', 'if (doubt && failInDoubt) throw inDoubt(doubt)', ''], ['runtime/effect.ts', `if (seen.status === 'done') return { status: 'done', record: seen }`, '']] },
]
