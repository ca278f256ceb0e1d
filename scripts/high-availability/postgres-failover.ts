/** PostgreSQL with a standby: the primary is killed under load and the standby promoted, replicated synchronously and not; what is there afterwards? */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { startPaymentService } from '../../examples/payments/service.ts'
import { isLedgerError, migrate, openLedger } from '../../src/index.ts'
import { faultProxy } from '../../test/support/fault-proxy.ts'
import { privatePostgres, type PrivatePostgres } from '../../test/support/private-postgres.ts'
import { Crew } from './crew.ts'
import { nowMs } from './events.ts'
import { completedKeys, judge, longestPauseMs, type Query, type Verdict } from './judge.ts'
import { isBroken, print } from './print.ts'
import { refuseWords } from '../usage.ts'

refuseWords('postgres-failover')

const WORKERS = 6
const BEFORE_MS = 4_000
const AFTER_MS = 4_000
/** Each way, between the primary and a standby somewhere else. */
const DISTANCE_MS = 50

const query: Query = async (sql, url) => {
  const client = new pg.Client(url)
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows
  } finally {
    await client.end()
  }
}

/** Clients have both servers in their URL, and find the new primary by themselves. */
async function synchronous(): Promise<Verdict> {
  const primary = await (await privatePostgres()).start()
  try {
    const standby = await primary.standby()
    const url = `postgres://app@${primary.host},${standby.host}/postgres?target_session_attrs=read-write`
    return await underLoad('synchronous standby, both servers in the URL', { primary, standby, url })
  } finally {
    await primary.remove()
  }
}

/** Clients have one address, which is moved when the new primary is ready: with its fences raised, or without. */
async function asynchronous(bump: boolean): Promise<Verdict> {
  const primary = await (await privatePostgres()).start()
  const line = await faultProxy(primary.url, { target: { path: primary.socket } })
  const address = await faultProxy(primary.url, { target: { path: primary.socket } })
  try {
    line.latencyMs = DISTANCE_MS
    const standby = await primary.lateStandby(line.port)
    const title = `asynchronous standby ${DISTANCE_MS} ms away, one address that moves${bump ? ' after `runledger fence bump`' : ''}`
    return await underLoad(title, {
      primary,
      standby,
      url: address.url,
      // What is under way to the standby is lost with the line, and so is what the primary still acknowledges.
      beforeKill() {
        line.mode = 'refuse'
        line.reset()
      },
      afterKill() {
        address.mode = 'refuse'
        address.reset()
      },
      async afterPromotion() {
        if (bump) await bumpFences(standby.url)
        address.target = { path: standby.socket }
        address.mode = 'up'
      },
    })
  } finally {
    await Promise.all([line.close(), address.close()])
    await primary.remove()
  }
}

/** A synchronous standby that is away: nothing is acknowledged, so nothing is started. */
async function withoutStandby(): Promise<boolean> {
  const primary = await (await privatePostgres()).start()
  try {
    const standby = await primary.standby()
    await migrate(primary.url)
    await standby.kill()
    const ledger = await openLedger(primary.url, { connectTimeout: '5s', heartbeats: 'loop' })
    const askedAt = nowMs()
    let started = false
    const outcome: unknown = await ledger.run({ task: 'alone', key: 'a' }, () => void (started = true)).catch((error: unknown) => error)
    await ledger.close()
    console.log(`\nsynchronous standby killed instead: after ${Math.round(nowMs() - askedAt)} ms ${outcome instanceof Error ? outcome.message : 'an answer'}; the job was ${started ? 'STARTED' : 'not started'}`)
    return !started && isLedgerError(outcome) && outcome.code === 'DATABASE_UNAVAILABLE'
  } finally {
    await primary.remove()
  }
}

async function bumpFences(url: string): Promise<void> {
  const ledger = await openLedger(url, { heartbeats: 'loop' })
  await ledger.fences.bump()
  await ledger.close()
}

interface Failover {
  readonly primary: PrivatePostgres
  readonly standby: PrivatePostgres
  /** The clients'. */
  readonly url: string
  beforeKill?(): void
  afterKill?(): void
  afterPromotion?(): Promise<void>
}

async function underLoad(title: string, { primary, standby, url, ...hooks }: Failover): Promise<Verdict> {
  const folder = mkdtempSync(join(tmpdir(), 'events-'))
  await migrate(url)
  const service = await startPaymentService(join(folder, 'payments.db'))
  try {
    const crew = await Crew.start(folder, Array.from({ length: WORKERS }, () => url), service.url)
    await sleep(BEFORE_MS)
    const killedAt = nowMs()
    hooks.beforeKill?.()
    await primary.kill()
    hooks.afterKill?.()
    const deadAt = nowMs()
    await standby.promote()
    const promotedAt = nowMs()
    await hooks.afterPromotion?.()
    await sleep(AFTER_MS)
    await crew.stop()
    const stoppedAt = nowMs()
    const completed = await completedKeys(query, standby.url)
    const launched = await crew.launchAgain(url, service.url)
    const verdict = await judge(folder, query, standby.url, completed)
    const { charges } = (await (await fetch(`${service.url}/account`)).json()) as { charges: number }
    print(title, verdict, {
      'keys launched again at the end': launched,
      'charges at the service, each key once': charges,
      'to kill, ms': deadAt - killedAt,
      'to promote, ms': promotedAt - deadAt,
      'longest time without an acknowledged completion, ms': longestPauseMs(folder, killedAt, stoppedAt),
    })
    return verdict
  } finally {
    await service.close()
  }
}

const verdict = await synchronous()
const without = await asynchronous(false)
const withBump = await asynchronous(true)
const nothingStarted = await withoutStandby()
// What asynchronous replication loses is what it costs, and is printed; that fences are raised above it is a promise.
process.exitCode = !nothingStarted || isBroken(verdict) || without.contradictions + without.together + withBump.contradictions + withBump.fencesTwice > 0 ? 1 : 0
process.exit()
