/** The table of commands. */
import type { Command } from './command.ts'

/** In the order of `--help`; each is loaded only when it is asked for. */
export const COMMANDS: Readonly<Record<string, { summary: string; load(): Promise<Command> }>> = {
  exec: { summary: 'run a command as the one run of its window', load: async () => (await import('./exec.ts')).execCommand },
  claim: { summary: 'claim a run for a script in any language', load: async () => (await import('./claim.ts')).claimCommand },
  heartbeat: { summary: 'renew the lease of a claim', load: async () => (await import('./claim/closing.ts')).heartbeatCommand },
  complete: { summary: 'record that a claimed run is done', load: async () => (await import('./claim/closing.ts')).completeCommand },
  fail: { summary: 'record that a claimed run failed', load: async () => (await import('./claim/closing.ts')).failCommand },
  release: { summary: 'give a claimed run back, or free one of a dead holder', load: async () => (await import('./claim/closing.ts')).releaseCommand },
  hold: { summary: 'keep the lease of a claim while a process lives', load: async () => (await import('./hold.ts')).holdCommand },
  effect: { summary: 'run a command as an effect that is done at most once', load: async () => (await import('./effect.ts')).effectCommand },
  effects: { summary: 'list effects, and those in doubt', load: async () => (await import('./effects.ts')).effectsCommand },
  fence: { summary: "check a writer's fence, or jump all after a restore", load: async () => (await import('./fence.ts')).fenceCommand },
  reap: { summary: 'close attempts whose owner is gone', load: async () => (await import('./reap.ts')).reapCommand },
  runs: { summary: 'list runs', load: async () => (await import('./runs.ts')).runsCommand },
  show: { summary: 'show one run with all its attempts and conflicts', load: async () => (await import('./show.ts')).showCommand },
  why: { summary: 'say why a run or a task is where it is, and what can be done', load: async () => (await import('./why.ts')).whyCommand },
  cancel: { summary: 'cancel a run, pending or processing', load: async () => (await import('./operate.ts')).cancelCommand },
  retry: { summary: 'have a run that is over done again', load: async () => (await import('./operate.ts')).retryCommand },
  pause: { summary: 'let no run of a task begin, on any host', load: async () => (await import('./operate.ts')).pauseCommand },
  resume: { summary: 'let a paused task run again', load: async () => (await import('./operate.ts')).resumeCommand },
  windows: { summary: 'show and explain the windows of a schedule', load: async () => (await import('./windows.ts')).windowsCommand },
  selftest: { summary: 'check the promises on your own database, under crashes', load: async () => (await import('./selftest.ts')).selftestCommand },
  migrate: { summary: 'bring the schema of a database server up to date', load: async () => (await import('./migrate.ts')).migrateCommand },
}
