/** Tenures: from a claim that was acknowledged to the last that is known of its holder. */
import type { History, Operation } from './read-history.ts'

export interface Tenure {
  readonly key: string
  readonly task: string
  readonly attempt: number
  readonly fence: bigint
  readonly instance: string
  readonly maxAttempts: number
  readonly claim: Operation
  /** Everything its holder asked of the ledger, in order; the claim is not among it. */
  readonly asked: readonly Operation[]
  /** What excludes others while it lasts, and how many of them go at a time. */
  readonly scope: string
  readonly limit: number
  /** Where its fence grows. */
  readonly fenceScope: string
  /** Its death frees the run at once from here on; Infinity where nobody can prove it, or it lived. */
  readonly provenDeadFrom: number
}

/** A run that a worker of the queue had claimed, as its handler began. */
const TAKEN = 'taken'
const WRITES = new Set(['heartbeat', 'complete', 'fail', 'release'])
const CLOSINGS = new Set(['complete', 'fail', 'release'])

export function tenuresOf({ operations, deadFrom }: History): Tenure[] {
  const asked = Map.groupBy(operations.filter(({ end, facts }) => end !== 'seen' && facts['fence'] !== undefined), nameOf)
  return claimsOf(operations)
    .map((claim): Tenure => {
      const { facts, by } = claim
      const [key, task] = [String(facts['key']), String(facts['task'])]
      return {
        key,
        task,
        attempt: Number(facts['attempt']),
        fence: BigInt(String(facts['fence'])),
        instance: String(facts['instance']),
        maxAttempts: Number(facts['maxAttempts']),
        claim,
        asked: (asked.get(nameOf(claim)) ?? []).filter(({ did }) => did !== 'claim'),
        scope: String(facts['scope']),
        limit: Number(facts['limit']),
        fenceScope: claim.did === TAKEN ? String(facts['scope']) : task,
        provenDeadFrom: facts['provable'] === true ? (deadFrom.get(by) ?? Infinity) : Infinity,
      }
    })
}

/** A worker of the queue claims many runs at a time, and says so of each when its handler begins: some time after it was ready itself. */
function claimsOf(operations: readonly Operation[]): Operation[] {
  const ready = new Map(operations.filter(({ did }) => did === 'ready').map(({ by, invokedAt }) => [by, invokedAt]))
  return operations.flatMap((one) => {
    if (one.did === TAKEN) return [{ ...one, invokedAt: ready.get(one.by)! }]
    return one.did === 'claim' && one.end === 'returned' && one.facts['got'] === 'claimed' ? [one] : []
  })
}

function nameOf({ by, facts }: Operation): string {
  return `${by} ${String(facts['key'])} ${String(facts['fence'])}`
}

export function describe({ key, attempt, fence, claim }: Tenure): string {
  return `${key} attempt ${attempt} (fence ${fence}, ${claim.by})`
}

/** In the order of their fences, which is that of the claims. */
export function byFence(a: Tenure, b: Tenure): number {
  return a.fence < b.fence ? -1 : a.fence > b.fence ? 1 : a.claim.endedAt - b.claim.endedAt
}

/** Writes that only a holder may make, and that the ledger accepted. */
export function acceptedWrites({ asked }: Tenure): Operation[] {
  return asked.filter(({ did, end }) => WRITES.has(did) && end === 'returned')
}

export function refusedWrites({ asked }: Tenure): Operation[] {
  return asked.filter(({ did, end, facts }) => WRITES.has(did) && end === 'refused' && facts['code'] === 'LEASE_LOST')
}

/** When its holder may first have given it up; Infinity when it never asked for that. */
export function mayBeClosedFrom({ asked }: Tenure): number {
  return asked.find(({ did, end }) => CLOSINGS.has(did) && end !== 'refused')?.invokedAt ?? Infinity
}

export function wasAsked({ asked }: Tenure, what: string): boolean {
  return asked.some(({ did }) => did === what)
}

/** Until when it held for certain: a write that was accepted later proves that nobody had it in between. */
export function heldUntil(tenure: Tenure): number {
  return acceptedWrites(tenure).at(-1)?.invokedAt ?? tenure.claim.endedAt
}

/** Its lease lasts at least until then: the database counted from a moment after the claim or the renewal was sent. */
export function leaseUntil(tenure: Tenure): number {
  const renewed = tenure.asked.filter(({ did, end }) => did === 'heartbeat' && end === 'returned').at(-1)
  return (renewed ?? tenure.claim).invokedAt + Number(tenure.claim.facts['leaseMs'])
}
