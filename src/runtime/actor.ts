/** Who acts: the person, not the root that sudo made of them. */
import { userInfo } from 'node:os'
import type { Actor } from '../model/action.ts'
import type { Instance } from '../model/run.ts'
import { boundText } from '../model/text.ts'

const MAX_USER_BYTES = 255

/** @param user who it is, where that is known better */
export function actorOf({ host, pid, launcher }: Instance, user: string = process.env['SUDO_USER'] ?? userName()): Actor {
  return { user: boundText(user, MAX_USER_BYTES, 'head'), host, pid, launcher }
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.() ?? '?'}` // A uid without an entry, as in many containers.
  }
}
