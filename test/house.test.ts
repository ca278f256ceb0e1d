/** The house rules that a machine can read: floors, circles, sizes, names, and what must not be committed. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { basename, join, posix } from 'node:path'
import { describe, it } from 'node:test'

const root = join(import.meta.dirname, '..')

/** Lowest first. A file may import its own floor and those below. */
const floors = [/^src\/model\//, /^src\/dialect\//, /^(src\/store|migrations)\//, /^src\/migrate\//, /^src\/runtime\//, /^src\/(index|testing)\.ts$/, /^src\/proof\//, /^src\/web\//, /^src\/cli\//]

/** The narrower doors: what these folders may import of ours. */
const doors: Record<string, RegExp> = {
  'src/cli/': /^src\/(index\.ts$|model\/|proof\/|cli\/)/, // a customer of the library, like any other
  'src/proof/': /^src\/(index\.ts$|model\/|proof\/)/, // likewise: it may see what every user of the library sees
  'src/web/': /^src\/(index\.ts$|model\/|web\/)/,
  'migrations/': /^(src\/dialect|migrations)\//, // frozen: what the store and the words become later must not change them
}

/** What of other people's a folder may import; the others may import what they like. */
const packages: Record<string, RegExp> = { 'migrations/': /^kysely$/ }

const files = tracked(['*']).filter((file) => existsSync(join(root, file)))
const sources = files.filter((file) => /^(src|migrations)\/.*\.ts$/.test(file))

describe('house', () => {
  it('no import points up the floors', () => {
    const up = arrows().filter(({ from, to }) => floorOf(to) > floorOf(from))
    assert.deepEqual(up.map(show), [])
  })

  it('command line, web and migrations come in by their doors only', () => {
    const wrong = arrows().filter(({ from, to }) => !doorOf(doors, from).test(to))
    assert.deepEqual(wrong.map(show), [])
  })

  it('migrations import no package but kysely', () => {
    const wrong = sources.flatMap((file) => importsOf(file).filter((name) => !/^(\.|node:)/.test(name) && !doorOf(packages, file).test(name)).map((to) => show({ from: file, to })))
    assert.deepEqual(wrong, [])
  })

  it('no imports go in a circle', () => {
    assert.deepEqual(circle(), [])
  })

  it('every source file has its floor', () => {
    assert.deepEqual(sources.filter((file) => floorOf(file) < 0), [])
  })

  it('no database is named where something is decided, outside src/dialect', () => {
    const name = `['"](?:postgres|postgresql|mysql|mariadb|sqlite)['"]`
    const decision = new RegExp(`([!=]==?|\\bcase)\\s*${name}|${name}\\s*[!=]==?`, 'g')
    const allowed = /^src\/(dialect\/|cli\/(db|database)-url\.ts$)/
    const found = sources.filter((file) => !allowed.test(file)).flatMap((file) => [...codeOf(file).matchAll(decision)].map(([text]) => `${file}: ${text}`))
    assert.deepEqual(found, [])
  })

  it('no file in src is over 250 lines', () => {
    const long = sources.map((file) => ({ file, lines: read(file).split('\n').length - 1 })).filter(({ file, lines }) => file.startsWith('src/') && lines > 250)
    assert.deepEqual(long, [])
  })

  it('no file is a drawer for odds and ends', () => {
    const drawer = /^(utils?|helpers?|types|common)\.[a-z]+$/
    assert.deepEqual(files.filter((file) => drawer.test(basename(file))), [])
  })

  it('lockfiles record no download address', () => {
    assert.deepEqual(files.filter((file) => basename(file) === 'package-lock.json' && read(file).includes('"resolved"')), [])
  })

  it('no file names a path of one machine or a package registry', () => {
    const secret = /(^|[^a-z.])\/(work|farm)\/|https?:\/\/[a-z.]*(npm|debian)[a-z.]*|registry\.[a-z]+js\.|deb\.debian\./m
    assert.deepEqual(files.filter((file) => !/^package-lock\.json$/.test(file) && secret.test(read(file))), [])
  })
})

interface Arrow {
  from: string
  to: string
}

function show({ from, to }: Arrow): string {
  return `${from} -> ${to}`
}

/** Committed, or about to be. */
function tracked(patterns: string[]): string[] {
  // Read also where somebody else owns the checkout, as in a container.
  const git = ['-c', 'safe.directory=*', 'ls-files', '-z', '--cached', '--others', '--exclude-standard', '--', ...patterns]
  return execFileSync('git', git, { cwd: root, encoding: 'utf8' }).split('\0').filter((file) => file !== '')
}

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8')
}

/** Without comments, which may name and quote what they like. */
function codeOf(file: string): string {
  return read(file).replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '')
}

/** What the file imports, types included: a type that lives on the roof is an arrow too. */
function importsOf(file: string): string[] {
  const line = /\b(?:from|import)\s*\(?\s*(['"])([^'"\n]+)\1/g
  return [...codeOf(file).matchAll(line)].map(([, , name = '']) => name)
}

function arrows(): Arrow[] {
  return sources.flatMap((from) =>
    importsOf(from)
      .filter((name) => name.startsWith('.'))
      .map((name) => ({ from, to: posix.join(posix.dirname(from), name) }))
      .filter(({ to }) => to.endsWith('.ts')),
  )
}

function floorOf(file: string): number {
  return floors.findIndex((floor) => floor.test(file))
}

function doorOf(rules: Record<string, RegExp>, file: string): RegExp {
  return Object.entries(rules).find(([folder]) => file.startsWith(folder))?.[1] ?? /./
}

/** One circle of imports, or none. */
function circle(): string[] {
  const targets = Map.groupBy(arrows(), ({ from }) => from)
  const done = new Set<string>()
  const visit = (file: string, path: string[]): string[] => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file]
    if (done.has(file)) return []
    for (const { to } of targets.get(file) ?? []) {
      const found = visit(to, [...path, file])
      if (found.length > 0) return found
    }
    done.add(file)
    return []
  }
  return sources.map((file) => visit(file, [])).find((found) => found.length > 0) ?? []
}
