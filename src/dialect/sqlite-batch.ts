/** What SQLite does its own way with many rows at a time. */
import { sql, type Kysely } from 'kysely'
import { asTable, type AbsentRows } from './absent-rows.ts'
import { distinctAfter } from './distinct-after.ts'
import type { BatchVerbs, Dialect, Selected, SelectedUpdate } from './dialect.ts'

export function batchVerbs<Tables>(table: Dialect['table']): BatchVerbs<Tables> {
  return {
    insertAbsent: (on, rows) => insertAbsent(on, table, rows),
    updateSelected: (tx, update) => updateSelected(tx, table, update),
    updatesInOne: false,
    distinctAfter: (on, of) => distinctAfter(on, table, of),
    // Differs by necessity: without statistics it takes the index whose columns are compared.
    trustIndexes: sql`1`,
    locked: (query) => query,
    often: sql``,
    instantText: (date) => date.toISOString(),
    asJson: (text) => sql`${text}`,
    oneOf: (value, values) => sql`${value} in (select value from json_each(${JSON.stringify(values)}))`,
    // Differs by necessity: a file tells nobody that it was written to; the poll finds it.
    announce: async () => {},
    listen: () => ({ close: async () => {} }),
  }
}

async function insertAbsent<Tables>(db: Kysely<Tables>, tableOf: Dialect['table'], { table, key, columns, once, insert }: AbsentRows): Promise<string[]> {
  const { from, pick } = asTable(columns, rowsOfJson, ({ values }) => sql`${values[0] ?? null}`)
  const inserted = insert(pick)
  const { rows } = await sql<Record<string, string>>`
    with c as materialized (select ${sql.join(Object.entries(once).map(([name, value]) => sql`${value} as ${sql.ref(name)}`))})
    insert into ${tableOf(table)} (${sql.join(Object.keys(inserted).map((name) => sql.ref(name)))})
    select ${sql.join(Object.values(inserted))} from ${from}, c where true
    on conflict (${sql.ref(key)}) do nothing returning ${sql.ref(key)}`.execute(db)
  return rows.map((row) => row[key]!)
}

/**
 * Differs by necessity: no UPDATE gives back the rows as they were, so they are selected first. Nobody else writes in
 * between.
 */
async function updateSelected<Tables, O extends Selected>(tx: Kysely<Tables>, tableOf: Dialect['table'], { table, select, set }: SelectedUpdate<Tables, O>): Promise<{ rows: O[]; updated: number }> {
  const { rows } = await tx.executeQuery<O>(select)
  const keys = rows.filter(({ mine }) => Number(mine) === 1).map((row) => row.task_key)
  if (keys.length === 0) return { rows, updated: 0 }
  const { numAffectedRows } = await sql`
    update ${tableOf(table)} set ${sql.join(Object.entries(set).map(([name, value]) => sql`${sql.ref(name)} = ${value}`))}
    where task_key in (select value from json_each(${JSON.stringify(keys)}))`.execute(tx)
  return { rows, updated: Number(numAffectedRows) }
}

function rowsOfJson(columns: readonly { name: string; values: readonly unknown[] }[]) {
  const json = JSON.stringify(columns[0]!.values.map((_, nth) => columns.map(({ values }) => values[nth])))
  const fields = columns.map(({ name }, index) => sql`json_extract(value, ${sql.lit(`$[${index}]`)}) as ${sql.ref(name)}`)
  return sql`(select ${sql.join(fields)} from json_each(${json})) r`
}
