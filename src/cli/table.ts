/** Columns for people: as wide as their content, a line cut to the terminal. */
import { offsetMs, writeOffset } from '../model/window/zone.ts'
import { paint, type Colour } from './colour.ts'

/** @param colourOf the colour of a cell, if it is to have one; a terminal alone shows it */
export function table(header: readonly string[], rows: readonly (readonly string[])[], width = process.stdout.columns || Infinity, colourOf: (cell: string, column: number) => Colour | null = () => null): string {
  const widths = header.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)))
  const plain = (cells: readonly string[]) => cut(cells.map((cell, column) => (column === cells.length - 1 ? cell : cell.padEnd(widths[column]!))).join('  '), width)
  const begins = widths.map((_, column) => widths.slice(0, column).reduce((sum, one) => sum + one + 2, 0))
  // From the right, so that what stands before a cell is still where it was.
  const painted = (cells: readonly string[]) => cells.reduceRight((line, cell, column) => {
    const [begin, end] = [begins[column]!, begins[column]! + cell.length]
    return end <= line.length && end <= width - 1 ? line.slice(0, begin) + paint(cell, colourOf(cell, column)) + line.slice(end) : line
  }, plain(cells))
  return [`${plain(header)}\n`, ...rows.map((cells) => `${painted(cells)}\n`)].join('')
}

function cut(text: string, width: number): string {
  return text.length <= width ? text.trimEnd() : `${text.slice(0, Math.max(0, width - 1))}…`
}

/** `2026-09-20 10:00:01Z`, or a dash. */
export function shortInstant(date: Date | null): string {
  return date ? `${date.toISOString().slice(0, 19).replace('T', ' ')}Z` : '-'
}

/**
 * On the clock of a run's own zone with UTC beside it: `2026-09-20 18:00:01+08:00 (10:00:01Z)`, with the date in UTC where
 * it is another one. UTC alone for a run without a window, or one in UTC.
 */
export function zonedInstant(date: Date | null, zone: string | null): string {
  if (date === null || zone === null || zone === 'UTC') return shortInstant(date)
  const offset = offsetMs(zone, date.getTime())
  const there = new Date(date.getTime() + offset).toISOString().slice(0, 19).replace('T', ' ')
  const utc = shortInstant(date)
  return `${there}${writeOffset(offset)} (${utc.slice(0, 10) === there.slice(0, 10) ? utc.slice(11) : utc})`
}

/** `1h02m`, `3m05s`, `12s`, or a dash while there is no end. */
export function span(from: Date | null, to: Date | null): string {
  if (!from || !to) return '-'
  const seconds = Math.max(0, Math.round((to.getTime() - from.getTime()) / 1000))
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60]
  const two = (n: number) => String(n).padStart(2, '0')
  if (hours > 0) return `${hours}h${two(minutes)}m`
  return minutes > 0 ? `${minutes}m${two(seconds % 60)}s` : `${seconds}s`
}
