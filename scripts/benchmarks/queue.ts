/**
 * Queue mode beside graphile-worker and pg-boss, against a bare loop of its own statements, on tables full of what may
 * not be claimed, and under a snapshot that is held. Each side in a process and a database of its own, in turn.
 */
import { parseArgs } from 'node:util'
import { bare } from './queue/beside-bare.ts'
import { crowds } from './queue/beside-crowds.ts'
import { latency, peers } from './queue/beside-peers.ts'
import { snapshot } from './queue/held-snapshot.ts'
import { plans } from './queue/plans.ts'
import { SERVERS, type Server, type Terms } from './queue/place.ts'

/** By name, with the servers it is for. */
const PARTS: Readonly<Record<string, { readonly on: readonly string[]; readonly run: (server: Server, terms: Terms) => Promise<void> }>> = {
  peers: { on: ['postgres'], run: peers },
  latency: { on: ['postgres'], run: latency },
  bare: { on: ['postgres', 'mariadb', 'mysql'], run: bare },
  completed: { on: ['postgres', 'mariadb'], run: (server, terms) => crowds(server, ['completed'], terms) },
  future: { on: ['postgres', 'mariadb'], run: (server, terms) => crowds(server, ['future'], terms) },
  blocked: { on: ['postgres', 'mariadb'], run: (server, terms) => crowds(server, ['blocked'], terms) },
  keys: { on: ['postgres', 'mariadb'], run: (server, terms) => crowds(server, ['keys'], terms) },
  together: { on: ['postgres', 'mariadb'], run: (server, terms) => crowds(server, ['completed', 'future', 'blocked', 'keys'], terms) },
  snapshot: { on: ['postgres', 'mariadb'], run: snapshot },
  plans: { on: ['postgres', 'mariadb', 'mysql'], run: plans },
}

const { values } = parseArgs({ options: { only: { type: 'string', multiple: true }, jobs: { type: 'string' }, turns: { type: 'string' }, crowd: { type: 'string' } } })
const only = values.only ?? Object.keys(PARTS)
const unknown = only.find((name) => !Object.hasOwn(PARTS, name))
if (unknown !== undefined) throw new Error(`--only ${unknown}: there are ${Object.keys(PARTS).join(', ')}`)
const terms: Terms = { jobs: positive('jobs', values.jobs ?? '100000'), turns: positive('turns', values.turns ?? '3'), crowd: positive('crowd', values.crowd ?? '1') }

console.log(`Node ${process.versions.node}; medians of ${terms.turns} turns`)
for (const name of only) {
  const { on, run } = PARTS[name]!
  for (const server of SERVERS) if (on.includes(server.name)) await run(server, terms)
}

function positive(option: string, text: string): number {
  const value = Number(text)
  if (!(value > 0)) throw new Error(`--${option} ${text}: must be a number above zero`)
  return value
}
