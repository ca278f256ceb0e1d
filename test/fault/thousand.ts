/** Who is billed how much, in ten windows of a hundred customers. */
export const WINDOWS = Array.from({ length: 10 }, (_, n) => `2026-09-${String(n + 10)}`)
export const CUSTOMERS = Array.from({ length: 100 }, (_, n) => `c-${String(n).padStart(2, '0')}`)

/** No two sums are alike, so a charge that is missing or doubled shows to the cent. */
export const CENTS = (window: string, customer: string) => 1 + WINDOWS.indexOf(window) * CUSTOMERS.length + CUSTOMERS.indexOf(customer)

export const TOTAL_CENTS = (1000 * 1001) / 2
