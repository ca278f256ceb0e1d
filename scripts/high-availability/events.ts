/** What the processes of a demonstration did and saw, each in a file of its own, on the one monotonic clock of this machine. */
import { appendFileSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Claim } from '../../src/index.ts'

export interface Event {
  /** Milliseconds; comparable between processes. */
  readonly at: number
  /** `performed`: the service answered. `ended`: the work, before its completion is sent. `acknowledged`: the ledger said that it is completed. */
  readonly what: 'started' | 'performed' | 'ended' | 'acknowledged' | 'refused'
  readonly task?: string
  readonly key?: string
  readonly attempt?: number
  readonly fence?: string
  /** Of a refusal. */
  readonly code?: string
}

export type Recorder = (what: Event['what'], about?: Claim | { readonly code: string }) => void

export function recordTo(file: string): Recorder {
  return (what, about) => {
    const facts = about === undefined || 'code' in about ? about : { task: about.task, key: about.taskKey, attempt: about.attempt, fence: String(about.fence) }
    appendFileSync(file, `${JSON.stringify({ at: nowMs(), what, ...facts })}\n`)
  }
}

export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

/** Of all files in the folder, in the order of time. */
export function readEvents(folder: string): Event[] {
  const lines = readdirSync(folder).filter((name) => name.endsWith('.events')).flatMap((name) => readFileSync(join(folder, name), 'utf8').trimEnd().split('\n').filter((line) => line !== ''))
  return lines.map((line) => JSON.parse(line) as Event).toSorted((a, b) => a.at - b.at)
}
