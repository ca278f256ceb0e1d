/** Many processes want one effect at once: new, or in doubt. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import { migrate, openLedger } from '../../src/index.ts'
import { eachDatabase } from '../support/databases.ts'

const RACERS = 4
const NEW = Array.from({ length: 15 }, (_, n) => `new-${n}`)
const DOUBTFUL = Array.from({ length: 15 }, (_, n) => `doubtful-${n}`)

eachDatabase('effect', (db) => {
  it(`${RACERS} processes that want the same effects at once, new or in doubt, perform each one once`, async (t) => {
    const url = await db.url()
    await migrate(url)
    await leaveInDoubt(url)
    // Half of them as a crash leaves them: begun, and nobody came back to say anything.
    await db.admin(`update task_effects set status = 'started' where effect_key like 'doubtful-1%'`)
    const folder = await mkdtemp(join(tmpdir(), 'runledger-race-'))
    t.after(() => rm(folder, { recursive: true, force: true }))
    const file = join(folder, 'calls')
    const racers = Array.from({ length: RACERS }, () => start(url, file))
    await Promise.all(racers.map(({ ready }) => ready))
    for (const { go } of racers) go()
    assert.deepEqual(await Promise.all(racers.map(({ end }) => end)), racers.map(() => 0))
    const calls = (await readFile(file, 'utf8')).trimEnd().split('\n')
    for (const key of [...NEW, ...DOUBTFUL]) assert.deepEqual(calls.filter((line) => line.startsWith(`${key} `)), [`${key} begin`, `${key} end`])
  })
})

async function leaveInDoubt(url: string): Promise<void> {
  const ledger = await openLedger(url)
  const claim = await ledger.claim({ task: 'racer', key: 'doubts' })
  assert.ok(claim.status === 'claimed')
  for (const key of DOUBTFUL) await claim.effect('race', () => Promise.reject(new Error('who knows')), { key }).catch(() => {})
  await claim.complete()
  await ledger.close()
}

function start(url: string, file: string) {
  const racer = spawn(process.execPath, [join(import.meta.dirname, 'fixture-effect.ts'), url, file, [...NEW, ...DOUBTFUL].join(',')], { stdio: ['pipe', 'pipe', 'inherit'] })
  const end = once(racer, 'close').then(([code]) => code as number)
  return { ready: once(racer.stdout, 'data'), go: () => void racer.stdin.end('go\n'), end }
}
