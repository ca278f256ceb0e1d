/** The door for users' own suites: `runledger/testing`. */
export { openTestLedger, type Drained, type EnqueuedRun, type Expected, type TestLedger, type TestLedgerOptions } from './runtime/testing/test-ledger.ts'
