/** Wrong words on a command line, and programs that are started without what they need: one line, and exit 64. */

export function refuse(problem: string): never {
  console.error(problem)
  process.exit(64)
}

/** What must stand in the environment of a program that another one starts. */
export function given(variable: string, by: string): string {
  return process.env[variable] ?? refuse(`${variable} is not set: this program is started by ${by}`)
}

/** For programs that take no words. */
export function refuseWords(program: string): void {
  const [word] = process.argv.slice(2)
  if (word !== undefined) refuse(`${program} takes no words, got ${JSON.stringify(word)}`)
}
