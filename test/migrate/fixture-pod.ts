/** One of many that start at once: it migrates every database that it is told of, and says what it applied. */
import { migrate } from '../../src/runtime/schema.ts'

process.on('message', (url: string) => {
  migrate(url).then(
    (applied) => process.send!({ applied }),
    (error: unknown) => process.send!({ error: String(error) }),
  )
})
process.send!({ ready: true })
