/** The faults of a proof by name: what each is, on which databases, and how a round with it is played. */
import type { RoundResult } from '../../src/proof/round.ts'
import { freezes, kills, together } from '../../src/proof/trouble.ts'
import type { DatabaseName } from '../../test/support/databases.ts'
import { canMakeDisk, clock, disk, migrations, statementBoundary } from './host-faults.ts'
import { harmedStatements, network } from './network-faults.ts'
import { readOnly, restart } from './server-faults.ts'
import { countingDeaths, SERVERS, type Stage } from './stage.ts'

export interface Fault {
  readonly about: string
  readonly on: readonly DatabaseName[]
  play(stage: Stage): Promise<RoundResult>
}

const EVERYWHERE: readonly DatabaseName[] = ['sqlite', ...SERVERS]

export const FAULTS: Readonly<Record<string, Fault>> = {
  none: { about: 'only the race for the same keys', on: EVERYWHERE, play: async (stage) => stage.play(await stage.ledger()) },
  kill: { about: 'SIGKILL of holders and reapers, one after the other', on: EVERYWHERE, play: async (stage) => stage.play(await stage.ledger(), { trouble: kills(stage.size.faults) }) },
  death: { about: 'SIGKILL of a holder by itself: in the middle of its effect, at work, before it closes its run', on: EVERYWHERE, play: (stage) => death(stage) },
  boundary: { about: 'SIGKILL between any two statements', on: EVERYWHERE, play: statementBoundary },
  freeze: { about: 'SIGSTOP beyond the lease, then SIGCONT, of holders and reapers', on: EVERYWHERE, play: async (stage) => stage.play(await stage.ledger(), { trouble: freezes(stage.size.faults, 1.5 * stage.leaseMs) }) },
  block: { about: 'the event loop is blocked for three leases, with heartbeats on a thread of their own', on: EVERYWHERE, play: (stage) => block(stage) },
  pool: { about: "jobs hold every connection of the ledger's pool for three leases", on: SERVERS, play: (stage) => pool(stage) },
  network: { about: 'connections are slow, narrow, reset, deaf, swallowed or refused for a while', on: SERVERS, play: network },
  statement: { about: 'a statement never arrives, its reply is lost or cut, or it fails in the middle of a transaction', on: SERVERS, play: harmedStatements },
  restart: { about: 'the server is crashed and comes back', on: SERVERS, play: restart },
  readonly: { about: 'the server is read-only for a while', on: SERVERS, play: readOnly },
  disk: { about: 'the disk is full for a while: on SQLite a real one, on servers by the error they give', on: canMakeDisk() ? EVERYWHERE : SERVERS, play: disk },
  clock: { about: 'the clocks of some hosts jump by hours, both ways', on: SERVERS, play: clock },
  migrate: { about: 'ten processes migrate at once, then all of them work', on: EVERYWHERE, play: migrations },
  mix: { about: 'deaths, kills and freezes at the same time', on: EVERYWHERE, play: (stage) => mix(stage) },
}

async function death(stage: Stage): Promise<RoundResult> {
  return countingDeaths(await stage.play(await stage.ledger(), { worker: { deathChance: 0.15 } }))
}

async function block(stage: Stage): Promise<RoundResult> {
  const result = await stage.play(await stage.ledger(), { worker: { heartbeats: 'thread', blockMs: 3 * stage.leaseMs, blockChance: 0.03, lanes: 1 } })
  return { ...result, faults: result.evidence.operations.filter(({ did }) => did === 'blocked').length }
}

async function pool(stage: Stage): Promise<RoundResult> {
  const result = await stage.play(await stage.ledger(), { worker: { lanes: 8, holdMs: 3 * stage.leaseMs } })
  return { ...result, faults: result.evidence.operations.filter(({ did }) => did === 'held').length }
}

async function mix(stage: Stage): Promise<RoundResult> {
  const { faults } = stage.size
  const trouble = together(kills(Math.ceil(faults / 2)), freezes(Math.floor(faults / 2), 1.5 * stage.leaseMs))
  return countingDeaths(await stage.play(await stage.ledger(), { trouble, worker: { deathChance: 0.05 } }))
}
