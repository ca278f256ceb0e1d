/** Random cron entries that carry their own meaning, worked out here without the parser; random places in time near clock changes. */
import fc from 'fast-check'
import { clockChanges } from '../../../src/model/window/clock-change.ts'

/** A date as the rules speak of it. */
export interface PlainDate {
  readonly year: number
  readonly month: number
  readonly day: number
}

export interface CronEntry {
  readonly expression: string
  readonly seconds: readonly number[]
  readonly minutes: ReadonlySet<number>
  readonly hours: ReadonlySet<number>
  /** Minute or hour field begins with a star. */
  readonly interval: boolean
  readonly day: (date: PlainDate) => boolean
}

interface Field {
  readonly text: string
  readonly values: readonly number[]
}

interface DayField {
  readonly text: string
  readonly matches: (date: PlainDate) => boolean
}

function numbers(from: number, to: number, step = 1): number[] {
  const found: number[] = []
  for (let value = from; value <= to; value += step) found.push(value)
  return found
}

/** `*`, a step, a value, a list, a range, a range with a step: each with the values it stands for. */
function field(min: number, max: number): fc.Arbitrary<Field> {
  const value = fc.integer({ min, max })
  const step = fc.integer({ min: 1, max: max - min })
  const pair = fc.tuple(value, value).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const)
  return fc.oneof(
    { weight: 2, arbitrary: fc.constant({ text: '*', values: numbers(min, max) }) },
    { weight: 2, arbitrary: step.map((by) => ({ text: `*/${by}`, values: numbers(min, max, by) })) },
    { weight: 3, arbitrary: value.map((one) => ({ text: `${one}`, values: [one] })) },
    { weight: 2, arbitrary: fc.array(value, { minLength: 2, maxLength: 4 }).map((list) => ({ text: list.join(','), values: list })) },
    { weight: 2, arbitrary: pair.map(([a, b]) => ({ text: `${a}-${b}`, values: numbers(a, b) })) },
    { weight: 1, arbitrary: fc.tuple(pair, step).map(([[a, b], by]) => ({ text: `${a}-${b}/${by}`, values: numbers(a, b, by) })) },
  )
}

export function weekdayOf({ year, month, day }: PlainDate): number {
  return new Date(Date.UTC(year, month - 1, day)).getUTCDay()
}

function lengthOf(year: number, month: number): number {
  return new Date(Date.UTC(year, month, 0)).getUTCDate()
}

/** The nearest of all the month's weekdays, by trying each. */
function nearestWeekday({ year, month }: PlainDate, day: number): number {
  const weekdays = numbers(1, lengthOf(year, month)).filter((each) => ![0, 6].includes(weekdayOf({ year, month, day: each })))
  return weekdays.toSorted((a, b) => Math.abs(a - day) - Math.abs(b - day))[0]!
}

const dayOfMonth: fc.Arbitrary<DayField> = fc.oneof(
  { weight: 6, arbitrary: field(1, 31).map(({ text, values }) => ({ text, matches: (date: PlainDate) => values.includes(date.day) })) },
  { weight: 1, arbitrary: fc.constant({ text: 'L', matches: (date: PlainDate) => date.day === lengthOf(date.year, date.month) }) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 28 }).map((day) => ({ text: `${day}W`, matches: (date: PlainDate) => date.day === nearestWeekday(date, day) })) },
)

const dayOfWeek: fc.Arbitrary<DayField> = fc.oneof(
  { weight: 6, arbitrary: field(0, 7).map(({ text, values }) => ({ text, matches: (date: PlainDate) => values.some((value) => value % 7 === weekdayOf(date)) })) },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 7 }).map((weekday) => ({ text: `${weekday}L`, matches: (date: PlainDate) => weekday % 7 === weekdayOf(date) && date.day + 7 > lengthOf(date.year, date.month) })) },
  { weight: 1, arbitrary: fc.tuple(fc.integer({ min: 0, max: 7 }), fc.integer({ min: 1, max: 5 })).map(([weekday, nth]) => ({ text: `${weekday}#${nth}`, matches: (date: PlainDate) => weekday % 7 === weekdayOf(date) && date.day > 7 * (nth - 1) && date.day <= 7 * nth })) },
)

/** Mostly days and months that are not too rare, so that a span of three days has something in it. */
const days = fc.oneof(
  { weight: 3, arbitrary: fc.constant({ text: '* * *', matches: () => true }) },
  { weight: 2, arbitrary: fc.tuple(dayOfMonth, fc.oneof(fc.constant({ text: '*', values: numbers(1, 12) }), field(1, 12)), dayOfWeek).map(([ofMonth, months, ofWeek]) => ({
    text: `${ofMonth.text} ${months.text} ${ofWeek.text}`,
    matches: (date: PlainDate) => {
      const star = ofMonth.text.startsWith('*') || ofWeek.text.startsWith('*')
      const both = [ofMonth.matches(date), ofWeek.matches(date)]
      return months.values.includes(date.month) && (star ? both.every(Boolean) : both.some(Boolean))
    },
  })) },
)

/** Few, for the sake of the test's time: `* * * * * *` has a quarter of a million windows in three days. */
const secondField = fc.constantFrom<Field>({ text: '*/20', values: [0, 20, 40] }, { text: '15,45', values: [15, 45] }, { text: '59', values: [59] })

/** When clocks are changed. */
const smallHour = field(0, 4).filter(({ text }) => !text.startsWith('*'))

export const cronEntries: fc.Arbitrary<CronEntry> = fc
  .record({ second: fc.option(secondField, { freq: 3 }), minute: field(0, 59), hour: fc.oneof(field(0, 23), smallHour), days })
  .map(({ second, minute, hour, days: { text, matches } }) => ({
    expression: `${second ? `${second.text} ` : ''}${minute.text} ${hour.text} ${text}`,
    seconds: (second?.values ?? [0]).toSorted((a, b) => a - b),
    minutes: new Set(minute.values),
    hours: new Set(hour.values),
    interval: minute.text.startsWith('*') || hour.text.startsWith('*'),
    day: matches,
  }))

export const periods = fc.constantFrom('1s', '30s', '90s', '7m', '15m', '1h', '5h', '36h', '1d', '1w', '1mo', '3mo', '1y')

export interface Place {
  readonly zone: string
  /** Milliseconds, within a day and a half of a clock change where the zone has one in that year. */
  readonly at: number
}

const EVENTFUL = [
  'Africa/Cairo', 'Africa/Casablanca', 'America/Asuncion', 'America/Havana', 'America/New_York', 'America/Sao_Paulo', 'America/St_Johns', 'Antarctica/Casey', 'Antarctica/Troll',
  'Asia/Almaty', 'Asia/Amman', 'Asia/Beirut', 'Asia/Gaza', 'Asia/Kathmandu', 'Asia/Pyongyang', 'Asia/Tehran', 'Atlantic/Azores', 'Australia/Lord_Howe',
  'Europe/Berlin', 'Europe/London', 'Pacific/Apia', 'Pacific/Chatham', 'Pacific/Kiritimati', 'UTC',
]

export const zones = fc.oneof(fc.constantFrom(...EVENTFUL), fc.constantFrom(...Intl.supportedValuesOf('timeZone').filter((zone) => zone.includes('/'))))

export const places: fc.Arbitrary<Place> = fc
  .record({ zone: zones, year: fc.integer({ min: 1975, max: 2060 }), which: fc.nat({ max: 5 }), shift: fc.integer({ min: -36 * 3_600_000, max: 36 * 3_600_000 }) })
  .map(({ zone, year, which, shift }) => {
    const changes = [...clockChanges(zone, Date.UTC(year, 0, 1), Date.UTC(year + 1, 0, 1))]
    return { zone, at: (changes[which % changes.length]?.at ?? Date.UTC(year, 5, 1)) + shift }
  })
