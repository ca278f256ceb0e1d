/** What the bundle changes in the code it takes in, each for a start that is measurably faster. */
import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { Plugin } from 'esbuild'

/**
 * `await import('./exec.ts')` spares work where every module is a file. In one file it would make the bundler wrap each module and drop nothing.
 * @param only of the commands, those that this file is made for; the others are left out of it
 */
export function ownImportsAtOnce(only = /./): Plugin {
  const ours = /(?<!typeof )\bimport\('(\.[^']+\.ts)'\)(?!\.\w)/g
  return {
    name: 'own-imports-at-once',
    setup({ onLoad }) {
      onLoad({ filter: /\/(src|migrations)\/.*\.ts$/ }, async ({ path }) => {
        const imports: string[] = []
        const wanted = (file: string) => !path.endsWith('/src/cli/commands.ts') || only.test(file)
        const at = (file: string) => `Promise.resolve(imported${imports.push(file) - 1})`
        const text = (await readFile(path, 'utf8')).replace(ours, (_, file: string) => (wanted(file) ? at(file) : 'Promise.reject(Error())'))
        return { contents: [text, ...imports.map((file, index) => `import * as imported${index} from '${file}'`)].join('\n'), loader: 'ts' }
      })
    },
  }
}

/** Packages by the file that each is bundled into; it is read when the package is first used. */
export function lazyPackages(files: Readonly<Record<string, string>>): Plugin {
  return {
    name: 'lazy-packages',
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^[^.]/ }, ({ path }) => (Object.hasOwn(files, path) ? { path, namespace: 'lazy-packages' } : undefined))
      onLoad({ filter: /.*/, namespace: 'lazy-packages' }, async ({ path }) => ({ contents: lazily(await namesOf(path), `./${files[path]}`) }))
      onResolve({ filter: /^\.\//, namespace: 'lazy-packages' }, ({ path }) => ({ path, external: true }))
    },
  }
}

/** The same for modules of Node's own that few runs come to: heartbeats on a thread, random names. */
export function lazyModules(): Plugin {
  return {
    name: 'lazy-modules',
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^node:(worker_threads|crypto)$/, namespace: 'file' }, ({ path }) => ({ path, namespace: 'lazy-modules' }))
      onLoad({ filter: /.*/, namespace: 'lazy-modules' }, async ({ path }) => ({ contents: lazily(await namesOf(path), path) }))
    },
  }
}

async function namesOf(module: string): Promise<string[]> {
  return Object.keys(await import(module)).filter((name) => name !== 'default' && name !== 'module.exports')
}

function lazily(names: readonly string[], file: string): string {
  return `module.exports = { ${names.map((name) => `get ${name}() { return require('${file}').${name} }`).join(', ')} }`
}

/** From its sources, of which we need one class. Its package.json says that they have no side effects, but not to esbuild, which reads the one in src/. */
export function luxonInParts(): Plugin {
  const src = resolve('node_modules/luxon/src')
  return {
    name: 'luxon-in-parts',
    setup({ onResolve }) {
      onResolve({ filter: /^luxon$/ }, () => ({ path: `${src}/luxon.js`, sideEffects: false }))
      onResolve({ filter: /^\./ }, ({ path, importer }) => (importer.startsWith(src) ? { path: resolve(dirname(importer), path), sideEffects: false } : undefined))
    },
  }
}

/** uuid asks WebCrypto for its random bytes, and Node loads 5 ms of code for that. */
export function randomFromKernel(): Plugin {
  return {
    name: 'random-from-kernel',
    setup({ onResolve }) {
      onResolve({ filter: /^\.\/rng\.js$/ }, ({ importer }) => (/node_modules\/uuid\//.test(importer) ? { path: resolve('scripts/bundle/kernel-random.ts') } : undefined))
    },
  }
}

/** Of umzug's import time three quarters are a command-line library of its own, which we never call. */
export function umzugWithoutItsCli(): Plugin {
  return {
    name: 'umzug-without-its-cli',
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^\.\/cli$/ }, ({ importer }) =>
        /node_modules\/umzug\/lib\/[^/]+$/.test(importer) ? { path: 'umzug/cli', namespace: 'nothing' } : undefined,
      )
      onLoad({ filter: /.*/, namespace: 'nothing' }, () => ({ contents: 'module.exports = {}', loader: 'js' }))
    },
  }
}
