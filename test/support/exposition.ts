/** A strict reader of the Prometheus text format (version 0.0.4), written from its description and not from our writer. */

export interface ReadFamily {
  readonly name: string
  readonly type: string
  readonly help: string
  readonly samples: { readonly name: string; readonly labels: Record<string, string>; readonly value: number }[]
}

const SUFFIXES: Readonly<Record<string, readonly string[]>> = { summary: ['', '_sum', '_count'], counter: [''], gauge: [''] }

/** @throws Error for whatever a server would refuse: a wrong name, a bad escape, samples before their TYPE or in two places */
export function parseExposition(text: string): ReadFamily[] {
  if (text !== '' && !text.endsWith('\n')) throw new Error('the last line must end in a line feed')
  const families: ReadFamily[] = []
  const seen = new Set<string>()
  let help: { name: string; text: string } | null = null
  for (const line of text.split('\n').slice(0, -1)) {
    const helped = /^# HELP ([a-zA-Z_:][\w:]*) (.*)$/s.exec(line)
    const typed = /^# TYPE ([a-zA-Z_:][\w:]*) (counter|gauge|histogram|summary|untyped)$/.exec(line)
    if (helped) help = { name: helped[1]!, text: unescape(helped[2]!, 'n\\') }
    else if (typed) {
      const [, name = '', type = ''] = typed
      if (families.some((family) => family.name === name)) throw new Error(`${name} has two TYPE lines`)
      families.push({ name, type, help: help?.name === name ? help.text : '', samples: [] })
    } else {
      const sample = parseSample(line)
      const family = families.at(-1)
      if (!family || !SUFFIXES[family.type]?.some((suffix) => sample.name === family.name + suffix)) throw new Error(`not below its TYPE: ${line}`)
      const series = JSON.stringify([sample.name, Object.entries(sample.labels).toSorted()])
      if (seen.has(series)) throw new Error(`twice: ${line}`)
      seen.add(series)
      family.samples.push(sample)
    }
  }
  return families
}

function parseSample(line: string): ReadFamily['samples'][0] {
  const name = /^[a-zA-Z_:][\w:]*/.exec(line)?.[0]
  if (name === undefined) throw new Error(`no metric name: ${line}`)
  let at = name.length
  const labels: Record<string, string> = {}
  if (line[at] === '{') {
    for (at += 1; line[at] !== '}'; ) {
      const pair = /^([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"(,|(?=\}))/s.exec(line.slice(at))
      if (!pair) throw new Error(`bad label at ${at}: ${line}`)
      labels[pair[1]!] = unescape(pair[2]!, 'n\\"')
      at += pair[0].length
    }
    at += 1
  }
  const value = /^ (\S+)$/.exec(line.slice(at))?.[1]
  if (value === undefined) throw new Error(`no value: ${line}`)
  return { name, labels, value: numberOf(value) }
}

function unescape(text: string, known: string): string {
  return text.replace(/\\(.?)/gs, (_, letter: string) => {
    if (letter === '' || !known.includes(letter)) throw new Error(`bad escape \\${letter}`)
    return letter === 'n' ? '\n' : letter
  })
}

function numberOf(text: string): number {
  if (text === 'NaN') return NaN
  if (/^[+-]?Inf$/.test(text)) return text.startsWith('-') ? -Infinity : Infinity
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) throw new Error(`not a number: ${text}`)
  return Number(text)
}
