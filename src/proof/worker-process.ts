/** The process of a worker, started from a checkout: `RUNLEDGER_DB=URL RUNLEDGER_PROOF_WORKER=JSON node worker-process.ts`. */
import { work } from './worker.ts'
import { SPEC_VARIABLE, type WorkerSpec } from './worker-spec.ts'

await work(JSON.parse(process.env[SPEC_VARIABLE]!) as WorkerSpec, process.env['RUNLEDGER_DB']!)
process.exit(0)
