/** What proves that a process is gone: this boot, this pid namespace, and nobody there with that pid and start time. Nothing else does. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { isProvablyGone, processIdentity } from '../../src/runtime/process-identity.ts'

const own = () => processIdentity([process.pid])!
const partsOf = (identity: string) => identity.split('/') as [string, string, ...string[]]

describe('process identity', () => {
  it('of a process that lives proves nothing', () => {
    assert.equal(isProvablyGone(own()), false)
  })

  it('of a process that was killed proves that it is gone', async (t) => {
    const child = spawn('sleep', ['300'])
    t.after(() => child.kill('SIGKILL'))
    await once(child, 'spawn')
    const identity = processIdentity([child.pid!])
    assert.equal(isProvablyGone(identity), false)

    child.kill('SIGKILL')
    await once(child, 'exit')

    assert.equal(isProvablyGone(identity), true)
  })

  it('of a process that is a zombie proves that it is gone, although its pid is still taken', async (t) => {
    // The shell starts a child, becomes another program, and so never waits for the child.
    const parent = spawn('sh', ['-c', 'sleep 0.1 & echo $!; exec sleep 300'])
    t.after(() => parent.kill('SIGKILL'))
    const pid = Number(String((await once(parent.stdout, 'data'))[0]))
    const identity = processIdentity([pid])
    assert.equal(isProvablyGone(identity), false)

    while (!/\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))) await new Promise((resolve) => setImmediate(resolve))

    assert.ok(existsSync(`/proc/${pid}`))
    assert.equal(isProvablyGone(identity), true)
  })

  it('with a pid that another process uses now proves that the first one is gone', () => {
    const [boot, namespace] = partsOf(own())
    assert.equal(isProvablyGone(`${boot}/${namespace}/${process.pid}:1`), true)
  })

  it('of several processes proves it only when all of them are gone', () => {
    const [boot, namespace, alive] = partsOf(own())
    assert.equal(isProvablyGone(`${boot}/${namespace}/1:0/${alive}`), false)
    assert.equal(isProvablyGone(`${boot}/${namespace}/${alive}/1:0`), false)
    assert.equal(isProvablyGone(`${boot}/${namespace}/1:0/1:1`), true)
  })

  it('from another boot, or from another pid namespace, proves nothing', () => {
    const [boot, namespace] = partsOf(own())
    assert.equal(isProvablyGone(`00000000-0000-0000-0000-000000000000/${namespace}/1:0`), false)
    assert.equal(isProvablyGone(`${boot}/1/1:0`), false)
  })

  it('that is missing or makes no sense proves nothing', () => {
    const [boot, namespace] = partsOf(own())
    for (const odd of [null, '', 'x', '//', boot, `${boot}/${namespace}`]) assert.equal(isProvablyGone(odd), false, String(odd))
  })

  it('fits its column and tells processes of the same pid apart', () => {
    assert.ok(own().length <= 100, own())
    assert.match(own(), /^[0-9a-f-]{36}\/\d+\/\d+:\d+$/)
  })

  it('of a process that is gone already cannot be had', () => {
    const { pid } = spawnSync('true')
    assert.equal(processIdentity([process.pid, pid]), null)
  })

  it('reads the start time of a program whose name has parentheses and spaces', async (t) => {
    const child = spawn(process.execPath, ['-e', 'process.title = "a) Z 1 (b"; console.log("named"); setTimeout(() => {}, 300000)'])
    t.after(() => child.kill('SIGKILL'))
    await once(child.stdout, 'data')
    const identity = processIdentity([child.pid!])

    assert.equal(isProvablyGone(identity), false)
    assert.match(identity!, new RegExp(`/${child.pid}:\\d+$`))
  })
})
