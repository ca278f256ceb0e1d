/** The thread behind ThreadedPacemaker: an inline pacemaker that is spoken to by messages. */
import { parentPort, workerData } from 'node:worker_threads'
import { openHeartStore } from './open-store.ts'
import { InlinePacemaker, type Pulse } from './pacemaker.ts'
import type { FromThread, ToThread } from './threaded-pacemaker.ts'

const port = parentPort!
const { url } = workerData as { url: string }
const pacemaker = new InlinePacemaker(() => openHeartStore(url))
const pulses = new Map<number, Pulse>()
const say = (message: FromThread) => port.postMessage(message)

port.on('message', (message: ToThread) => {
  switch (message.say) {
    case 'start':
      pulses.set(message.id, start(message))
      return say({ say: 'watching', id: message.id })
    case 'stop':
      pulses.get(message.id)?.stop()
      return void pulses.delete(message.id)
    case 'close':
      for (const pulse of pulses.values()) pulse.stop()
      port.close()
      return void pacemaker.close()
  }
})

function start({ id, of, terms, claimedAt }: Extract<ToThread, { say: 'start' }>): Pulse {
  return pacemaker.start(of, terms, claimedAt, {
    renewed: () => say({ say: 'renewed', id }),
    cancelled: () => say({ say: 'cancelled', id }),
    missed: (error) => say({ say: 'missed', id, error: error instanceof Error ? error.message : String(error) }),
    lost: (reason) => say({ say: 'lost', id, reason }),
  })
}
