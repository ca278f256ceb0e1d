/** Crashes a server that scripts/servers.sh started, and starts it again as it was: the same command, user, data and port. */
import { spawn, type ChildProcess } from 'node:child_process'
import { readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { session } from './each-server.ts'

const STARTS_WITHIN_MS = 60_000

/** @param pidFile where its pid stands, and where the new one's is written @param url an administrator's */
export async function crash(pidFile: string, url: string): Promise<void> {
  const pid = Number(readFileSync(pidFile, 'utf8'))
  const [program = '', ...args] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1)
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const [uid, gid] = ['Uid', 'Gid'].map((name) => Number(new RegExp(`^${name}:\\t(\\d+)`, 'm').exec(status)![1]))
  const cwd = readlinkSync(`/proc/${pid}/cwd`)
  // PostgreSQL's immediate mode takes its children and shared memory along; the others are one process each.
  process.kill(pid, program.endsWith('postgres') ? 'SIGQUIT' : 'SIGKILL')
  while (await isListening(url)) await sleep(5)
  while (isThere(pid)) await sleep(5)
  // The first start made the users, and its file would be told to do that again.
  const again = args.filter((arg) => !arg.startsWith('--init-file'))
  for (const deadline = performance.now() + STARTS_WITHIN_MS; performance.now() < deadline; ) {
    const server = spawn(program, again, { cwd, uid: uid!, gid: gid!, detached: true, stdio: 'ignore', env: { ...process.env, PATH: `${process.env['PATH']}:/usr/sbin` } })
    server.unref()
    writeFileSync(pidFile, String(server.pid))
    if (await answers(url, server, deadline)) return
  }
  throw new Error('the server did not come back')
}

/** @returns false when it has ended again, as one may that finds its port or its files not yet free */
async function answers(url: string, server: ChildProcess, deadline: number): Promise<boolean> {
  while (server.exitCode === null && server.signalCode === null && performance.now() < deadline) {
    const first = await session(url).catch(() => null)
    if (first) return first.end().then(() => true)
    await sleep(20)
  }
  return false
}

function isListening(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname)
    socket.once('connect', () => resolve(true))
    socket.once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}

/** Its zombie is not: who started it may be slow to ask after it. */
function isThere(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}
