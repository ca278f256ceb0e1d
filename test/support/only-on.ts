/** A suite about one database: what is true of it alone, or of servers that a test starts for itself. */
import { eachDatabase, type DatabaseName, type TestDatabase } from './databases.ts'

export function onlyOn<Name extends DatabaseName>(name: Name, title: string, suite: (db: TestDatabase & { readonly name: Name }) => void): void {
  eachDatabase(title, (db) => {
    if (db.name === name) suite(db as TestDatabase & { readonly name: Name })
  })
}
