/** The job of `exec` is a part of the trace that exec was started in, when OpenTelemetry is asked for. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { embeddedLedger, sh } from '../support/cli.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const OUTER = `00-${TRACE}-b7ad6b7169203331-01`

describe('trace of exec', () => {
  const ledger = embeddedLedger()
  const preload = `--import ${new URL('fixture-tracer.mjs', import.meta.url).href}`
  const exec = (env: NodeJS.ProcessEnv) => ledger.run(['exec', '--task', 'traced', ...sh('echo "$TRACEPARENT"')], { env })

  it('the job gets the span of its run, in the trace of exec', async () => {
    const { code, stdout, stderr } = await exec({ NODE_OPTIONS: preload, OTEL_SERVICE_NAME: 'jobs', TRACEPARENT: OUTER })
    assert.equal(code, 0, stderr)
    assert.match(stdout, new RegExp(`^00-${TRACE}-[0-9a-f]{16}-01\n$`))
    assert.notEqual(stdout.trim(), OUTER)
    assert.match((await exec({ NODE_OPTIONS: preload, OTEL_SERVICE_NAME: 'jobs' })).stdout, /^00-[0-9a-f]{32}-[0-9a-f]{16}-01\n$/)
  })

  it('without a variable of OpenTelemetry nothing is looked for, and a trace goes past untouched', async () => {
    assert.equal((await exec({ NODE_OPTIONS: preload, TRACEPARENT: OUTER })).stdout, `${OUTER}\n`)
    assert.equal((await exec({ NODE_OPTIONS: preload })).stdout, '\n')
  })
})
