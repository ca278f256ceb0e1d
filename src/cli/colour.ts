/** Colour for people at a terminal, and for nobody else: not in a pipe, not with NO_COLOR (no-color.org), not on a dumb terminal. */

export type Colour = 'red' | 'yellow' | 'green'

const CODES: Readonly<Record<Colour, number>> = { red: 31, yellow: 33, green: 32 }

export function mayColour(isTerminal: boolean, env: NodeJS.ProcessEnv): boolean {
  return isTerminal && !env['NO_COLOR'] && env['TERM'] !== 'dumb'
}

/** The text itself where there is to be no colour. */
export function paint(text: string, colour: Colour | null, isOn = mayColour(process.stdout.isTTY, process.env)): string {
  return isOn && colour !== null ? `\u001b[${CODES[colour]}m${text}\u001b[39m` : text
}
