/** Distinct values of an indexed column, where the database finds the next one by a probe but does not skip through an index by itself. */
import { sql, type Kysely } from 'kysely'
import type { Dialect, DistinctAfter } from './dialect.ts'

export async function distinctAfter<Tables>(db: Kysely<Tables>, tableOf: Dialect['table'], { table, column, after, limit }: DistinctAfter): Promise<string[]> {
  const [from, value] = [tableOf(table), sql.ref(column)]
  const { rows } = await sql<{ value: string }>`
    with recursive k as (
      select value, 1 as nth from (select ${value} as value from ${from} where ${value} > ${after} order by ${value} limit 1) as first
      union all
      select (select w.${value} from ${from} as w where w.${value} > k.value order by w.${value} limit 1), nth + 1
      from k where k.value is not null and nth < ${limit}
    )
    select value from k where value is not null order by nth`.execute(db)
  return rows.map((row) => row.value)
}
