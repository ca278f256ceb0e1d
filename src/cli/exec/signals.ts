/** What the wrapper does with signals: hands them on to the job, and ends it when that is what they ask for. */
import { constants } from 'node:os'

/** `forward`: to the job. `stop`: end it, with this signal first. `kill`: end it at once. */
export type SignalOrder = 'forward' | 'stop' | 'kill'

/** Ask the job to end; the job may need its grace period for it, and who asks twice does not want to wait. */
const STOPPING = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'] as const
/** Mean whatever the job says. (USR1 would otherwise open Node's debugger.) SIGWINCH is not among them: no job draws on a pipe. */
const PLAIN = ['SIGUSR1', 'SIGUSR2'] as const
/** Ctrl-C under npm or an init that forwards arrives twice, from the terminal and from the parent: that is one request. */
const ECHO_MS = 200

/**
 * Calls `handler` for every signal that concerns the job, until the returned function is called; then signals do again
 * what they do to any process. SIGTSTP (Ctrl-Z) is taken and not obeyed: a job under a lease cannot be suspended from a
 * terminal, for the lease would go on without it and another host would start the same run.
 */
export function onSignals(handler: (signal: NodeJS.Signals, order: SignalOrder) => void): () => void {
  let asked: { by: NodeJS.Signals; at: number } | null = null

  function stop(signal: NodeJS.Signals): void {
    const now = performance.now()
    if (asked === null) {
      asked = { by: signal, at: now }
      return handler(signal, 'stop')
    }
    if (signal === asked.by && now - asked.at < ECHO_MS) return
    handler(signal, 'kill')
  }

  const listeners = new Map<NodeJS.Signals, (signal: NodeJS.Signals) => void>([['SIGTSTP', () => {}]])
  for (const signal of STOPPING) listeners.set(signal, stop)
  for (const signal of PLAIN) listeners.set(signal, () => handler(signal, 'forward'))
  for (const [signal, listener] of listeners) process.on(signal, listener)
  return () => {
    for (const [signal, listener] of listeners) process.off(signal, listener)
  }
}

/** The exit code a shell would report: the child's own, or 128 + n for one that died of signal n. */
export function exitCodeOf(end: { readonly exitCode: number | null; readonly signal: NodeJS.Signals | null }): number {
  return end.signal === null ? (end.exitCode ?? 0) : 128 + constants.signals[end.signal]
}
