/** What PostgreSQL does its own way with many rows at a time, and its notifications. */
import { sql, type Kysely, type RawBuilder } from 'kysely'
import { asTable, type AbsentRows, type Column, type ColumnType } from './absent-rows.ts'
import type { BatchVerbs, Dialect, Listener, Selected, SelectedUpdate } from './dialect.ts'
import { distinctAfter } from './distinct-after.ts'
import { CHANNEL } from './postgres-listen.ts'
import { OFTEN } from './postgres-prepared.ts'

/** No key has a control character, and no JSON has one as it is. */
const SEPARATOR = '\u001f'

/** @param space tells one ledger of a database from another in notifications */
export function batchVerbs<Tables>(db: Kysely<Tables>, table: Dialect['table'], space: string, listen: (heard: (queue: string | null) => void) => Listener): BatchVerbs<Tables> {
  return {
    insertAbsent: (on, rows) => insertAbsent(on, table, rows),
    updateSelected: (tx, update) => updateSelected(tx, table, update),
    updatesInOne: true,
    distinctAfter: (on, of) => distinctAfter(on, table, of),
    // Measured: with 40,000 rows enqueued since the last ANALYZE, a claim of 500 sorted all of them instead of reading 500.
    // What it may not do counts as dear, and what is dear it would compile (jit): thirty milliseconds for one of them.
    trustIndexes: sql`concat(set_config('enable_sort', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true))`,
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

/** In a list of texts. */
const NO_TEXT = '\u001e'

const isText = (type: ColumnType) => type === 'text' || type === 'json'
const CASTS: Readonly<Record<ColumnType, RawBuilder<unknown>>> = { text: sql`text`, integer: sql`integer`, double: sql`float8`, json: sql`json`, instant: sql`timestamptz` }

/** One parameter a column, and one row in answer: the driver would write, and read, value by value. */
async function insertAbsent<Tables>(db: Kysely<Tables>, tableOf: Dialect['table'], { table, key, columns, areNew, once, insert }: AbsentRows): Promise<string[]> {
  const { from, pick } = asTable(
    columns,
    (varied) => sql`unnest(${sql.join(varied.map(arrayOf))}) as r (${sql.join(varied.map(({ name }) => sql.ref(name)))})`,
    ({ values, type }) => sql`${values[0] ?? null}::${CASTS[type]}`,
  )
  const inserted = insert(pick)
  const keys = columns.find(({ name }) => name === key)!.values as readonly string[]
  const { rows } = await sql<{ added: number; which: string | null }>`${sql.raw(OFTEN)}
    with c as materialized (select ${sql.join(Object.entries(once).map(([name, value]) => sql`${value} as ${sql.ref(name)}`))}),
    added as (
      insert into ${tableOf(table)} (${sql.join(Object.keys(inserted).map((name) => sql.ref(name)))})
      select ${sql.join(Object.values(inserted))} from ${from}, c
      ${areNew ? sql`` : sql`on conflict (${sql.ref(key)}) do nothing`} returning ${sql.ref(key)}
    )
    select added, case when added < ${keys.length} then array_to_string(array(select ${sql.ref(key)} from added), ${sql.lit(SEPARATOR)}) end as which
    from (select count(*)::integer as added from added) as counted`.execute(db)
  const [answer] = rows
  return answer!.which === null ? [...keys] : answer!.added === 0 ? [] : answer!.which.split(SEPARATOR)
}

function arrayOf({ type, values }: Column): RawBuilder<unknown> {
  if (isText(type)) return sql`string_to_array(${values.map((value) => value ?? NO_TEXT).join(SEPARATOR)}, ${sql.lit(SEPARATOR)}, ${sql.lit(NO_TEXT)})::${CASTS[type]}[]`
  return sql`${`{${values.map((value) => value ?? 'null').join(',')}}`}::${CASTS[type]}[]`
}
