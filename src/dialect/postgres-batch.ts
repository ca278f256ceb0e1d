/** What PostgreSQL does its own way with many rows at a time, and its notifications. */
import { sql, type Kysely, type RawBuilder } from 'kysely'
import { asTable, type AbsentRows, type ColumnType } from './absent-rows.ts'
import type { BatchVerbs, Dialect, Listener, Selected, SelectedUpdate } from './dialect.ts'
import { CHANNEL } from './postgres-listen.ts'
import { OFTEN } from './postgres-prepared.ts'

/** No key has a control character. */
const SEPARATOR = '\u001f'

/** @param space tells one ledger of a database from another in notifications */
export function batchVerbs<Tables>(db: Kysely<Tables>, table: Dialect['table'], space: string, listen: (heard: (queue: string | null) => void) => Listener): BatchVerbs<Tables> {
  return {
    insertAbsent: (on, rows) => insertAbsent(on, table, rows),
    updateSelected: (tx, update) => updateSelected(tx, table, update),
    // Measured: with 40,000 rows enqueued since the last ANALYZE, a claim of 500 sorted all of them instead of reading 500.
    trustIndexes: sql`concat(set_config('enable_sort', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('enable_seqscan', 'off', true))`,
    locked: (query) => query.forUpdate(),
    often: sql.raw(OFTEN),
    instantText: (date) => date.toISOString(),
    asJson: (text) => sql`(${text})::json`,
    // As one text: the driver would write an array element by element.
    oneOf: (value, values) => sql`${value} = any(string_to_array(${values.join(SEPARATOR)}, ${sql.lit(SEPARATOR)}))`,
    announce: (queue, tx) => announce(tx ?? null, db, `${space}.${queue}`),
    listen,
  }
}

/** Every notification costs a commit; of one that is nothing but a hint, nobody waits until it is on the disk. */
async function announce<Tables>(tx: Kysely<Tables> | null, db: Kysely<Tables>, what: string): Promise<void> {
  const unhurried = tx ? sql`` : sql`set_config('synchronous_commit', 'off', true),`
  await sql`select ${unhurried} pg_notify(${CHANNEL}, ${what})`.execute(tx ?? db)
}

/**
 * One statement. The rows are found again by where they stand: joined by key, the planner would read the whole table for
 * them once it is of some size.
 */
async function updateSelected<Tables, O extends Selected>(tx: Kysely<Tables>, tableOf: Dialect['table'], { table, select, set }: SelectedUpdate<Tables, O>): Promise<{ rows: O[]; updated: number }> {
  const place = select.select(sql<string>`ctid`.as('place') as never)
  const { rows } = await sql<O & { updated: number }>`${sql.raw(OFTEN)}
    with selected as materialized (${place.forUpdate().skipLocked()}),
    updated as (
      update ${tableOf(table)} set ${sql.join(Object.entries(set).map(([name, value]) => sql`${sql.ref(name)} = ${value}`))}
      where ctid = any(array(select place from selected where mine = 1)) returning 1 as one
    )
    select selected.*, (select count(*)::integer from updated) as updated from selected`.execute(tx)
  return { rows, updated: rows[0]?.updated ?? 0 }
}

const CASTS: Readonly<Record<ColumnType, RawBuilder<unknown>>> = { text: sql`text`, integer: sql`integer`, double: sql`float8`, json: sql`json`, instant: sql`timestamptz` }

async function insertAbsent<Tables>(db: Kysely<Tables>, tableOf: Dialect['table'], { table, key, columns, once, insert }: AbsentRows): Promise<string[]> {
  const { from, pick } = asTable(
    columns,
    (varied) => sql`unnest(${sql.join(varied.map(({ values, type }) => sql`${values}::${CASTS[type]}[]`))}) as r (${sql.join(varied.map(({ name }) => sql.ref(name)))})`,
    ({ values, type }) => sql`${values[0] ?? null}::${CASTS[type]}`,
  )
  const inserted = insert(pick)
  const { rows } = await sql<Record<string, string>>`
    with c as materialized (select ${sql.join(Object.entries(once).map(([name, value]) => sql`${value} as ${sql.ref(name)}`))})
    insert into ${tableOf(table)} (${sql.join(Object.keys(inserted).map((name) => sql.ref(name)))})
    select ${sql.join(Object.values(inserted))} from ${from}, c
    on conflict (${sql.ref(key)}) do nothing returning ${sql.ref(key)}`.execute(db)
  return rows.map((row) => row[key]!)
}
