/** The package as a user gets it: packed, installed into an empty project, imported, type-checked and run on every Node.js we promise. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'

const root = join(import.meta.dirname, '..')
const programs = join(root, 'node_modules/.bin')

describe('package', () => {
  let folder = ''
  let tarball = ''
  let project = ''

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'runledger-package-'))
    const packed: unknown = JSON.parse(await run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], root))
    tarball = join(folder, fileName(packed))
    project = await install(folder, tarball)
  })

  after(() => rm(folder, { recursive: true, force: true }))

  for (const version of [22, 24, 26]) {
    it(`imports, and its command runs, on Node ${version}`, async () => {
      const node = join(root, `tools/node-matrix/node_modules/node${version}-${process.arch}/bin/node`)
      assert.match(await run(node, ['--version'], project), new RegExp(`^v${version}\\.`))
      assert.equal(await run(node, ['use.mjs'], project), 'function\n')
      assert.match(await run(node, ['node_modules/.bin/runledger', '--version'], project), /\d+\.\d+\.\d+/)
    })
  }

  it('type-checks in a strict consumer, declarations included', async () => {
    assert.equal(await run(join(programs, 'tsc'), ['-p', project], project), '')
  })

  it('carries what a user needs and nothing of ours', async () => {
    const list = (await run('tar', ['-tzf', tarball], folder)).trim().split('\n')
    for (const file of ['LICENSE', 'package.json', 'dist/bin/runledger.js', 'dist/bin/LICENSES.txt', 'dist/src/index.js', 'dist/src/index.d.ts', 'dist/src/testing.js', 'dist/src/testing.d.ts']) {
      assert.ok(list.includes(`package/${file}`), `${file} is missing`)
    }
    assert.deepEqual(list.filter((file) => !/^package\/(dist\/|[A-Z]+(\.md)?$|package\.json$)/.test(file)), [])
  })

  it('gives publint nothing to say', async () => {
    assert.match(await run(join(programs, 'publint'), ['run', tarball, '--strict'], root), /All good!/)
  })

  it('gives attw nothing to say', async () => {
    await run(join(programs, 'attw'), [tarball, '--profile', 'esm-only'], root)
  })
})

function fileName(packed: unknown): string {
  assert.ok(Array.isArray(packed) && typeof packed[0]?.filename === 'string')
  return packed[0].filename
}

/** An empty project with the tarball in it, and the Node.js declarations any TypeScript project has. */
async function install(folder: string, tarball: string): Promise<string> {
  const project = await mkdtemp(join(folder, 'project-'))
  const { devDependencies }: { devDependencies: Record<string, string> } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  const use = `import { openLedger } from 'runledger'\nimport { openTestLedger } from 'runledger/testing'\nconsole.log(typeof openLedger === typeof openTestLedger ? typeof openLedger : 'one is missing')\n`
  const compilerOptions = { module: 'nodenext', target: 'es2024', lib: ['es2024', 'esnext.disposable'], types: ['node'], strict: true, skipLibCheck: false, noEmit: true }
  await writeFile(join(project, 'package.json'), JSON.stringify({ name: 'consumer', private: true, type: 'module' }))
  await writeFile(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }))
  await writeFile(join(project, 'use.mjs'), use)
  await writeFile(join(project, 'use.ts'), use)
  await run('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error', tarball, `@types/node@${devDependencies['@types/node']}`], project)
  return project
}

/** Its stdout; what it wrote and its exit code when it fails, or says anything on stderr that a user would take for a fault. */
async function run(program: string, words: string[], cwd: string): Promise<string> {
  const { stdout, stderr } = await promisify(execFile)(program, words, { cwd }).catch((error: Error & { stdout?: string; stderr?: string }) => {
    throw new Error(`${program} ${words.join(' ')}\n${error.stdout ?? ''}${error.stderr ?? ''}`, { cause: error })
  })
  assert.doesNotMatch(stderr, /warning|error/i)
  return stdout
}
