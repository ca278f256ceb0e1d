/** The migrations in their order; each is loaded only when it is to run. */
import type { MigrationContext } from './context.ts'

export interface Migration {
  readonly name: string
  load(): Promise<{ up(context: MigrationContext): Promise<void> }>
}

export const migrations: readonly Migration[] = [
  { name: '0001-ledger', load: () => import('./0001-ledger.ts') },
  { name: '0002-effects', load: () => import('./0002-effects.ts') },
  { name: '0003-actions', load: () => import('./0003-actions.ts') },
  { name: '0004-schedules', load: () => import('./0004-schedules.ts') },
  { name: '0005-retention', load: () => import('./0005-retention.ts') },
  { name: '0006-queue', load: () => import('./0006-queue.ts') },
]
