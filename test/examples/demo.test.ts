/** scripts/demo-charge: whatever befalls the job, both sides have the same account. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { it } from 'node:test'

const root = join(import.meta.dirname, '../..')

it('the demonstration ends with a difference of zero, and says so', () => {
  const env = { ...process.env }
  delete env['RUNLEDGER_DB']
  const { status, stdout, stderr } = spawnSync(join(root, 'scripts/demo-charge'), ['--windows', '6'], { encoding: 'utf8', env })
  assert.equal(status, 0, stderr)
  assert.match(stdout, /^charged by the payment service +30 +\d+$/m)
  assert.match(stdout, /^difference +0 +0$/m)
  assert.match(stdout, /^statements \(6 windows\), against what is due +0$/m)
})
