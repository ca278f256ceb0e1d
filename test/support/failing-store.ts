/** Stores that fail where a test says, on the real database: an error before a verb, or after it has taken effect. */
import type { KyselyPlugin } from 'kysely'
import type { Store } from '../../src/store/tables.ts'

/** Rolled back for certain, in the words of every driver. */
export function deadlock(): Error {
  return Object.assign(new Error('injected deadlock'), { errcode: 5, code: '40P01', errno: 1213 })
}

/** The connection is gone, in the words of every driver (of SQLite: the disk is full, its one problem that may pass). */
export function cutConnection(): Error {
  return Object.assign(new Error('injected cut'), { errcode: 13, code: 'ECONNRESET' })
}

/** The primary key exists, in the words of every driver. */
export function duplicateKey(): Error {
  const postgres = { code: '23505', schema: 'public', table: 'task_runs', constraint: 'task_runs_pkey' }
  return Object.assign(new Error("failed: task_runs.task_key for key 'task_runs.PRIMARY'"), postgres, { errcode: 1555, errno: 1062 })
}

export type Verb = 'statement' | 'transaction' | 'insertFenced'
/** `after`: it has taken effect, and only the answer is lost. */
export type Moment = `${'before' | 'after'} ${Verb}`

/** A store whose verbs call `at` before and after they reach the database; what that throws is what the caller sees. */
export function interrupted(store: Store, at: (moment: Moment) => void | Promise<void>): Store {
  const around =
    <A extends unknown[], R>(verb: Verb, run: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      await at(`before ${verb}`)
      const result = await run(...args)
      await at(`after ${verb}`)
      return result
    }
  return {
    ...store,
    statement: around('statement', store.statement) as Store['statement'],
    transaction: around('transaction', store.transaction) as Store['transaction'],
    insertFenced: around('insertFenced', store.insertFenced),
  }
}

/** Throws at the first of these moments, and never again. */
export function once(moment: Moment, error: () => Error): (moment: Moment) => void {
  let left = 1
  return (now) => {
    if (now === moment && left-- > 0) throw error()
  }
}

/**
 * A store in which one SQL statement fails before it is sent: the one of this number, counted over its verbs from 0, with
 * the end of each unit of work (its COMMIT) counted as one more. `fired` says whether there was such a one.
 */
export function failingAt(store: Store, number: number, error: () => Error): { store: Store; fired(): boolean } {
  let at = 0
  const step = () => {
    if (at++ === number) throw error()
  }
  const plugin: KyselyPlugin = {
    transformQuery: ({ node }) => {
      step()
      return node
    },
    transformResult: async ({ result }) => result,
  }
  const failing: Store = {
    ...store,
    statement: (work) => store.statement((db) => work(db.withPlugin(plugin))),
    transaction: (work) =>
      store.transaction(async (tx) => {
        const result = await work(tx.withPlugin(plugin))
        step()
        return result
      }),
  }
  return { store: failing, fired: () => at > number }
}
