/** Texts of an ended attempt, bounded in bytes and cleaned: recording a failure must itself never fail. */
import { inspect } from 'node:util'
import { asciiText, bmpText, boundText } from '../model/text.ts'
import type { Ending } from '../model/run.ts'
import type { Store } from '../store/tables.ts'

export const ERROR_BYTES = 8 * 1024
export const OUTPUT_TAIL_BYTES = 16 * 1024

export function boundedEnding({ exitCode = null, error = null, outputTail = null }: Ending): Ending {
  return {
    exitCode,
    error: error === null ? null : boundText(error, ERROR_BYTES, 'head'),
    outputTail: outputTail === null ? null : boundText(outputTail, OUTPUT_TAIL_BYTES, 'tail'),
  }
}

/** The ending, then ever plainer ones for a column that refuses it: within utf8mb3, within ASCII, without text. */
export function plainerEndings(ending: Ending): readonly [Ending, ...Ending[]] {
  const { exitCode = null, error, outputTail } = ending
  const inForm = (form: (text: string) => string): Ending => ({ exitCode, error: error == null ? null : form(error), outputTail: outputTail == null ? null : form(outputTail) })
  return [ending, inForm(bmpText), inForm(asciiText), { exitCode }]
}

/** Writes the first of the forms that the database does not refuse. */
export async function writeAcceptable<T>(store: Pick<Store, 'diagnose'>, forms: readonly Ending[], write: (form: Ending) => Promise<T>): Promise<T> {
  for (const form of forms.slice(0, -1)) {
    try {
      return await write(form)
    } catch (error) {
      if (store.diagnose(error).kind !== 'other') throw error
    }
  }
  return write(forms.at(-1)!)
}

/** What was thrown, in one line that every database takes. */
export function boundedError(error: unknown): string {
  return asciiText(boundText(errorText(error).split('\n')[0]!, 1024, 'head'))
}

/** What was thrown, as text: the stack of an Error (its first lines say where), anything else as JavaScript prints it. Never throws. */
export function errorText(error: unknown): string {
  try {
    if (typeof error === 'string') return error
    return error instanceof Error ? textOf(error) : inspect(error)
  } catch {
    return 'an error that cannot be shown: reading it throws' // A getter of its own, a revoked proxy: anything can be thrown.
  }
}

function textOf(error: Error): string {
  const stack = typeof error.stack === 'string' ? error.stack : `${error.name}: ${error.message}`
  return error.cause === undefined ? stack : `${stack}\ncaused by: ${error.cause instanceof Error ? error.cause.message : inspect(error.cause)}`
}
