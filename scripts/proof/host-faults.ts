/** What happens on one host: its clock, its disk, a process that dies between two statements, ten that start at once. */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { migrate } from '../../src/index.ts'
import type { RoundResult } from '../../src/proof/round.ts'
import { repeatedly } from '../../src/proof/trouble.ts'
import { fullServerDisk } from './network-faults.ts'
import { program } from './programs.ts'
import { countingDeaths, type Stage } from './stage.ts'

/** Half of the workers live on a host whose clock is set anew all the time; the ledger's own clock is the server's. */
export async function clock(stage: Stage): Promise<RoundResult> {
  const library = globSync('/usr/lib/*/faketime/libfaketimeMT.so.1')[0]
  if (library === undefined) throw new Error('libfaketime is not there: scripts/test installs it')
  const folder = mkdtempSync(join(tmpdir(), 'runledger-clock-'))
  const file = join(folder, 'clock')
  const set = (hours: number) => writeFileSync(file, `${hours >= 0 ? '+' : ''}${Math.round(hours * 3600)}`)
  set(-3)
  const fake = { LD_PRELOAD: library, FAKETIME_TIMESTAMP_FILE: file, FAKETIME_NO_CACHE: '1', FAKETIME_DONT_FAKE_MONOTONIC: '1' }
  const trouble = repeatedly(stage.size.faults, 150, async (_, random) => {
    set(random() * 24 - 12)
    return true
  })
  try {
    return await stage.play(await stage.ledger(), { environment: (nth) => (nth % 2 === 0 ? fake : {}), trouble })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const DYING = 'scripts/proof/dying-worker.ts'

/** The first starts die; the next ones live, so that there is an end. */
export async function statementBoundary(stage: Stage): Promise<RoundResult> {
  const deaths = 2 * stage.size.faults
  return countingDeaths(await stage.play(await stage.ledger(), { command: [process.execPath, await program(DYING)], environment: (nth) => ({ RUNLEDGER_PROOF_DEATH: nth <= deaths ? String(1 + ((nth * 7 + stage.seed) % 90)) : '0' }) }))
}

/** Whether a small disk can be made here, to be filled: that takes root. */
export function canMakeDisk(): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'runledger-disk-'))
  const made = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', folder], { stdio: 'ignore' }).status === 0
  if (made) execFileSync('umount', ['-l', folder])
  rmSync(folder, { recursive: true, force: true })
  return made
}

/** On SQLite the file is on a small disk that somebody else fills; on servers the error for it is injected. */
export async function disk(stage: Stage): Promise<RoundResult> {
  if (stage.db.name !== 'sqlite') return fullServerDisk(stage)
  const folder = mkdtempSync(join(tmpdir(), 'runledger-disk-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=32m', 'tmpfs', folder])
  try {
    const url = `sqlite:${join(folder, 'ledger.db')}`
    await migrate(url)
    const filler = join(folder, 'filler')
    const trouble = repeatedly(stage.size.faults, 400, async (_, random) => {
      fill(filler)
      await sleep(stage.leaseMs * (0.2 + random()))
      rmSync(filler)
      return true
    })
    return await stage.play(url, { trouble, worker: { patienceMs: 30_000 } })
  } finally {
    execFileSync('umount', ['-l', folder])
    rmSync(folder, { recursive: true, force: true })
  }
}

/** To the last byte: the ledger may be quicker than we are. */
function fill(filler: string): void {
  for (let size = 1 << 20; size >= 512; size /= 2) {
    try {
      while (true) appendFileSync(filler, Buffer.alloc(size))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    }
  }
}

const MIGRATE = 'scripts/proof/migrating-process.ts'
const AT_ONCE = 10

export async function migrations(stage: Stage): Promise<RoundResult> {
  const url = await stage.db.url()
  const file = await program(MIGRATE)
  const pods = Array.from({ length: AT_ONCE }, () => once(spawn(process.execPath, [file], { stdio: ['ignore', 'ignore', 'inherit'], env: { ...process.env, RUNLEDGER_DB: url } }), 'exit'))
  const codes = (await Promise.all(pods)).map(([code]) => code as number)
  if (codes.some((code) => code !== 0)) throw new Error(`migrations at once ended with ${codes.join(', ')}`)
  return { ...(await stage.play(url)), faults: AT_ONCE }
}
