/** What a migration leaves behind, to be compared. */
import type { DatabaseName, Row, TestDatabase } from '../support/databases.ts'

/** Everything the schema is made of: columns, constraints and indexes, in an order of their own. */
const SCHEMA: Record<DatabaseName, string> = {
  sqlite: `select type, name, sql from sqlite_master where name not like 'sqlite_%' order by type, name`,
  postgres: `select 'column' as kind, table_name || '.' || column_name as name, data_type || coalesce(collation_name, '') || is_nullable || coalesce(column_default, '') as what from information_schema.columns where table_schema = 'public'
    union all select 'index', indexname, indexdef from pg_indexes where schemaname = 'public'
    union all select 'constraint', conname, pg_get_constraintdef(oid) from pg_constraint where connamespace = 'public'::regnamespace order by 1, 2, 3`,
  mariadb: mysqlSchema(),
  mysql: mysqlSchema(),
}

function mysqlSchema(): string {
  return `select 'column' as kind, concat(table_name, '.', column_name) as name, concat_ws(' ', column_type, collation_name, is_nullable, column_default) as what from information_schema.columns where table_schema = database()
    union all select 'index', concat(index_name, '.', seq_in_index), concat_ws(' ', table_name, column_name, non_unique) from information_schema.statistics where table_schema = database()
    union all select 'constraint', constraint_name, check_clause from information_schema.check_constraints where constraint_schema = database() order by 1, 2, 3`
}

export function schemaOf(db: TestDatabase, url: string): Promise<Row[]> {
  return db.admin(SCHEMA[db.name], url)
}
