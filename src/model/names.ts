/** Which task names and keys are accepted: the same on every database, decided before any SQL. */
import { invalidOption } from './errors.ts'

export const MAX_TASK_LENGTH = 100
export const MAX_KEY_LENGTH = 200

const TASK_PATTERN = /^[A-Za-z0-9_./-]+$/
// C0, DEL and C1 controls, and the separators that a terminal or a log would break a line at.
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/
const OUTER_SPACE = /^\s|\s$/

/** A task's name: letters, digits, `_ . / -`, at most 100. @throws INVALID_OPTION */
export function checkTaskName(name: string): string {
  if (name === '') throw invalidOption('task', 'must not be empty')
  if (name.length > MAX_TASK_LENGTH) throw invalidOption('task', `is ${name.length} characters long; at most ${MAX_TASK_LENGTH} are accepted`)
  if (!TASK_PATTERN.test(name)) throw invalidOption('task', `${JSON.stringify(name)} may only have letters, digits and _ . / -`)
  return name
}

/**
 * A key: at most 200 characters (code points, as databases count them), no control characters, no surrounding
 * spaces, well-formed Unicode. Compared byte for byte afterwards: `cafe` and `café` are two keys.
 * @throws INVALID_OPTION
 */
export function checkKey(option: string, key: string): string {
  if (key === '') throw invalidOption(option, 'must not be empty')
  if (key.length > MAX_KEY_LENGTH && codePoints(key) > MAX_KEY_LENGTH) throw invalidOption(option, `is ${codePoints(key)} characters long; at most ${MAX_KEY_LENGTH} are accepted`)
  if (!key.isWellFormed()) throw invalidOption(option, 'is not well-formed Unicode (a lone surrogate)')
  if (CONTROL.test(key)) throw invalidOption(option, 'must not have control characters or line breaks')
  if (OUTER_SPACE.test(key)) throw invalidOption(option, 'must not begin or end with a space')
  return key
}

/** A queue's name: as a task's. @throws INVALID_OPTION */
export function checkQueueName(name: string): string {
  if (name.length > MAX_TASK_LENGTH) throw invalidOption('queue', `is ${name.length} characters long; at most ${MAX_TASK_LENGTH} are accepted`)
  if (!TASK_PATTERN.test(name)) throw invalidOption('queue', `${JSON.stringify(name)} may only have letters, digits and _ . / -`)
  return name
}

/** A concurrency key: as any key, and without a `#`, which numbers the slots of one. @throws INVALID_OPTION */
export function checkConcurrencyKey(key: string): string {
  if (key.includes('#')) throw invalidOption('concurrency-key', 'must not have a #: it numbers the slots of a key')
  return checkKey('concurrency-key', key)
}

/** `daily_news` and `2026-09-20-18:00` make `daily_news:2026-09-20-18:00`, the primary key of the run. */
export function taskKey(task: string, label: string): string {
  return checkKey('key', `${checkTaskName(task)}:${checkKey('key', label)}`)
}

function codePoints(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}
