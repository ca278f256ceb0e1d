/** Builds dist/: the library with declarations (tsc) and the bundled command line (esbuild). Run by `npm run build`. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, readdir, readFile, rename, rm, utimes, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Metafile } from 'esbuild'
import { bundleCommandLine } from './bundle/bundle.ts'

const root = join(import.meta.dirname, '..')
process.chdir(root)
await mkdir('.cache', { recursive: true })
const started = new Date()
const fresh = await mkdtemp('.cache/dist-')
try {
  const parts = [bundleCommandLine(join(fresh, 'bin')), emitLibrary(fresh)] as const
  await Promise.allSettled(parts) // nothing may still be writing when we clean up
  const [bundled] = await Promise.all(parts)
  await writeFile(join(fresh, 'bin/LICENSES.txt'), await licences(bundled))
  await chmod(join(fresh, 'bin/runledger.js'), 0o755)
  await replace('dist', fresh)
  await writeFile('.cache/built', '') // scripts/toolchain.sh compares its age with the sources':
  await utimes('.cache/built', started, started) // an edit made while we built is newer
} catch (error) {
  console.error(error instanceof Error ? error.message : error) // tsc and esbuild have shown the place already
  process.exitCode = 1
} finally {
  await rm(fresh, { recursive: true, force: true })
}

async function emitLibrary(outDir: string): Promise<void> {
  const tsc = spawn(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json', '--outDir', outDir], { stdio: 'inherit' })
  const [code] = await once(tsc, 'exit')
  if (code !== 0) throw new Error('tsc failed')
}

/** The bundle carries other people's code, whose licences want their text to come along. */
async function licences(inputs: readonly Metafile['inputs'][]): Promise<string> {
  const folders = new Set(inputs.flatMap((input) => Object.keys(input)).flatMap((path) => path.match(/^.*node_modules\/(?:@[^/]+\/)?[^/]+/) ?? []))
  const texts = [...folders].toSorted().map(async (folder) => {
    const { name, version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
    const file = (await readdir(folder)).find((entry) => /^licen[cs]e/i.test(entry))
    return `${name} ${version} (${license})\n\n${file === undefined ? '' : await readFile(join(folder, file), 'utf8')}`
  })
  return (await Promise.all(texts)).join(`\n${'-'.repeat(80)}\n\n`)
}

/** File by file and leftovers last, so that a command which is just running from `old` never meets a half-written file or none. */
async function replace(old: string, fresh: string): Promise<void> {
  const files = await filesOf(fresh)
  const entryLast = (file: string): number => (file === 'bin/runledger.js' ? 1 : 0) // it names the others
  for (const file of files.toSorted((a, b) => entryLast(a) - entryLast(b))) {
    await mkdir(dirname(join(old, file)), { recursive: true })
    await rename(join(fresh, file), join(old, file))
  }
  for (const file of await filesOf(old)) if (!files.includes(file)) await rm(join(old, file))
}

async function filesOf(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
}
