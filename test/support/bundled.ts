/** Programs that a test starts by the dozen, in one file each and sharing what the first of them compiled: they start in half of the time. */
import { fork, spawn, type ChildProcess, type StdioOptions } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { buildSync } from 'esbuild'

export interface Bundled {
  /** By the name of its source; what it says arrives as messages. */
  fork(file: string, args?: readonly string[]): ChildProcess
  /** Without a channel for messages. */
  spawn(file: string, args: readonly string[], stdio: StdioOptions): ChildProcess
}

/**
 * To be called at the top of a test file, for programs that lie beside it (`import.meta.dirname`); they are gone after its tests.
 * Not for one with heartbeats on a thread, which is a file of its own.
 */
export function bundled(sources: string, ...files: string[]): Bundled {
  const folder = mkdtempSync(join(tmpdir(), 'runledger-bundled-'))
  buildSync({
    entryPoints: files.map((file) => join(sources, file)),
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    platform: 'node',
    format: 'esm',
    banner: { js: `import { createRequire } from 'node:module'; const require = createRequire(import.meta.url)` }, // The drivers are CommonJS.
  })
  after(() => rmSync(folder, { recursive: true }))
  const env = { ...process.env, NODE_COMPILE_CACHE: folder }
  const path = (file: string) => join(folder, file.replace(/\.ts$/, '.mjs'))
  return {
    fork: (file, args = []) => fork(path(file), args, { stdio: 'inherit', env }),
    spawn: (file, args, stdio) => spawn(process.execPath, [path(file), ...args], { stdio, env }),
  }
}
