/** The thread behind ThreadedPacemaker: an inline pacemaker that is spoken to by messages. */
import { parentPort, workerData } from 'node:worker_threads'
import type { GroupEvents } from './group-heart.ts'
import { heldOf, namesOf } from './held-text.ts'
import { monotonicMs } from './heart.ts'
import { openHeartStore } from './open-store.ts'
import { InlinePacemaker, type Pulse, type PulseGroup } from './pacemaker.ts'
import type { FromThread, ToThread } from './threaded-pacemaker.ts'

const port = parentPort!
const { url } = workerData as { url: string }
const pacemaker = new InlinePacemaker(() => openHeartStore(url))
const pulses = new Map<number, Pulse>()
const groups = new Map<number, PulseGroup>()
const say = (message: FromThread) => port.postMessage(message)

port.on('message', (message: ToThread) => {
  switch (message.say) {
    case 'start':
      pulses.set(message.id, start(message))
      return say({ say: 'watching', id: message.id })
    case 'group':
      return void groups.set(message.id, group(message))
    case 'hold':
      return groups.get(message.id)?.hold(heldOf(message.runs))
    case 'let_go':
      return groups.get(message.id)?.letGo(namesOf(message.names))
    case 'stop':
      pulses.get(message.id)?.stop()
      groups.get(message.id)?.stop()
      groups.delete(message.id)
      return void pulses.delete(message.id)
    case 'close':
      for (const pulse of [...pulses.values(), ...groups.values()]) pulse.stop()
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

function group({ id, terms, hungAfterMs, alive }: Extract<ToThread, { say: 'group' }>): PulseGroup {
  const events: GroupEvents = {
    renewed: (names) => say({ say: 'renewed', id, names }),
    cancelled: (names) => say({ say: 'cancelled', id, names }),
    missed: (error) => say({ say: 'missed', id, error: error instanceof Error ? error.message : String(error) }),
    lost: (names, reason) => say({ say: 'lost', id, reason, names: names ?? [] }),
  }
  return pacemaker.group(terms, events, hungAfterMs, () => monotonicMs() - Number(Atomics.load(alive, 0)) > hungAfterMs)
}
