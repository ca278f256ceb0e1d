/** Three weeks of six tasks, as they went: what was launched when, and everything that went wrong. */
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { cron, every, windowsBetween, type Schedule } from '../../src/index.ts'
import { BINARY, type FakeHost } from './fake-host.ts'

export const BEGIN = new Date('2026-10-19T00:00:00Z')
/** Monday morning: somebody has been called. Berlin changed its clocks on 25 October, New York on 1 November. */
export const NOW = new Date('2026-11-09T06:00:00Z')

const TASKS: Readonly<Record<string, Schedule>> = {
  daily_news: cron('0 18 * * *', 'Asia/Shanghai'),
  backup: cron('30 2 * * *', 'Europe/Berlin'),
  report: cron('30 1 * * *', 'America/New_York'),
  import: cron('0 */4 * * *', 'America/New_York'),
  sync: every('6h'),
  invoices: cron('0 6 * * 1-5', 'Europe/Berlin'),
}

const MINUTE_MS = 60_000

interface Incident {
  /** Nobody launches it. */
  readonly silent?: true
  /** The exit code of the job. */
  readonly exit?: number
  readonly minutesLate?: number
  /** The launcher dies with SIGKILL, and nobody launches the task again before its next window. */
  readonly killed?: true
  /** It is at it until the next window has come and gone. */
  readonly overruns?: true
  /** A second launcher that was forgotten launches it as well. */
  readonly twice?: true
  /** Somebody tries another schedule at a prompt. */
  readonly bySchedule?: Schedule
  /** The job calls somebody and hears no answer. */
  readonly unanswered?: true
}

/** By task and the beginning of the window. */
const INCIDENTS: Readonly<Record<string, Incident>> = {
  'daily_news 2026-10-28T10:00': { exit: 3 },
  'daily_news 2026-11-05T10:00': { twice: true },
  'daily_news 2026-11-08T10:00': { exit: 3 },
  'backup 2026-11-02T01:30': { silent: true },
  'backup 2026-11-06T01:30': { minutesLate: 40 },
  'report 2026-11-04T06:30': { killed: true },
  'import 2026-11-03T09:00': { overruns: true },
  'import 2026-11-03T13:00': { silent: true }, // Launched while the one before was still at it.
  'import 2026-11-07T13:00': { twice: true },
  'backup 2026-11-08T01:30': { bySchedule: cron('0 3 * * *', 'Europe/Berlin') },
  'invoices 2026-11-06T05:00': { unanswered: true },
  // This morning.
  'import 2026-11-09T05:00': { silent: true },
  'invoices 2026-11-09T05:00': { silent: true },
  ...Object.fromEntries(['00:00', '06:00', '12:00', '18:00'].map((hour) => [`sync 2026-11-01T${hour}`, { silent: true as const }])),
}

/** Who paused what for how long, and why. */
const PAUSE = { task: 'invoices', from: new Date('2026-11-03T12:00:00Z'), to: new Date('2026-11-05T12:00:00Z'), because: 'the ledger of the bank is being moved' }

/** @returns the number of windows */
export async function live(host: FakeHost): Promise<number> {
  const launches = Object.entries(TASKS)
    .flatMap(([task, schedule]) => [...windowsBetween(schedule, BEGIN, NOW)].map(({ start }) => ({ task, schedule, start })))
    .toSorted((a, b) => a.start.getTime() - b.start.getTime())
  let paused = false
  for (const { task, schedule, start } of launches) {
    paused = await operate(host, start, paused)
    await launch(host, task, schedule, start, INCIDENTS[`${task} ${start.toISOString().slice(0, 16)}`] ?? {})
  }
  return launches.length
}

/** What is under way when somebody is called: one that runs, one whose launcher died this morning, one that waits. */
export async function thisMorning(host: FakeHost): Promise<{ end(): Promise<void> }> {
  const holder = host.start(new Date('2026-11-09T05:00:01Z'), [...exec('import', TASKS['import']!), '--lease', '1d', '--', 'sleep', '600'])
  const ended = once(holder, 'close')
  await started(holder)
  const dead = host.start(new Date('2026-11-09T05:00:01Z'), [...exec('invoices', TASKS['invoices']!), '--', 'sleep', '600'])
  const died = once(dead, 'close')
  await started(dead)
  dead.kill('SIGKILL')
  await died
  await host.at(new Date('2026-11-09T05:50:00Z'), ['retry', 'daily_news:2026-11-08-18:00', '--by', 'ann', '--because', 'the feed is back'], 'tty')
  return {
    async end() {
      holder.kill('SIGTERM')
      await ended
    },
  }
}

async function operate(host: FakeHost, now: Date, paused: boolean): Promise<boolean> {
  const shouldBe = now >= PAUSE.from && now < PAUSE.to
  if (shouldBe && !paused) await host.at(PAUSE.from, ['pause', PAUSE.task, '--because', PAUSE.because, '--by', 'ann'], 'tty')
  if (!shouldBe && paused) await host.at(PAUSE.to, ['resume', PAUSE.task, '--by', 'ann'], 'tty')
  return shouldBe
}

async function launch(host: FakeHost, task: string, schedule: Schedule, start: Date, incident: Incident): Promise<void> {
  if (incident.silent) return
  const at = new Date(start.getTime() + (incident.minutesLate ?? 0) * MINUTE_MS + 1000)
  if (incident.killed) return dies(host, task, schedule, at)
  if (incident.overruns) return overruns(host, task, schedule, at)
  await host.at(at, [...exec(task, schedule), '--', 'sh', '-c', incident.exit ? `echo 'the feed answered 503' >&2; exit ${incident.exit}` : 'echo done'])
  if (incident.unanswered) await host.at(at, ['exec', '--task', task, '--key', 'october', '--', process.execPath, BINARY, 'effect', '--name', 'charge:42', '--', 'false'])
  if (incident.bySchedule) await host.at(new Date(at.getTime() + 30 * MINUTE_MS), [...exec(task, incident.bySchedule), '--', 'true'], 'tty')
  if (incident.twice) await host.at(new Date(at.getTime() + MINUTE_MS), [...exec(task, schedule), '--', 'true'], 'systemd')
}

function exec(task: string, { kind, source, zone }: Schedule): string[] {
  return ['exec', '--task', task, `--${kind}`, source, '--tz', zone]
}

/** Without an attempt left: what was lost stays lost until a reaper says so. */
async function dies(host: FakeHost, task: string, schedule: Schedule, at: Date): Promise<void> {
  const holder = host.start(at, [...exec(task, schedule), '--max-attempts', '1', '--', 'sleep', '300'])
  const ended = once(holder, 'close')
  await started(holder)
  holder.kill('SIGKILL')
  await ended
  await host.at(new Date(at.getTime() + 5 * MINUTE_MS), ['reap'])
}

/** The lease is long, for the clock of the demonstration jumps where that of a heartbeat would tick. */
async function overruns(host: FakeHost, task: string, schedule: Schedule, at: Date): Promise<void> {
  const go = `${host.file}.go`
  const holder = host.start(at, [...exec(task, schedule), '--lease', '1d', '--', 'sh', '-c', `until [ -e ${go} ]; do sleep 0.05; done`])
  const ended = once(holder, 'close')
  await started(holder)
  const [next] = windowsBetween(schedule, at, NOW)
  await host.at(new Date(next!.start.getTime() + 1000), [...exec(task, schedule), '--', 'true'])
  await writeFile(go, '')
  await ended
}

async function started(holder: ReturnType<FakeHost['start']>): Promise<void> {
  for await (const chunk of holder.stderr) if (String(chunk).includes('status=started')) return
  throw new Error('the job did not start')
}
