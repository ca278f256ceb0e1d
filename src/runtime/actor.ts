/** Who does something to the ledger by hand, and from where. */
import { userInfo } from 'node:os'
import type { Actor } from '../model/action.ts'
import { invalidOption } from '../model/errors.ts'
import type { Instance } from '../model/run.ts'
import { boundText } from '../model/text.ts'

const MAX_NAME_BYTES = 255

/** @param by the person; by default the user of this process, not the root that sudo made of them @throws INVALID_OPTION */
export function actorOf({ host, pid, launcher }: Instance, by: string = process.env['SUDO_USER'] || userName()): Actor {
  if (by === '') throw invalidOption('by', 'must say who acts')
  return { user: boundText(by, MAX_NAME_BYTES, 'head'), host, pid, launcher }
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.() ?? '?'}` // A uid without an entry, as in many containers.
  }
}
