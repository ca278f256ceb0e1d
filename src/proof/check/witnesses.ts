/** What the jobs themselves told the witness, against the ledger: starts it does not know, effects that happened twice. */
import type { Evidence } from '../evidence.ts'
import { Look, type Verdict } from '../promises.ts'

export function checkWitnesses({ operations, lines, effects }: Evidence): Verdict[] {
  const first = new Look('ledger-first')
  const starts = operations.filter(({ did }) => did === 'start')
  for (const [name, same] of Map.groupBy(starts, ({ facts }) => `${String(facts['key'])} attempt ${String(facts['attempt'])} (fence ${String(facts['fence'])}, ${String(facts['worker'])})`)) {
    const { facts } = same[0]!
    const known = (lines.get(String(facts['key'])) ?? []).some((line) => line.attempt === facts['attempt'] && String(line.fence) === facts['fence'] && line.instanceId === facts['instance'])
    first.that(known, () => `${name} was started, and the ledger does not know it`)
    first.that(same.length === 1, () => `${name} was started ${same.length} times under one claim`)
  }

  const once = new Look('effects')
  const records = new Map(effects.map((record) => [record.effectKey, record]))
  for (const [effect, performed] of Map.groupBy(operations.filter(({ did }) => did === 'perform'), ({ facts }) => String(facts['effect']))) {
    once.that(performed.length === 1, () => `${effect} was performed ${performed.length} times, by ${performed.map(({ facts }) => `attempt ${String(facts['attempt'])}`).join(', ')}`)
    once.that(records.has(effect), () => `${effect} was performed, and the ledger does not know it`)
  }
  for (const { facts } of operations.filter(({ did, end }) => did === 'effect' && end === 'returned')) {
    const record = records.get(`${String(facts['key'])}#mail`)
    once.that(record?.status === 'done' && record.result === String(facts['performedBy']), () => `the mail of ${String(facts['key'])} was acknowledged as done by attempt ${String(facts['performedBy'])}; recorded is ${record ? `${record.status} ${String(record.result)}` : 'nothing'}`)
  }

  const expected = new Look('no-surprise')
  for (const { by, did, end, facts } of operations) expected.that(end !== 'broken', () => `${did} by ${by}: ${String(facts['problem'])}`)
  for (const { by, facts } of operations.filter(({ did }) => did === 'degraded')) expected.that(!/\bINTERNAL\b/.test(String(facts['problem'])), () => `the worker ${by}: ${String(facts['problem'])}`)
  return [first, once, expected].map((look) => look.verdict())
}
