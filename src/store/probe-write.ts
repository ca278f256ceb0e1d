/** Asks whether anything can be written here at all, which nobody who only reads would notice. */
import type { Store } from './tables.ts'

/** Writes to no row, for none has an empty key, and fails as any write would: on a standby, a read-only server, a full disk, without the right. */
export async function probeWrite(store: Store): Promise<void> {
  await store.statement((db) => db.updateTable('task_runs').set({ heartbeat_at: store.now() }).where('task_key', '=', '').execute())
}
