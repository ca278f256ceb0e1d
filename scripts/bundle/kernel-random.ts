/** Random bytes for the uuid package, from where WebCrypto has them too. */
import { closeSync, openSync, readSync } from 'node:fs'

export default function rng(): Uint8Array {
  const bytes = new Uint8Array(16)
  return isFilled(bytes) ? bytes : crypto.getRandomValues(bytes)
}

function isFilled(bytes: Uint8Array): boolean {
  try {
    const fd = openSync('/dev/urandom', 'r')
    try {
      return readSync(fd, bytes) === bytes.length
    } finally {
      closeSync(fd)
    }
  } catch {
    return false // a container without /dev
  }
}
