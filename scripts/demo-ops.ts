/** The demonstration behind scripts/demo-ops: three weeks are lived through, then every question is asked twice. */
import { mkdtemp, copyFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { FakeHost } from './demo/fake-host.ts'
import { live, NOW } from './demo/three-weeks.ts'

const { values } = parseArgs({ options: { keep: { type: 'string' } } })
const folder = await mkdtemp(join(tmpdir(), 'runledger-ops-'))
try {
  const host = new FakeHost(join(folder, 'ledger.db'))
  const launches = await live(host)
  console.log(`${launches} windows of six tasks in three weeks; now it is ${NOW.toISOString()}`)
  console.log((await host.at(NOW, ['missing', '--since', '21d'])).stdout)
  console.log((await host.at(NOW, ['check'])).stdout)
  if (values.keep) await copyFile(host.file, values.keep)
} finally {
  await rm(folder, { recursive: true, force: true })
}
