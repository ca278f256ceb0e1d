/** A process in the background that keeps the lease of a claim, after the one that claimed has ended. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { claimJson, type ClaimRef } from '../../index.ts'
import { jsonLine } from '../log.ts'

/** What the keeper says when it has renewed the lease for the first time. */
export const KEPT = 'kept\n'

/**
 * Starts `runledger hold` in a session of its own, with nothing of ours but its environment: it holds no pipe that a
 * caller (`$(runledger claim …)`) waits for, and no password stands on its command line.
 * @returns null when it keeps the lease; what it said when it does not
 */
export async function startKeeper(ref: ClaimRef, pid: number, url: string, onLost: string): Promise<string | null> {
  const args = [...process.execArgv, process.argv[1]!, 'hold', '--pid', String(pid), '--on-lost', onLost]
  const env = { ...process.env, RUNLEDGER_DB: url, RUNLEDGER_CLAIM: jsonLine(claimJson(ref)) }
  const keeper = spawn(process.execPath, args, { detached: true, cwd: '/', env, stdio: ['ignore', 'pipe', 'pipe'] })
  const said = { out: '', err: '' }
  keeper.stdout.on('data', (chunk: Buffer) => (said.out += chunk.toString()))
  keeper.stderr.on('data', (chunk: Buffer) => (said.err += chunk.toString()))
  const failed = once(keeper, 'error').then(([error]) => void (said.err += String(error)))
  const first = once(keeper.stdout, 'data').catch(() => {}) // Ends without a word when the keeper does.
  await Promise.race([first, once(keeper, 'close'), failed])
  if (!said.out.startsWith(KEPT)) return said.err.trim() || 'the keeper of the lease did not start'
  keeper.stdout.destroy()
  keeper.stderr.destroy()
  keeper.unref()
  return null
}
