/** `node fixture-reaper.ts URL`: says `ready`, waits for a word on stdin, reaps once and prints the keys it closed. */
import { openStore } from '../../src/runtime/open-store.ts'
import { reap } from '../../src/store/reap.ts'

const store = await openStore(process.argv[2]!)
await store.db.selectFrom('task_runs').select('task_key').limit(1).execute()
process.stdout.write('ready\n')
await new Promise((resolve) => process.stdin.once('data', resolve).once('end', resolve))
const reaped = await reap(store)
await store.close()
process.stdout.write(JSON.stringify(reaped.map(({ run }) => run.taskKey)))
process.stdin.destroy()
