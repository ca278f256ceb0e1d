/** What a real child cannot be made to do reliably to the one that passes its output on. */
import assert from 'node:assert/strict'
import { closeSync, openSync } from 'node:fs'
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { describe, it } from 'node:test'
import { startRelay } from '../../../src/cli/exec/relay.ts'
import { startTail } from '../../../src/cli/exec/tail.ts'

describe('relay', { timeout: 10_000 }, () => {
  it('drain() ends though the source never falls silent, with more than a pipe holds and not much more', async () => {
    const chunk = Buffer.alloc(65_536)
    const endless = new Readable({ read: () => void setImmediate(() => endless.push(chunk)) })
    const target = openSync('/dev/null', 'w')
    const tail = startTail(10)
    const relay = startRelay(endless as unknown as Socket, target, tail)
    await relay.drain()
    assert.ok(tail.total >= 1 << 20 && tail.total < 3 << 20, `${tail.total} bytes`)
    assert.equal(await relay.flushed(), null)
    endless.destroy()
    closeSync(target)
  })
})
