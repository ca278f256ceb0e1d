/** Who held what, and when: exclusion, the holder's writes, the lease, the fences. */
import type { Evidence } from '../evidence.ts'
import { Look, type Verdict } from '../promises.ts'
import { acceptedWrites, byFence, describe, heldUntil, leaseUntil, mayBeClosedFrom, refusedWrites, type Tenure } from '../tenures.ts'

/** Clocks of databases tell milliseconds. */
const MARGIN_MS = 5

export function checkOwnership({ tenures, operations }: Evidence): Verdict[] {
  const [winner, exclusion, holder, fences] = [new Look('one-winner'), new Look('exclusion'), new Look('holder-only'), new Look('fences')]
  for (const ofKey of Map.groupBy(tenures, ({ key }) => key).values()) {
    lookAtOverlap(ofKey, 1, winner)
    lookAtWrites(ofKey, holder)
  }
  for (const inScope of Map.groupBy(tenures, ({ scope }) => scope).values()) lookAtOverlap(inScope, inScope[0]!.limit, exclusion)
  for (const oneAtATime of Map.groupBy(tenures, ({ key, scope, limit }) => (limit === 1 ? scope : key)).values()) lookAtLeases(oneAtATime, holder)
  for (const inScope of Map.groupBy(tenures, ({ fenceScope }) => fenceScope).values()) lookAtFences(inScope, fences)
  const passed = operations.filter(({ did, end }) => did === 'guard' && end === 'returned')
  for (const atResource of Map.groupBy(passed, ({ facts }) => facts['resource']).values()) {
    lookAtOrder(atResource.map((one) => ({ name: `write to ${String(one.facts['resource'])}`, from: one.invokedAt, to: one.endedAt, fence: BigInt(String(one.facts['fence'])) })), fences, true)
  }
  return [winner, exclusion, holder, fences].map((look) => look.verdict())
}

/** Held for certain by more than `limit` at once. */
function lookAtOverlap(tenures: readonly Tenure[], limit: number, look: Look): void {
  let open: Tenure[] = []
  for (const tenure of tenures.toSorted((a, b) => a.claim.endedAt - b.claim.endedAt)) {
    open = open.filter((other) => heldUntil(other) > tenure.claim.endedAt)
    if (heldUntil(tenure) > tenure.claim.endedAt) open.push(tenure)
    const [first] = open
    look.that(open.length <= limit, () => `${describe(tenure)} was claimed and renewed while ${describe(first!)} held on${limit > 1 ? `, as one of ${open.length}` : ''}`)
  }
}

/** Nobody comes in before the lease of a living holder is over, and until then the holder is not refused. */
function lookAtLeases(oneAtATime: readonly Tenure[], holder: Look): void {
  const inOrder = oneAtATime.toSorted(byFence)
  for (const [index, tenure] of inOrder.entries()) {
    const until = leaseUntil(tenure) - MARGIN_MS
    const next = inOrder[index + 1]
    if (next) {
      const free = Math.min(until, mayBeClosedFrom(tenure), tenure.provenDeadFrom)
      holder.that(next.claim.endedAt >= free, () => `${describe(next)} was claimed ${Math.round(free - next.claim.endedAt)} ms before the lease of ${describe(tenure)} was over`)
    }
    for (const refused of refusedWrites(tenure)) {
      holder.that(refused.endedAt >= Math.min(until, mayBeClosedFrom(tenure)), () => `${describe(tenure)} was refused its ${refused.did} while its lease ran`)
    }
  }
}

/** Accepted from a holder whose successor had been acknowledged, or after its own end. */
function lookAtWrites(ofKey: readonly Tenure[], holder: Look): void {
  for (const tenure of ofKey) {
    const successor = ofKey.filter(({ fence }) => fence > tenure.fence).reduce((first, { claim }) => Math.min(first, claim.endedAt), Infinity)
    const accepted = acceptedWrites(tenure)
    const closed = accepted.find(({ did }) => did !== 'heartbeat')?.endedAt ?? Infinity
    for (const write of accepted) holder.that(write.invokedAt < successor && write.invokedAt <= closed, () => `${write.did} of ${describe(tenure)} was accepted though the run was no longer its own`)
  }
}

function lookAtFences(inScope: readonly Tenure[], fences: Look): void {
  const seen = new Map<bigint, Tenure>()
  for (const tenure of inScope) {
    const twin = seen.get(tenure.fence)
    fences.that(twin === undefined, () => `${describe(tenure)} and ${describe(twin!)} have one fence`)
    seen.set(tenure.fence, tenure)
  }
  lookAtOrder(inScope.map((tenure) => ({ name: describe(tenure), from: tenure.claim.invokedAt, to: tenure.claim.endedAt, fence: tenure.fence })), fences, false)
}

interface Fenced {
  readonly name: string
  readonly from: number
  readonly to: number
  readonly fence: bigint
}

/** What began when another had ended has the greater fence; or, at a resource, one that is not smaller. */
function lookAtOrder(all: readonly Fenced[], fences: Look, mayRepeat: boolean): void {
  const ended = all.toSorted((a, b) => a.to - b.to)
  let highest: Fenced | undefined
  let at = 0
  for (const one of all.toSorted((a, b) => a.from - b.from)) {
    for (; at < ended.length && ended[at]!.to < one.from; at++) if (highest === undefined || ended[at]!.fence > highest.fence) highest = ended[at]
    const before = highest
    fences.that(before === undefined || before.fence < one.fence || (mayRepeat && before.fence === one.fence), () => `${one.name} has fence ${one.fence}, behind ${before!.fence} of ${before!.name}, which had ended before`)
  }
}
