/** What the ledger's tables are called in a database that others use too: a prefix before each name, taken off again from what the database says. */
import { OperationNodeTransformer, TableNode, type Kysely, type KyselyPlugin, type QueryId } from 'kysely'

/** Every table and view of the ledger; a test holds the migrations against it. */
export const LEDGER_TABLES: readonly string[] = [
  'task_runs', 'task_attempts', 'task_fences', 'tasks', 'task_launchers', 'task_totals', 'task_effects', 'task_actions', 'fenced_resources', 'runledger_migrations',
  'task_run_history', 'task_conflicts', 'task_status', 'stale_task_runs', 'task_effects_in_doubt',
]
const OURS = new Set(LEDGER_TABLES)

export class LedgerNames {
  readonly prefix: string

  constructor(prefix = '') {
    this.prefix = prefix
  }

  /** The name in the database of a table, a view, an index or a constraint of ours. */
  full(name: string): string {
    return this.prefix + name
  }

  /** The name as the code knows it; one without the prefix is somebody else's and stays as it is. */
  plain(full: string): string {
    return full.startsWith(this.prefix) ? full.slice(this.prefix.length) : full
  }

  /** Whether a table of this name in the database is one of this ledger's. */
  owns(full: string): boolean {
    return full.startsWith(this.prefix) && OURS.has(full.slice(this.prefix.length))
  }

  /** Queries that name the ledger's tables as the code does, on the tables as they are called. */
  on<Tables>(db: Kysely<Tables>): Kysely<Tables> {
    return this.prefix === '' ? db : db.withPlugin(new Prefixing(this))
  }
}

class Prefixing implements KyselyPlugin {
  readonly #transformer: TablePrefixer

  constructor(names: LedgerNames) {
    this.#transformer = new TablePrefixer(names)
  }

  transformQuery: KyselyPlugin['transformQuery'] = ({ node, queryId }) => this.#transformer.transformNode(node, queryId)
  transformResult: KyselyPlugin['transformResult'] = async ({ result }) => result
}

/** Only tables: columns, aliases and the names that a query gives to its own parts are nobody else's business. */
class TablePrefixer extends OperationNodeTransformer {
  readonly #names: LedgerNames

  constructor(names: LedgerNames) {
    super()
    this.#names = names
  }

  protected override transformTable(node: TableNode, queryId?: QueryId): TableNode {
    const { schema, identifier } = super.transformTable(node, queryId).table
    const name = OURS.has(identifier.name) ? this.#names.full(identifier.name) : identifier.name
    return schema === undefined ? TableNode.create(name) : TableNode.createWithSchema(schema.name, name)
  }
}
