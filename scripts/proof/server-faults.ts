/** What happens to a database server as a whole, while claims, heartbeats, completions and commits are under way. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { RoundResult } from '../../src/proof/round.ts'
import { repeatedly } from '../../src/proof/trouble.ts'
import { killSessions, userUrl } from '../../test/support/each-server.ts'
import type { PrivateServer } from '../../test/support/private-server.ts'
import type { Stage } from './stage.ts'

/** Crashed in the middle of everything; what it acknowledged it must still know. */
export async function restart(stage: Stage): Promise<RoundResult> {
  const { server, url } = await stage.ownServer()
  const trouble = repeatedly(Math.ceil(stage.size.faults / 4), 800, async () => {
    await server.crash()
    return true
  })
  return stage.play(url, { trouble, worker: { patienceMs: 30_000 } })
}

export async function readOnly(stage: Stage): Promise<RoundResult> {
  const { server, url } = await stage.ownServer()
  const db = stage.asServer()
  // An administrator may write to a read-only server of MariaDB or MySQL.
  const theirs = db.name === 'postgres' ? url : await userUrl(db, url, 'secret')
  const trouble = repeatedly(Math.ceil(stage.size.faults / 4), 600, async (_, random) => {
    await setReadOnly(stage, server, url, true)
    await sleep(stage.leaseMs * (0.3 + random()))
    await setReadOnly(stage, server, url, false)
    return true
  })
  try {
    return await stage.play(theirs, { trouble, worker: { patienceMs: 30_000 } })
  } finally {
    await setReadOnly(stage, server, url, false)
  }
}

/** PostgreSQL has no switch for the whole server but recovery; a database's default is as good to its clients. */
async function setReadOnly(stage: Stage, server: PrivateServer, url: string, on: boolean): Promise<void> {
  const db = stage.asServer()
  if (db.name !== 'postgres') return void (await db.admin(`set global read_only = ${on ? 1 : 0}`, server.url))
  await db.admin(`begin read write; alter database ${new URL(url).pathname.slice(1)} set default_transaction_read_only = ${on ? 'on' : 'off'}; commit`, url)
  await killSessions(db, url) // It is for new sessions.
}
