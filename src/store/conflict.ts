/** Records a launch that lost: what it wanted, why it could not, and who stood in the way. */
import { v7 as uuidv7 } from 'uuid'
import type { Conflict } from '../model/outcome.ts'
import type { ClaimRequest } from './claim.ts'
import type { Store } from './tables.ts'

/** @param launchId new for each launch: recorded again after a lost answer, it is still one line */
export async function recordConflict(store: Store, request: Pick<ClaimRequest, 'task' | 'window' | 'instance'>, conflict: Conflict, launchId: string = uuidv7()): Promise<void> {
  try {
    await insertLine(store, request, conflict, launchId)
  } catch (error) {
    const diagnosis = store.diagnose(error)
    if (diagnosis.kind !== 'duplicate' || diagnosis.constraint !== 'task_attempts_launch_id') throw error
  }
}

async function insertLine(store: Store, request: Pick<ClaimRequest, 'task' | 'window' | 'instance'>, { reason, taskKey, holder }: Conflict, launchId: string): Promise<void> {
  const { task, window, instance } = request
  await store.statement((db) =>
    db
      .insertInto('task_attempts')
      .values({
        launch_id: launchId,
        task_key: taskKey,
        task_name: task,
        window_start: window && store.instant(window.start),
        window_end: window && store.instant(window.end),
        window_zone: window?.zone ?? null,
        outcome: 'conflict',
        reason,
        instance_id: instance.id,
        host: instance.host,
        pid: instance.pid,
        launcher: instance.launcher,
        ended_at: store.now(),
        held_by_key: holder?.taskKey ?? null,
        held_by_instance: holder?.instanceId ?? null,
        held_by_host: holder?.host ?? null,
        held_by_pid: holder?.pid ?? null,
        held_by_launcher: holder?.launcher ?? null,
        held_since: holder?.since ? store.instant(holder.since) : null,
      })
      .execute(),
  )
}
