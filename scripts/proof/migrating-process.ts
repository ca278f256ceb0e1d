/** One of many that migrate at once: RUNLEDGER_DB says what. */
import { migrate } from '../../src/index.ts'

await migrate(process.env['RUNLEDGER_DB']!, 60_000)
