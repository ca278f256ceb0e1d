/** One of many that migrate at once: RUNLEDGER_DB says what. */
import { migrate } from '../../src/index.ts'
import { given } from '../usage.ts'

await migrate(given('RUNLEDGER_DB', 'scripts/prove'), 60_000)
