/** A worker of the proof that kills itself after its nth statement, whichever that is: RUNLEDGER_PROOF_DEATH=n, 0 for never. */
import { work } from '../../src/proof/worker.ts'
import { SPEC_VARIABLE, type WorkerSpec } from '../../src/proof/worker-spec.ts'
import { given } from '../usage.ts'
import { openDyingLedger } from '../../test/fault/dying-ledger.ts'

const spec = JSON.parse(given(SPEC_VARIABLE, 'scripts/prove')) as WorkerSpec
await work(spec, given('RUNLEDGER_DB', 'scripts/prove'), async (url, options) => (await openDyingLedger(url, Number(process.env['RUNLEDGER_PROOF_DEATH']), options)).ledger)
process.exit(0)
