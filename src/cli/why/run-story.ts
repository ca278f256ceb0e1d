/** Why one run is where it is. */
import type { HeldRun, Run, RunReasons } from '../../index.ts'
import { shortInstant, span } from '../table.ts'
import { aboutPause, advice, evidenceOf, refusals, whoHas } from './sentences.ts'

type Advice = readonly (readonly [string, string])[]

export function tellRun(reasons: RunReasons): string[] {
  const { run, conflicts } = reasons
  const { says, actions } = STORIES[run.status](reasons)
  return [...says, ...refusals(conflicts), ...advice([...actions, [`runledger show ${run.taskKey}`, 'every attempt, with the end of its output']])]
}

interface Story {
  readonly says: readonly string[]
  readonly actions: Advice
}

const STORIES: Readonly<Record<Run['status'], (reasons: RunReasons) => Story>> = { pending, processing, completed, failed }

function processing({ run, evidence, now }: RunReasons): Story {
  const held: HeldRun = { run, evidence: evidence! }
  const asked = run.cancelRequestedAt === null ? [] : [`It was asked to stop at ${shortInstant(run.cancelRequestedAt)}; its holder sees that at its next heartbeat.`]
  const says = [`${run.taskKey} is processing: attempt ${run.attempt} of at most ${run.maxAttempts}, since ${shortInstant(run.startedAt)} (${span(run.startedAt, now)}), by ${whoHas(run)}.`, evidenceOf(held, now), ...asked]
  if (evidence!.verdict === 'dead') return { says: [...says, afterDeath(run)], actions: [['runledger reap', 'close its attempt now'], ...cancelling(run)] }
  const force: Advice = evidence!.process === 'here' ? [] : [[`runledger release ${run.taskKey} --force`, `if you know that ${run.host} is dead`]]
  return { says, actions: [...cancelling(run), ...force] }
}

function afterDeath(run: Run): string {
  if (run.attempt >= run.maxAttempts) return 'No attempt is left: the next launch or reaper that meets it records it as failed (lost).'
  return `${run.maxAttempts - run.attempt} more may be made: the next launch of ${run.task} on any host takes it over, without anybody's help.`
}

function cancelling(run: Run): Advice {
  return [[`runledger cancel ${run.taskKey}`, 'stop it for good']]
}

function pending(reasons: RunReasons): Story {
  const { run, now, lastAttempt } = reasons
  const ended = lastAttempt === null ? '' : `, and the last ended as ${lastAttempt.outcome} at ${shortInstant(lastAttempt.endedAt)}${lastAttempt.error === null ? '' : `: ${lastAttempt.error.split('\n')[0]}`}`
  const tried = run.attempt === 0 ? 'no attempt was made yet' : `${run.attempt} of at most ${run.maxAttempts} attempts ${run.attempt === 1 ? 'was' : 'were'} made${ended}`
  const cancel = cancelling(run)
  return { says: [`${run.taskKey} is pending since ${shortInstant(run.createdAt)} (${span(run.createdAt, now)}); ${tried}.`, ...whyNot(reasons)], actions: reasons.paused ? [[`runledger resume ${run.task}`, 'let the task run again'], ...cancel] : cancel }
}

/** The first that stands in its way. */
function whyNot({ run, now, paused, inTheWay }: RunReasons): string[] {
  if (paused) return [aboutPause(paused)]
  if (!run.due) return [`It is not due: it may begin at ${shortInstant(run.availableAt)}, ${span(now, run.availableAt)} from now.`]
  if (inTheWay) return [`It is due, and waits for ${inTheWay.run.taskKey}, which holds the concurrency key ${run.concurrencyKey} since ${shortInstant(inTheWay.run.startedAt)} (${whoHas(inTheWay.run)}).`, evidenceOf(inTheWay, now)]
  return [`It is due, and nothing is in its way: the next launch of ${run.task} on any host, or a worker, runs it.`]
}

function completed({ run }: RunReasons): Story {
  return {
    says: [`${run.taskKey} is done: attempt ${run.attempt} completed it at ${shortInstant(run.finishedAt)} after ${span(run.startedAt, run.finishedAt)}, by ${whoHas(run)}.`, 'It never runs again by itself; launches of its key are refused (reason done).'],
    actions: [[`runledger retry ${run.taskKey} --force`, 'have it done again']],
  }
}

function failed({ run }: RunReasons): Story {
  const why = [run.failureReason, run.exitCode === null ? null : `exit ${run.exitCode}`].filter(Boolean).join(', ')
  const by = run.host === null ? '' : `, by ${whoHas(run)}`
  return {
    says: [
      `${run.taskKey} failed (${why}) at ${shortInstant(run.finishedAt)}, in attempt ${run.attempt} of at most ${run.maxAttempts}${by}.`,
      ...(run.error === null ? [] : [`It said: ${run.error.split('\n')[0]}`]),
      'It does not run again by itself; launches of its key are refused (reason failed).',
    ],
    actions: [[`runledger retry ${run.taskKey}`, 'one attempt more']],
  }
}
