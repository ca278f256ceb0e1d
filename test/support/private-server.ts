/** A server of a test's own, whose global settings it may change, and which it may kill and start again. */
import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { crash } from './crash-server.ts'

const SCRIPT = join(import.meta.dirname, '../../scripts/servers.sh')

export interface PrivateServer {
  /** An administrator's. */
  readonly url: string
  /** Ends it as a crash does, in the middle of whatever it is at, and starts it again with the same data at the same address. */
  crash(): Promise<void>
  remove(): void
}

/** @param durable what it acknowledged survives a crash of it, as with an ordinary server */
export async function privateServer(name: 'postgres' | 'mariadb' | 'mysql', { durable = false } = {}): Promise<PrivateServer> {
  const folder = mkdtempSync(join(tmpdir(), `runledger-${name}-`))
  const { stdout } = await promisify(execFile)(SCRIPT, ['start', '--owner', String(process.pid), folder, name], { env: { ...process.env, ...(durable && { RUNLEDGER_DURABLE: '1' }) } })
  const url = /^RUNLEDGER_TEST_\w+=(\S+:\/\/\S+)$/m.exec(stdout)?.[1]
  if (url === undefined) throw new Error(`${name} did not start: ${stdout}`)
  return {
    url,
    crash: () => crash(join(folder, name, 'server.pid'), url),
    remove() {
      execFileSync(SCRIPT, ['stop', folder])
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
