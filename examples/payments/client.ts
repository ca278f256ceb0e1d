/** What a job needs of the payment service: charge with a key, and ask whether a key was charged. */
import { NotPerformed, type Reconciled } from '../../src/index.ts'
import type { Charge } from './service.ts'

/** @throws NotPerformed when nobody listened or the service refused; then nothing was charged */
export async function charge(url: string, idempotencyKey: string, customer: string, cents: number, signal?: AbortSignal): Promise<Charge> {
  const body = JSON.stringify({ customer, cents })
  const response = await fetch(`${url}/charges`, { method: 'POST', headers: { 'idempotency-key': idempotencyKey }, body, ...(signal && { signal }) })
  if (response.status === 400 || response.status === 409) throw new NotPerformed(`the service refused: ${await response.text()}`)
  if (!response.ok) throw new Error(`the service answered ${response.status}`)
  return (await response.json()) as Charge
}

/** The authoritative answer on an effect in doubt. */
export async function wasCharged(url: string, idempotencyKey: string): Promise<Reconciled<Charge>> {
  const response = await fetch(`${url}/charges/${encodeURIComponent(idempotencyKey)}`)
  if (response.status === 404) return { done: false }
  return response.ok ? { done: true, result: (await response.json()) as Charge } : undefined
}
