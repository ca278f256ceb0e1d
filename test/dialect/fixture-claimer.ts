/** One of several processes on one file: it launches every window in turn, and says which it got. */
import { openLedger } from '../../src/runtime/ledger.ts'

const [url = '', windows = ''] = process.argv.slice(2)

process.once('message', () => {
  launchAll().then(
    (claimed) => process.send!({ claimed }),
    (error: unknown) => process.send!({ error: String(error) }),
  ).finally(() => process.disconnect())
})
process.send!({ ready: true })

async function launchAll(): Promise<string[]> {
  const ledger = await openLedger(url, { heartbeats: 'loop' })
  const claimed: string[] = []
  for (let window = 0; window < Number(windows); window++) {
    const outcome = await ledger.run({ task: 'shared', key: `window-${window}`, overlap: 'allow' }, () => {})
    if (outcome.status === 'completed') claimed.push(outcome.taskKey)
  }
  await ledger.close()
  return claimed
}
