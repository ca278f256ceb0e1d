/** Who pays how much: sums that no two windows share, so that a missing or doubled charge shows to the cent. */
export const CUSTOMERS = ['ada', 'bob', 'cid', 'dot', 'eve'] as const

export function centsOf(window: string, customer: string): number {
  const number = Number(/\d+$/.exec(window)?.[0] ?? 0)
  return 1000 + number * CUSTOMERS.length + CUSTOMERS.indexOf(customer as (typeof CUSTOMERS)[number])
}
