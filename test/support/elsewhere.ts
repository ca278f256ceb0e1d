/** Owners that look as if they had lived on another host: nobody here can prove them dead, so their leases must run out. */
import type { Row } from './databases.ts'

/** Row by row, so that it never holds one lock and waits for another, as the statements of workers may. */
export async function livedElsewhere(sql: (text: string) => Promise<Row[]>, who: string): Promise<void> {
  for (const { task_key } of await sql(`select task_key from task_runs where status = 'processing' and ${who}`)) {
    await sql(`update task_runs set process_identity = null where task_key = '${String(task_key)}' and ${who}`)
  }
}
