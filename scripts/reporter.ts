/** Reporter for `node --test`: one line a file, failures in full, and the totals in the file that RUNLEDGER_TEST_TOTALS names. */
import { writeFileSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import type { TestEvent } from 'node:test/reporters'
import { inspect } from 'node:util'

type Data<Type extends TestEvent['type']> = Extract<TestEvent, { type: Type }>['data']
type Summary = Data<'test:summary'> & { counts: { failed?: number } } // the declarations forget it
type Located = { nesting: number; name: string; file?: string | undefined }

/** What is known of the run so far. The runner reports one file after the other, however many it runs at once. */
class Report {
  passed = 0
  failed = 0
  skipped = 0
  /** Files that have begun and not been heard of again. */
  readonly #open = new Set<string>()
  readonly #output = new Map<string, string>()
  /** The names around the test that is being reported, outermost first. */
  readonly #path: string[] = []
  #fileFailed = false

  begin(test: Located): void {
    if (isFile(test)) this.#open.add(resolve(test.name))
  }

  enter({ nesting, name }: Located): void {
    this.#path.splice(nesting, Infinity, name)
  }

  /** A test has no business writing, so what it writes is worth seeing: it comes with its file's line. */
  hear({ file, message }: { file?: string | undefined; message: string }): void {
    if (file !== undefined) this.#output.set(resolve(file), (this.#output.get(resolve(file)) ?? '') + message.replace(/\n?$/, '\n'))
  }

  pass(test: Data<'test:pass'>): void {
    if (isFile(test)) this.passed -= 1 // a file that registers no test counts as one that passed; #open remembers it
  }

  fail(test: Data<'test:fail'>): string {
    const { failureType } = test.details.error as Error & { failureType?: string }
    const unfinished = test.todo !== undefined && test.todo !== false
    if (unfinished || failureType === 'subtestsFailed') return ''
    if (isFile(test)) return this.#failFile(resolve(test.name))
    this.#fileFailed = true
    if (test.details.type === 'suite') this.failed += 1 // a broken hook: the runner's counts are of tests only
    const where = `${relative('.', test.file ?? '')}:${test.line}`
    return `\n✖ ${this.#path.slice(0, test.nesting + 1).join(' › ')}\n  ${where}\n${indent(describe(test.details.error))}\n`
  }

  /** It could not be loaded, or ended badly; the runner counts it as one failed test. */
  #failFile(file: string): string {
    const inTests = !this.#open.delete(file)
    return `\n✖ ${relative('.', file)} ${inTests ? 'failed after its tests' : 'failed'}\n${this.#outputOf(file)}\n`
  }

  summary({ file, counts, duration_ms }: Summary): string {
    const failed = (counts.failed ?? 0) + counts.cancelled
    const skipped = counts.skipped + counts.todo
    if (file === undefined) {
      this.passed += counts.passed
      this.failed += failed
      this.skipped += skipped
      return ''
    }
    this.#open.delete(resolve(file))
    const mark = this.#fileFailed || failed > 0 ? '✖' : '✔'
    this.#fileFailed = false
    const words = [`${counts.passed} passed`, ...(failed > 0 ? [`${failed} failed`] : []), ...(skipped > 0 ? [`${skipped} skipped`] : [])]
    return `${mark} ${relative('.', file)}: ${words.join(', ')} (${(duration_ms / 1000).toFixed(1)} s)\n${this.#outputOf(resolve(file))}`
  }

  /** The runner is content with a file that has no test, or that exits with 0 before its tests have ended. */
  silentFiles(): string {
    this.failed += this.#open.size
    return [...this.#open].map((file) => `\n✖ ${relative('.', file)} has no test, or exited before its tests ended\n${this.#outputOf(file)}`).join('')
  }

  #outputOf(file: string): string {
    const output = this.#output.get(file) ?? ''
    this.#output.delete(file)
    return indent(output)
  }
}

export default async function* report(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const report = new Report()
  for await (const { type, data } of events) {
    if (type === 'test:enqueue') report.begin(data)
    if (type === 'test:start') report.enter(data)
    if (type === 'test:stdout' || type === 'test:stderr' || type === 'test:diagnostic') report.hear(data)
    if (type === 'test:pass') report.pass(data)
    if (type === 'test:fail') yield report.fail(data)
    if (type === 'test:summary') yield report.summary(data)
  }
  yield report.silentFiles()
  const totals = process.env['RUNLEDGER_TEST_TOTALS']
  if (totals !== undefined) writeFileSync(totals, `${report.passed} ${report.failed} ${report.skipped}\n`)
}

/** The runner reports each file as a test around its tests, where it reports it at all. */
function isFile({ nesting, name, file }: Located): boolean {
  return nesting === 0 && file !== undefined && resolve(name) === resolve(file)
}

function describe(failure: Error): string {
  const error = failure.cause ?? failure
  if (!(error instanceof Error)) return typeof error === 'string' ? error : inspect(error)
  const ofNode = /\n +at [^\n]*node:internal[^\n]*(?=\n| \{|$)/g
  const toldByMessage = 'code' in error && error.code === 'ERR_ASSERTION' // what the properties would say again
  return (toldByMessage ? (error.stack ?? error.message) : inspect(error, { depth: 6 })).replace(ofNode, '')
}

function indent(text: string): string {
  return text === '' ? '' : text.trimEnd().replace(/^/gm, '    ') + '\n'
}
