/** What becomes of output that somebody else still holds open when the job itself is over. */
import { spawn } from 'node:child_process'
import { fstatSync, writeSync } from 'node:fs'
import type { Socket } from 'node:net'

/*
 * A job that restarts a service often leaves that service with the job's stdout. Once we are gone nobody would read it, and the
 * service would die of SIGPIPE at its next log line, an hour later and without a word. So its output goes on to be read by a
 * cat(1) outside the group, which ends when the last writer does:
 *  - into our own stdout where that is a file or a device: there it would have gone without us, and nobody waits for its end;
 *  - into /dev/null where it is a pipe or a socket: a reader that waits for end-of-file ($(runledger exec …), cron) would
 *    otherwise wait for the service too, and the run is over.
 */

/** Hands a stream that has not ended to a process of its own. Our own reading of it ends here. */
export function handOver(source: Socket, target: number): void {
  if (source.destroyed || source.readableEnded) return
  source.removeAllListeners('data')
  const into = holdsNobody(target) ? target : null
  try {
    const readAhead = source.read() as Buffer | null
    if (into !== null && readAhead !== null) writeSync(into, readAhead)
    const cat = spawn('cat', [], { detached: true, cwd: '/', stdio: [source, into ?? 'ignore', 'ignore'] })
    cat.on('error', () => {}) // no cat on this machine: the writer meets SIGPIPE
    cat.unref()
  } catch {
    // no process could be started, or the disk is full; likewise
  }
  source.destroy()
}

function holdsNobody(target: number): boolean {
  const stat = fstatSync(target)
  return stat.isFile() || stat.isCharacterDevice()
}
