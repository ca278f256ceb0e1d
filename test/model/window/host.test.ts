/** The answer never depends on the host: not on its TZ, and not on the season its clock is in. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import type { Answer } from './checked-rows.ts'
import { checkedRows, expectation } from './checked-rows.ts'

/** TZ and its getTimezoneOffset() in January: minutes to add for UTC. */
const HOSTS = { UTC: 0, 'America/New_York': 300, 'Asia/Kathmandu': -345, 'Pacific/Kiritimati': -840 }
const CLOCKS = ['2026-01-15T12:00:00.000Z', '2026-07-15T12:00:00.000Z']

for (const [zone, winterOffset] of Object.entries(HOSTS)) {
  for (const clock of CLOCKS) {
    test(`case 12: under TZ=${zone} and a clock set to ${clock} all rows get the same windows and labels`, async () => {
      const printed = await answersUnder(zone, clock)
      assert.deepEqual(printed.host, { clock, winterOffset })
      assert.deepEqual(printed.answers, checkedRows.map(expectation))
    })
  }
}

async function answersUnder(zone: string, clock: string): Promise<{ host: unknown; answers: Answer[] }> {
  const [preload, fixture] = ['host-clock.ts', 'print-answers.ts'].map((name) => new URL(name, import.meta.url)) as [URL, URL]
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', preload.href, fixture.pathname], {
    env: { ...process.env, TZ: zone, HOST_CLOCK: clock },
  })
  return JSON.parse(stdout) as { host: unknown; answers: Answer[] }
}
