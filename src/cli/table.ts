/** Columns for people: as wide as their content, the last one cut to the terminal. */

export function table(header: readonly string[], rows: readonly (readonly string[])[], width = process.stdout.columns ?? Infinity): string {
  const widths = header.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)))
  const line = (cells: readonly string[]) => cut(cells.map((cell, column) => (column === cells.length - 1 ? cell : cell.padEnd(widths[column]!))).join('  '), width)
  return [header, ...rows].map((cells) => `${line(cells)}\n`).join('')
}

function cut(text: string, width: number): string {
  return text.length <= width ? text.trimEnd() : `${text.slice(0, Math.max(0, width - 1))}…`
}

/** `2026-09-20 10:00:01Z`, or a dash. */
export function shortInstant(date: Date | null): string {
  return date ? `${date.toISOString().slice(0, 19).replace('T', ' ')}Z` : '-'
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
