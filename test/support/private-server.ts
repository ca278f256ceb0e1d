/** A MariaDB or MySQL of a test's own, whose global settings it may change. */
import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const SCRIPT = join(import.meta.dirname, '../../scripts/servers.sh')

export interface PrivateServer {
  /** An administrator's. */
  readonly url: string
  remove(): void
}

export async function privateServer(name: 'mariadb' | 'mysql'): Promise<PrivateServer> {
  const folder = mkdtempSync(join(tmpdir(), `runledger-${name}-`))
  const { stdout } = await promisify(execFile)(SCRIPT, ['start', '--owner', String(process.pid), folder, name])
  const url = /^RUNLEDGER_TEST_\w+=(\S+:\/\/\S+)$/m.exec(stdout)?.[1]
  if (url === undefined) throw new Error(`${name} did not start: ${stdout}`)
  return {
    url,
    remove() {
      execFileSync(SCRIPT, ['stop', folder])
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
