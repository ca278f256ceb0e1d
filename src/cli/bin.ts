#!/usr/bin/env node
/** The executable, a CommonJS script: runs main.ts as the build made it, with the code that V8 kept of an earlier run. Kept tiny, since it is compiled anew at every start. */
import { closeSync, existsSync, fsyncSync, lstatSync, mkdirSync, openSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { Script } from 'node:vm'

/*
 * Why not Node's own compile cache: it keeps a module as it is before it runs, when V8 has compiled next to nothing of it; every
 * start then compiled the same 460 functions again, a sixth of its time. Here the code is kept at the end of a run, with every
 * function that was called. V8 itself refuses code of another V8 and other flags. Of the source it compares no more than the
 * length, so the names of the files say what is in them.
 */

/** The files' names beside this one, which the build puts in: all commands, and `exec` alone. */
declare const MAIN: string
declare const EXEC: string

interface Kept {
  readonly script: Script
  readonly file: string
  readonly size: number
}

/** A launch that lost calls less than one that runs a job: so many of the next runs look whether they can add to a file, most of them while it is new. */
const LOOK_AGAIN = { whileNew: 1 / 8, later: 1 / 64, newMs: 3_600_000 }
const MOST_FILES = 40

const folder = codeFolder()
const kept: Kept[] = []
quietSqlite()
run(process.argv[2] === 'exec' ? EXEC : MAIN)
process.on('exit', () => kept.forEach(keep))

function run(file: string): unknown {
  const filename = `${__dirname}/${file}`
  const code = folder === undefined ? undefined : readCode(`${folder}/${codeName(file)}`)
  const script = new Script(readFileSync(filename, 'latin1'), { filename, cachedData: code?.data })
  if (code) kept.push({ script, file: code.file, size: script.cachedDataRejected === false ? code.data!.length : 0 })
  const module = { exports: {} }
  script.runInThisContext()(module.exports, (id: string) => (id.startsWith('./') ? run(id) : require(id)), module, filename)
  return module.exports
}

/** Jobs start often and must start fast: what only the other commands call of a package stays out of their file. */
function codeName(file: string): string {
  return `${file.replace(/^\.?\W*/, '').replaceAll('/', '-')}-${process.version}-${process.arch}-${process.argv[2] === 'exec' ? 'exec' : 'other'}`
}

function readCode(file: string): { file: string; data?: Buffer } {
  try {
    return { file, data: readFileSync(file) }
  } catch {
    return { file } // the first run
  }
}

/** Written whole or not at all, also when the machine crashes: V8 does not notice when a part is missing. */
function keep({ script, file, size }: Kept): void {
  const part = `${file}.${process.pid}`
  try {
    if (size > 0 && !isToLook(file)) return
    const data = script.createCachedData()
    if (data.length <= size) return
    const fd = openSync(part, 'wx', 0o600)
    writeFileSync(fd, data)
    fsyncSync(fd)
    closeSync(fd)
    renameSync(part, file)
    clear()
  } catch {
    rmSync(part, { force: true }) // no room, no right: the next start is as slow as this one
  }
}

function isToLook(file: string): boolean {
  const isNew = Date.now() - statSync(file).mtimeMs < LOOK_AGAIN.newMs
  return Math.random() < (isNew ? LOOK_AGAIN.whileNew : LOOK_AGAIN.later)
}

/** Of earlier builds and of processes that were killed while they wrote. */
function clear(): void {
  const files = readdirSync(folder!).map((name) => ({ path: join(folder!, name), at: statSync(join(folder!, name)).mtimeMs }))
  for (const { path } of files.toSorted((a, b) => b.at - a.at).slice(MOST_FILES)) rmSync(path, { force: true })
}

/** Code is loaded from this folder, so it is one that only we can write to; undefined, and a slower start, when there is none. */
function codeFolder(): string | undefined {
  try {
    const uid = process.geteuid?.()
    if (uid === undefined) return undefined
    const base = uid === 0 ? '/var/cache' : userCache()
    const folder = join(base, 'runledger')
    if (!existsSync(folder)) mkdirSync(folder, { recursive: true, mode: 0o700 })
    const { mode, uid: owner } = lstatSync(folder) // lstat: a link planted by somebody else is not a folder of ours
    const ours = (mode & 0o170777) === 0o040700 && owner === uid
    const replaceable = (statSync(base).mode & 0o002) !== 0
    return ours && !replaceable ? folder : undefined
  } catch {
    return undefined // no home, read-only disk, quota: only the cache is lost
  }
}

function userCache(): string {
  const xdg = process.env['XDG_CACHE_HOME']
  return xdg !== undefined && isAbsolute(xdg) ? xdg : join(homedir(), '.cache')
}

/** Node 22 warns on stderr at every start that node:sqlite is experimental; from Node 24 on it no longer does. */
function quietSqlite(): void {
  const emitWarning = process.emitWarning
  process.emitWarning = (warning: string | Error, ...rest: unknown[]) => {
    if (String(warning).startsWith('SQLite is an experimental feature')) return
    Reflect.apply(emitWarning, process, [warning, ...rest])
  }
}
