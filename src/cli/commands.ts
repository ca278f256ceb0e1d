/** The table of commands. */
import type { Command } from './command.ts'

/** In the order of `--help`; each is loaded only when it is asked for. */
export const COMMANDS: Readonly<Record<string, { summary: string; load(): Promise<Command> }>> = {
  exec: { summary: 'run a command as the one run of its window', load: async () => (await import('./exec.ts')).execCommand },
  claim: { summary: 'claim a run for a script in any language', load: async () => (await import('./claim.ts')).claimCommand },
  heartbeat: { summary: 'renew the lease of a claim', load: async () => (await import('./claim/closing.ts')).heartbeatCommand },
  complete: { summary: 'record that a claimed run is done', load: async () => (await import('./claim/closing.ts')).completeCommand },
  fail: { summary: 'record that a claimed run failed', load: async () => (await import('./claim/closing.ts')).failCommand },
  release: { summary: 'give a claimed run back', load: async () => (await import('./claim/closing.ts')).releaseCommand },
  hold: { summary: 'keep the lease of a claim while a process lives', load: async () => (await import('./hold.ts')).holdCommand },
  effect: { summary: 'run a command as an effect that is done at most once', load: async () => (await import('./effect.ts')).effectCommand },
  effects: { summary: 'list effects, and those in doubt', load: async () => (await import('./effects.ts')).effectsCommand },
  fence: { summary: "check a writer's fence, or jump all after a restore", load: async () => (await import('./fence.ts')).fenceCommand },
  reap: { summary: 'close attempts whose owner is gone', load: async () => (await import('./reap.ts')).reapCommand },
  runs: { summary: 'list runs', load: async () => (await import('./runs.ts')).runsCommand },
  show: { summary: 'show one run with all its attempts and conflicts', load: async () => (await import('./show.ts')).showCommand },
  windows: { summary: 'show and explain the windows of a schedule', load: async () => (await import('./windows.ts')).windowsCommand },
  prune: { summary: 'take old finished runs away', load: async () => (await import('./prune.ts')).pruneCommand },
  verify: { summary: "hold the ledger's rows against its promises", load: async () => (await import('./verify.ts')).verifyCommand },
  doctor: { summary: 'look at everything around the ledger', load: async () => (await import('./doctor.ts')).doctorCommand },
  grants: { summary: 'print the SQL that gives a user a role', load: async () => (await import('./grants.ts')).grantsCommand },
  completion: { summary: 'print shell completion for bash or zsh', load: async () => (await import('./completion.ts')).completionOf(COMMANDS) },
  migrate: { summary: 'bring the schema of a database server up to date', load: async () => (await import('./migrate.ts')).migrateCommand },
}
