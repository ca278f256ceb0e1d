/** TLS options in the form that both drivers take. */
import { readFileSync } from 'node:fs'
import type { Tls } from './url.ts'

export function tlsOptions(tls: Tls, host: string): false | { rejectUnauthorized: boolean; ca?: string; servername?: string } {
  if (tls.mode === 'disable') return false
  if (tls.mode === 'require') return { rejectUnauthorized: false }
  return { rejectUnauthorized: true, servername: host, ...(tls.rootCertFile !== undefined && { ca: readFileSync(tls.rootCertFile, 'utf8') }) }
}
