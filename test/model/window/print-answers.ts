/** Fixture: prints this process's answers to the checked rows, and the host's clock and zone that it was run under. */
import { answer, checkedRows } from './checked-rows.ts'

const host = { clock: new Date().toISOString(), winterOffset: new Date(2026, 0, 15).getTimezoneOffset() }
process.stdout.write(JSON.stringify({ host, answers: checkedRows.map(answer) }))
