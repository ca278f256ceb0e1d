/** Bundles the command line into a few CommonJS files, made to start fast. */
import { mkdir, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { build, type BuildOptions, type Metafile } from 'esbuild'
import { lazyPackages, lazyModules, luxonInParts, ownImportsAtOnce, randomFromKernel, umzugWithoutItsCli } from './plugins.ts'

/** Big, and most runs need none of them: each is a file of its own. */
const ON_DEMAND = ['pg', 'mysql2', 'umzug'] as const

/*
 * CommonJS, for an ES module that imports from node:fs or node:util makes Node load whatever these could export (streams, a
 * debugger's helpers: 8 ms). One file for all that is ours, for each further one is looked up, read and checked by itself; and
 * one with nothing but `exec` beside it, for this is what starts every minute, and all of a file is evaluated at its start.
 */
const COMMON = {
  bundle: true,
  format: 'cjs',
  platform: 'node',
  target: 'node22',
  supported: { 'dynamic-import': false }, // bin.ts runs scripts, and these have no other way to load than require
  minifySyntax: true,
  minifyWhitespace: true,
  lineLimit: 160, // with that and with the names as they are, a stack trace stays readable
  charset: 'ascii', // bin.ts reads bytes as characters
  legalComments: 'none', // LICENSES.txt has them in full
  logLevel: 'warning',
  metafile: true,
} as const satisfies BuildOptions

/** What Node puts around a CommonJS module, so that bin.ts hands V8 the file as it is. */
const WRAPPER = {
  banner: { js: '(function (exports, require, module, __filename) {' },
  footer: { js: '})' },
} as const satisfies BuildOptions

/** Files but the entry carry a hash of their content, which bin.ts relies on. @returns what went into them */
export async function bundleCommandLine(outdir: string): Promise<Metafile['inputs'][]> {
  await mkdir(outdir, { recursive: true })
  const packages = await Promise.all(ON_DEMAND.map((name) => bundlePackage(name, outdir)))
  const files = Object.fromEntries(packages.map(({ name, file }) => [name, file]))
  const [main, exec] = await Promise.all([bundleCommands('main', outdir, files), bundleCommands('exec', outdir, files, /^\.\/exec\.ts$/)])
  const entry = await build({
    ...COMMON,
    entryPoints: { runledger: 'src/cli/bin.ts' },
    outdir,
    define: { MAIN: JSON.stringify(main.file), EXEC: JSON.stringify(exec.file) },
  })
  await writeFile(join(outdir, 'package.json'), '{ "type": "commonjs" }\n') // the package itself is of ES modules
  return [...packages, main, exec, entry.metafile].map(({ inputs }) => inputs)
}

interface Bundled {
  readonly file: string
  readonly inputs: Metafile['inputs']
}

async function bundleCommands(name: string, outdir: string, packages: Readonly<Record<string, string>>, only?: RegExp): Promise<Bundled> {
  const { metafile } = await build({
    ...COMMON,
    entryPoints: { [name]: 'src/cli/main.ts' },
    entryNames: '[name]-[hash]',
    outdir,
    ...WRAPPER,
    external: ['@opentelemetry/api'], // the one that is installed beside us, if one is: it finds its tracer by a global
    define: { 'import.meta.url': '"file:///"' }, // asked for by the heartbeats' thread, which the command line does without
    plugins: [ownImportsAtOnce(only), lazyPackages(packages), lazyModules(), luxonInParts(), randomFromKernel()],
  })
  return { file: fileOf(metafile), inputs: metafile.inputs }
}

async function bundlePackage(name: string, outdir: string): Promise<Bundled & { readonly name: string }> {
  const { metafile } = await build({
    ...COMMON,
    entryPoints: { [name]: name },
    entryNames: '[name]-[hash]',
    outdir,
    ...WRAPPER,
    external: ['pg-native'], // pg asks for it only when a program does
    plugins: [umzugWithoutItsCli()],
  })
  return { name, file: fileOf(metafile), inputs: metafile.inputs }
}

function fileOf({ outputs }: Metafile): string {
  return basename(Object.keys(outputs)[0]!)
}
