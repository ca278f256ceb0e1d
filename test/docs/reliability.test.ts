/** docs/reliability.md names each fault and each promise, and no other. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { FAULTS } from '../../scripts/proof/faults.ts'
import { PROMISES } from '../../src/proof/promises.ts'
import { MUTANTS } from '../proof/mutants.ts'
import { QUEUE_MUTANTS } from '../proof/queue-mutants.ts'

const PAPER = readFileSync(join(import.meta.dirname, '../../docs/reliability.md'), 'utf8')

function named(heading: string): string[] {
  const section = PAPER.split(/^## /m).find((text) => text.startsWith(heading))!
  return [...section.matchAll(/^\| `([a-z-]+)` \|/gm)].map(([, name = '']) => name)
}

it('docs/reliability.md describes every promise and every fault, in their order', () => {
  assert.deepEqual(named('How it is decided'), Object.keys(PROMISES))
  assert.deepEqual(named('Faults'), Object.keys(FAULTS))
  assert.equal(MUTANTS.length + QUEUE_MUTANTS.length + 1, 24, 'twenty-four, it says')
})
