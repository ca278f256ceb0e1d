/**
 * The programs that a proof starts by the hundred, each bundled into one file: read as it stands, with two hundred files
 * of TypeScript, one start takes 0.4 s of a processor; bundled, 0.05 s.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build, type Plugin } from 'esbuild'

/** A file under src, a text that it has exactly once, and what stands there instead. */
export type Edit = readonly [file: string, text: string, instead: string]

const ROOT = join(import.meta.dirname, '../..')
/** A program of its own, which the others look for beside themselves. */
const THREAD = 'src/runtime/pacemaker-thread.ts'

const programs = new Map<string, Promise<string>>()

/** The ledger as it is: bundled once by each process that asks, and removed when that ends. */
export function program(entry: string): Promise<string> {
  const known = programs.get(entry) ?? bundleProgram(newFolder(), entry)
  programs.set(entry, known)
  return known
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'runledger-program-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/**
 * @param folder a new one for each set of edits
 * @param entry as seen from the root of the checkout
 * @returns the file to be started
 */
export async function bundleProgram(folder: string, entry: string, edits: readonly Edit[] = []): Promise<string> {
  mkdirSync(folder, { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }\n')
  const unused = new Set(edits.map(([file]) => file))
  await build({
    absWorkingDir: ROOT,
    entryPoints: { program: entry, 'pacemaker-thread': THREAD },
    outdir: folder,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    external: ['pg', 'mysql2', 'umzug', 'esbuild', '@opentelemetry/api'], // CommonJS, or not there
    logLevel: 'warning',
    plugins: [edited(edits, unused)],
  })
  if (unused.size > 0) throw new Error(`${entry} needs no ${[...unused].join(', ')}`)
  return join(folder, 'program.js')
}

function edited(edits: readonly Edit[], unused: Set<string>): Plugin {
  const byFile = Map.groupBy(edits, ([file]) => join(ROOT, 'src', file))
  return {
    name: 'edited',
    setup({ onLoad }) {
      onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path }) => {
        const changes = byFile.get(path)
        for (const [file] of changes ?? []) unused.delete(file)
        return changes && { contents: changes.reduce(changed, readFileSync(path, 'utf8')), loader: 'ts' }
      })
    },
  }
}

function changed(source: string, [file, text, instead]: Edit): string {
  if (source.split(text).length !== 2) throw new Error(`${file} does not have exactly once: ${text}`)
  return source.replace(text, () => instead)
}
