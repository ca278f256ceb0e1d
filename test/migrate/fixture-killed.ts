/** A migration that is killed: it migrates, and SIGKILLs itself after so many statements; else it says how many there were. */
import { connect } from '../../src/dialect/connect.ts'
import { migrate } from '../../src/migrate/migrate.ts'

const [url = '', after = ''] = process.argv.slice(2)

let statements = 0
const dialect = await connect(url, {
  log: () => {
    if (++statements === Number(after)) process.kill(process.pid, 'SIGKILL')
  },
})
await migrate(dialect)
await dialect.close()
process.send!({ statements })
process.disconnect()
