/** The runs of one task as a small machine: what each command does to them, by the table of legal moves and nothing else. */
import { MOVES, type Move, type Status } from '../../src/model/states.ts'

export const INSTANCES = [0, 1] as const
export const KEYS = ['a', 'b'] as const
export const MAX_ATTEMPTS = 2

export type Who = (typeof INSTANCES)[number]
export type Key = (typeof KEYS)[number]

export type Command =
  | { readonly do: 'claim' | 'heartbeat' | 'complete' | 'fail' | 'give back'; readonly who: Who; readonly key: Key }
  /** `redo` may have a completed run done again, too. */
  | { readonly do: 'expire' | 'cancel' | 'retry' | 'redo' | 'free'; readonly key: Key }
  | { readonly do: 'reap' }

export interface ModelRun {
  readonly status: Status
  readonly attempt: number
  readonly maxAttempts: number
  readonly fence: number
  /** Who holds it, or held it last. */
  readonly who: Who | null
  readonly leaseOver: boolean
  readonly cancelAsked: boolean
  /** How its attempts ended that did not complete it, the oldest first. Launches that lost change no run. */
  readonly lines: readonly string[]
}

/** What an instance was given when it claimed a key last. */
export interface Belief {
  readonly attempt: number
  readonly fence: number
}

export interface Model {
  readonly runs: Readonly<Partial<Record<Key, ModelRun>>>
  readonly beliefs: Readonly<Record<string, Belief>>
  readonly fence: number
}

export const NOTHING: Model = { runs: {}, beliefs: {}, fence: 0 }

export const COMMANDS: readonly Command[] = [
  ...KEYS.flatMap((key): Command[] => [
    ...INSTANCES.flatMap((who) => (['claim', 'heartbeat', 'complete', 'fail', 'give back'] as const).map((verb) => ({ do: verb, who, key }))),
    ...(['expire', 'cancel', 'retry', 'redo', 'free'] as const).map((verb) => ({ do: verb, key })),
  ]),
  { do: 'reap' },
]

/** @returns the state after it, and in one word what whoever asked is told */
export function apply(model: Model, command: Command): { readonly model: Model; readonly told: string } {
  switch (command.do) {
    case 'claim':
      return claim(model, command.who, command.key)
    case 'heartbeat':
    case 'complete':
    case 'fail':
    case 'give back':
      return asHolder(model, command.do, command.who, command.key)
    case 'expire':
      return { model: changed(model, command.key, (run) => (run.status === 'processing' ? { ...run, leaseOver: true } : run)), told: 'time' }
    case 'reap':
      return { model: KEYS.reduce((now, key) => (now.runs[key]?.leaseOver ? closeDead(now, key) : now), model), told: KEYS.filter((key) => model.runs[key]?.leaseOver).join(' ') }
    default:
      return operate(model, command.do, command.key)
  }
}

/** A launch that loses is told why. */
function claim(model: Model, who: Who, key: Key): { model: Model; told: string } {
  const run = model.runs[key]
  if (run?.status === 'completed') return { model, told: 'done' }
  if (run?.status === 'failed') return { model, told: 'failed' }
  if (run?.status === 'processing') {
    if (!run.leaseOver) return { model, told: 'held' }
    const closed = closeDead(model, key)
    return closed.runs[key]!.status === 'failed' ? { model: closed, told: 'failed' } : taken(closed, who, key)
  }
  const other = KEYS.find((one) => one !== key && model.runs[one]?.status === 'processing')
  if (other === undefined) return taken(model, who, key)
  return model.runs[other]!.leaseOver ? taken(closeDead(model, other), who, key) : { model, told: 'overlap' }
}

function taken(model: Model, who: Who, key: Key): { model: Model; told: string } {
  const fence = model.fence + 1
  const before = model.runs[key] ?? { status: 'pending', attempt: 0, maxAttempts: MAX_ATTEMPTS, lines: [], cancelAsked: false } as const
  const run = move({ ...before, fence, who, leaseOver: false }, 'take')
  const held = { ...run, attempt: run.attempt + 1 }
  return { model: { runs: { ...model.runs, [key]: held }, beliefs: { ...model.beliefs, [`${who} ${key}`]: { attempt: held.attempt, fence } }, fence }, told: `claimed ${held.attempt} ${fence}` }
}

function asHolder(model: Model, verb: 'heartbeat' | 'complete' | 'fail' | 'give back', who: Who, key: Key): { model: Model; told: string } {
  const belief = model.beliefs[`${who} ${key}`]
  const run = model.runs[key]
  if (!belief) return { model, told: 'nothing to do it with' }
  if (!run || !isHeldBy(run, who, belief)) return { model, told: 'LEASE_LOST' }
  const become = (after: ModelRun, told: string) => ({ model: changed(model, key, () => after), told })
  if (verb === 'heartbeat') return become({ ...run, leaseOver: false }, run.cancelAsked ? 'RUN_CANCELLED' : 'done')
  if (verb === 'complete') return become(move(run, 'complete'), 'done')
  if (run.cancelAsked) return become(move(run, 'stop'), verb === 'fail' ? 'cancelled' : 'done')
  if (verb === 'give back') return become({ ...move(run, 'release'), attempt: run.attempt - 1 }, 'done')
  return run.attempt < run.maxAttempts ? become(move(run, 'retry'), 'again') : become(move(run, 'fail'), 'over')
}

export function isHeldBy(run: ModelRun, who: Who, { attempt, fence }: Belief): boolean {
  return run.status === 'processing' && run.who === who && run.attempt === attempt && run.fence === fence
}

function operate(model: Model, verb: 'cancel' | 'retry' | 'redo' | 'free', key: Key): { model: Model; told: string } {
  const run = model.runs[key]
  if (!run) return { model, told: 'RUN_NOT_FOUND' }
  const become = (after: ModelRun, told: string) => ({ model: changed(model, key, () => after), told })
  if (verb === 'cancel' && run.status === 'pending') return become(move(run, 'cancel'), 'cancelled')
  if (verb === 'cancel' && run.status === 'processing') {
    const asked = { ...run, cancelAsked: true }
    return run.leaseOver ? { model: closeDead(changed(model, key, () => asked), key), told: 'cancelled' } : become(asked, 'requested')
  }
  if (verb === 'free' && run.status === 'processing') return { model: closeDead(model, key), told: 'released' }
  if ((verb === 'retry' || verb === 'redo') && run.status === 'failed') return become({ ...move(run, 'reopen'), maxAttempts: run.attempt + 1 }, 'reopened')
  if (verb === 'redo' && run.status === 'completed') return become({ ...move(run, 'redo'), maxAttempts: run.attempt + 1 }, 'reopened')
  return { model, told: 'refused' }
}

function closeDead(model: Model, key: Key): Model {
  return changed(model, key, (run) => move(run, run.cancelAsked || run.attempt >= run.maxAttempts ? 'exhaust' : 'lose'))
}

/** Only from where the table allows it. */
function move(run: ModelRun, name: Move): ModelRun {
  const { from, to, history } = MOVES[name]
  if (run.status !== from) throw new Error(`${name} from ${run.status}`)
  return { ...run, status: to, leaseOver: false, cancelAsked: to === 'pending' ? false : run.cancelAsked, lines: history === null ? run.lines : [...run.lines, history] }
}

function changed(model: Model, key: Key, change: (run: ModelRun) => ModelRun): Model {
  const run = model.runs[key]
  return run ? { ...model, runs: { ...model.runs, [key]: change(run) } } : model
}

/** What must be true in every state. @returns what is not */
export function violated({ runs, fence }: Model): string[] {
  const all = Object.values(runs)
  const processing = all.filter(({ status }) => status === 'processing')
  return [
    ...(processing.length > 1 ? ['two runs of one concurrency key are processing'] : []),
    ...all.filter((run) => run.attempt > run.maxAttempts || run.attempt < 0).map(() => 'more attempts than allowed'),
    ...all.filter((run) => run.fence > fence).map(() => 'a fence above its counter'),
    ...processing.filter((run) => run.who === null || run.attempt < 1).map(() => 'processing without a holder'),
    ...all.filter((run) => countedLines(run) !== run.attempt).map((run) => `${run.attempt} attempts, and a history of ${countedLines(run)}`),
    ...all.filter((run) => run.leaseOver && run.status !== 'processing').map(() => 'a lease of nobody'),
  ]
}

function countedLines({ lines, status }: ModelRun): number {
  return lines.filter((line) => ['failed', 'lost', 'cancelled', 'reopened'].includes(line)).length + (status === 'processing' || status === 'completed' ? 1 : 0)
}
