/** Processes of a test: they talk by messages, and none outlives its test. */
import { fork } from 'node:child_process'
import { on, once } from 'node:events'
import { join } from 'node:path'

export type Message = Record<string, unknown>

export interface TestProcess {
  send(message: Message | string): void
  /** The next message that has the name; others are passed over. Rejects on an `error`, and when the process ends without it. */
  says(name: string): Promise<Message>
  /** Exit code and signal. */
  readonly ended: Promise<[number | null, NodeJS.Signals | null]>
}

/** @param file such as `fault/fixture-job.ts`, as seen from test/ */
export function startFixture(t: { after(hook: () => void): void }, file: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): TestProcess {
  const child = fork(join(import.meta.dirname, '..', file), args, { stdio: 'inherit', env: { ...process.env, ...env } })
  t.after(() => child.kill('SIGKILL'))
  const messages = on(child, 'message', { close: ['exit'] })
  return {
    send: (message) => child.send(message),
    ended: once(child, 'exit') as TestProcess['ended'],
    async says(name) {
      for (;;) {
        const { value, done } = await messages.next()
        if (done) throw new Error(`the process ended without saying '${name}'`)
        const [message] = value as [Message]
        if (name in message) return message
        if ('error' in message) throw new Error(String(message['error']))
      }
    },
  }
}
