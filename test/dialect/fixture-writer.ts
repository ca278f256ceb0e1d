/** Another program that writes to the file: it holds the write lock for so many milliseconds, or until it is told to let go. */
import { once } from 'node:events'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'

const [path = '', ms = ''] = process.argv.slice(2)

const db = new DatabaseSync(path, { timeout: 5000 })
db.exec('begin immediate')
process.send!({ locked: true })
await (ms === '' ? once(process, 'message') : sleep(Number(ms)))
db.exec('rollback')
db.close()
process.send!({ unlocked: true })
process.disconnect()
