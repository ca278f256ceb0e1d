/** The line that an operator's action leaves, in the transaction of what it changes. */
import { v7 as uuidv7 } from 'uuid'
import type { Action, Actor } from '../model/action.ts'
import type { Db, Store } from './tables.ts'

export async function recordAction(store: Store, db: Db, { id = uuidv7(), name, task, taskKey, because, details = null }: Action, by: Actor): Promise<void> {
  await db
    .insertInto('task_actions')
    .values({ action_id: id, action: name, task_name: task, task_key: taskKey, because, details, acted_at: store.now(), acted_by: by.user, host: by.host, pid: by.pid, launcher: by.launcher })
    .execute()
}
