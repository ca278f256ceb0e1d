/** Who held what, and when: exclusion, the holder's writes, the lease, the fences. */
import type { Evidence } from '../evidence.ts'
import { Look, type Verdict } from '../promises.ts'
import { acceptedWrites, describe, heldUntil, leaseUntil, mayBeClosedFrom, refusedWrites, type Tenure } from '../tenures.ts'

/** Clocks of databases tell milliseconds. */
const MARGIN_MS = 5

export function checkOwnership({ tenures, operations }: Evidence): Verdict[] {
  const [winner, exclusion, holder, fences] = [new Look('one-winner'), new Look('exclusion'), new Look('holder-only'), new Look('fences')]
  for (const inScope of Map.groupBy(tenures, ({ scope }) => scope).values()) {
    const inOrder = inScope.toSorted((a, b) => a.claim.endedAt - b.claim.endedAt)
    lookAtOverlap(inOrder, winner, exclusion)
    lookAtLeases(inOrder, holder)
  }
  for (const ofKey of Map.groupBy(tenures, ({ key }) => key).values()) lookAtWrites(ofKey, holder)
  for (const ofTask of Map.groupBy(tenures, ({ task }) => task).values()) lookAtFences(ofTask, fences)
  const passed = operations.filter(({ did, end }) => did === 'guard' && end === 'returned')
  for (const atResource of Map.groupBy(passed, ({ facts }) => facts['resource']).values()) {
    lookAtOrder(atResource.map((one) => ({ name: `write to ${String(one.facts['resource'])}`, from: one.invokedAt, to: one.endedAt, fence: BigInt(String(one.facts['fence'])) })), fences, true)
  }
  return [winner, exclusion, holder, fences].map((look) => look.verdict())
}

/** Held for certain by two at once. */
function lookAtOverlap(inOrder: readonly Tenure[], winner: Look, exclusion: Look): void {
  let last: Tenure | undefined
  for (const tenure of inOrder) {
    const before = last
    const look = before?.key === tenure.key || tenure.scope === tenure.key ? winner : exclusion
    look.that(before === undefined || heldUntil(before) <= tenure.claim.endedAt || heldUntil(tenure) <= tenure.claim.endedAt, () => `${describe(tenure)} was claimed and renewed while ${describe(before!)} held on`)
    if (before === undefined || heldUntil(tenure) > heldUntil(before)) last = tenure
  }
}

/** Nobody comes in before the lease of a living holder is over, and until then the holder is not refused. */
function lookAtLeases(inOrder: readonly Tenure[], holder: Look): void {
  for (const [index, tenure] of inOrder.entries()) {
    const until = leaseUntil(tenure) - MARGIN_MS
    const next = inOrder.slice(index + 1, index + 4).find(({ claim }) => claim.invokedAt > tenure.claim.endedAt)
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
    const successor = ofKey.filter(({ claim }) => claim.invokedAt > tenure.claim.endedAt).reduce((first, { claim }) => Math.min(first, claim.endedAt), Infinity)
    const accepted = acceptedWrites(tenure)
    const closed = accepted.find(({ did }) => did !== 'heartbeat')?.endedAt ?? Infinity
    for (const write of accepted) holder.that(write.invokedAt < successor && write.invokedAt <= closed, () => `${write.did} of ${describe(tenure)} was accepted though the run was no longer its own`)
  }
}

function lookAtFences(ofTask: readonly Tenure[], fences: Look): void {
  const seen = new Map<bigint, Tenure>()
  for (const tenure of ofTask) {
    const twin = seen.get(tenure.fence)
    fences.that(twin === undefined, () => `${describe(tenure)} and ${describe(twin!)} have one fence`)
    seen.set(tenure.fence, tenure)
  }
  lookAtOrder(ofTask.map((tenure) => ({ name: describe(tenure), from: tenure.claim.invokedAt, to: tenure.claim.endedAt, fence: tenure.fence })), fences, false)
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
