/**
 * `node fixture-holder.ts URL LAUNCH`: claims what the JSON says, prints how that went, then does each verb that comes on stdin, a line each, and
 * prints `done` or the code of the error. It ends with its stdin.
 */
import { createInterface } from 'node:readline'
import { Claim } from '../../src/runtime/claim.ts'
import type { Launch } from '../../src/runtime/launch.ts'
import { openLedger } from '../../src/runtime/ledger.ts'

const [url = '', launch = '{}'] = process.argv.slice(2)
const ledger = await openLedger(url)
const claim = await ledger.claim(JSON.parse(launch) as Launch)
const say = (word: string) => process.stdout.write(`${word}\n`)
say(claim.status)

for await (const verb of createInterface(process.stdin)) {
  if (!(claim instanceof Claim)) continue
  const doing = verb === 'complete' ? claim.complete() : verb === 'release' ? claim.release() : verb === 'fail' ? claim.fail('late') : claim.heartbeat()
  say(await doing.then(() => 'done', (error: { code?: string; message: string }) => error.code ?? error.message))
}
await ledger.close()
