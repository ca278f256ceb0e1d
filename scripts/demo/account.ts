/** The history of the demo as a person would read it: per task and window who ran it and who lost it to whom. */
import type { Client } from 'pg'

interface Line {
  task_name: string
  label: string
  attempt: number | null
  outcome: string
  reason: string | null
  host: string
  pid: string
  launcher: string
  started: string | null
  took: string | null
  held_by: string | null
}

export async function printAccount(ledger: Client): Promise<void> {
  const { rows } = await ledger.query<Line>(`
    select task_name, to_char(window_start at time zone 'UTC', 'HH24:MI') as label, attempt, outcome, reason, host, pid, launcher,
      to_char(started_at at time zone 'UTC', 'HH24:MI:SS') as started, round(extract(epoch from ended_at - started_at)::numeric, 1)::text as took,
      held_by_host || case when held_by_key <> task_key then ' (' || held_by_key || ')' else '' end as held_by
    from task_run_history order by task_name, window_start, case when outcome = 'conflict' then 1 else 0 end, coalesce(started_at, ended_at)`)
  let window = ''
  for (const row of rows) {
    const heading = `${row.task_name} ${row.label}`
    if (heading !== window) console.log(`\n${heading}`)
    window = heading
    console.log(`  ${row.outcome === 'conflict' ? lost(row) : ran(row)}`)
  }
  console.log()
}

function ran({ attempt, outcome, reason, host, pid, launcher, started, took }: Line): string {
  return `attempt ${attempt} ${outcome}${reason ? ` (${reason})` : ''}: ${host} pid ${pid} (${launcher}), from ${started}, ${took} s`
}

function lost({ reason, host, launcher, held_by }: Line): string {
  return `conflict ${reason}: ${host} (${launcher}) lost to ${held_by}`
}
