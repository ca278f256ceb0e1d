/** The ledger's measures as families of metrics. */
import type { EndingTotal, Measures, TaskNow } from '../../index.ts'
import type { Family, Sample } from './exposition.ts'

export function familiesOf({ runs, attempts, now }: Measures): Family[] {
  const completed = runs.filter(({ outcome }) => outcome === 'completed')
  const durations = completed.flatMap(({ task, endings, seconds }): Sample[] => [{ suffix: '_sum', labels: { task }, value: seconds }, { suffix: '_count', labels: { task }, value: endings }])
  const [conflicts, others] = [attempts.filter(isConflict), attempts.filter((ending) => !isConflict(ending))]
  return [
    { name: 'runledger_runs', type: 'gauge', help: 'Runs that are not over.', samples: now.flatMap(openRuns) },
    { name: 'runledger_run_endings_total', type: 'counter', help: 'Runs that completed, or failed with the reason.', samples: runs.map(({ task, outcome, reason, endings }) => ({ labels: { task, status: outcome, reason }, value: endings })) },
    { name: 'runledger_run_duration_seconds', type: 'summary', help: 'How long completed runs took, of the attempt that completed them.', samples: durations },
    { name: 'runledger_attempts_total', type: 'counter', help: 'Attempts that ended without completing their run.', samples: others.map(({ task, outcome, reason, endings }) => ({ labels: { task, outcome, reason }, value: endings })) },
    { name: 'runledger_conflicts_total', type: 'counter', help: 'Launches that lost for an expected reason.', samples: conflicts.map(({ task, reason, endings }) => ({ labels: { task, reason }, value: endings })) },
    instants('runledger_last_success_timestamp_seconds', 'When a run last completed.', now, ({ lastSuccessAt }) => lastSuccessAt),
    instants('runledger_last_failure_timestamp_seconds', 'When a run last failed for good.', now, ({ lastFailureAt }) => lastFailureAt),
    instants('runledger_next_due_timestamp_seconds', 'When the next window begins, by the schedule that is known.', now, ({ nextDueAt }) => nextDueAt),
    instants('runledger_oldest_pending_timestamp_seconds', 'Since when the run that has waited longest has been due.', now, ({ oldestPendingAt }) => oldestPendingAt),
    { name: 'runledger_expired_leases', type: 'gauge', help: 'Attempts whose owner stopped renewing the lease, not closed yet.', samples: now.map(({ task, expiredLeases }) => ({ labels: { task }, value: expiredLeases })) },
    { name: 'runledger_effects_in_doubt', type: 'gauge', help: 'Effects of which nobody knows whether they happened.', samples: now.map(({ task, effectsInDoubt }) => ({ labels: { task }, value: effectsInDoubt })) },
  ]
}

function isConflict({ outcome }: EndingTotal): boolean {
  return outcome === 'conflict'
}

function openRuns({ task, pending, processing }: TaskNow): Sample[] {
  return [{ labels: { task, status: 'pending' }, value: pending }, { labels: { task, status: 'processing' }, value: processing }]
}

function instants(name: string, help: string, now: readonly TaskNow[], of: (task: TaskNow) => Date | null): Family {
  const samples = now.flatMap((task) => {
    const at = of(task)
    return at ? [{ labels: { task: task.task }, value: at.getTime() / 1000 }] : []
  })
  return { name, type: 'gauge', help, samples }
}
