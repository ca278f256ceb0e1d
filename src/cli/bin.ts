#!/usr/bin/env node
/** The executable: turns on Node's compile cache where that is safe, then runs the command line. Kept tiny, since it is compiled anew at every start. */
import { lstatSync, mkdirSync, statSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'

quietSqlite()
const cache = compileCacheFolder()
if (cache !== undefined) enableCompileCache(cache)
await import('./main.ts')

/** Code is loaded from this folder, so it is one that only we can write to; undefined, and a slower start, when there is none. */
function compileCacheFolder(): string | undefined {
  try {
    const uid = process.geteuid?.()
    if (uid === undefined) return undefined
    const base = uid === 0 ? '/var/cache' : userCache()
    mkdirSync(base, { recursive: true, mode: 0o700 })
    if ((statSync(base).mode & 0o002) !== 0) return undefined // as in /tmp, where others can put theirs in the place of ours
    const folder = join(base, 'runledger')
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const { mode, uid: owner } = lstatSync(folder) // lstat: a link planted by somebody else is not a folder of ours
    return (mode & 0o170777) === 0o040700 && owner === uid ? folder : undefined
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
