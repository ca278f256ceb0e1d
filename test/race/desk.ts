/** Desks at which one may sit at a time: whoever finds somebody alive there says so in the folder's file `meetings`. */
import { appendFileSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export class Desk {
  readonly #path: string
  readonly #meetings: string

  constructor(folder: string, name: string) {
    this.#path = join(folder, `desk-${name}`)
    this.#meetings = join(folder, 'meetings')
  }

  /** A dead one's name may be taken away. */
  sitDown(what: string): void {
    const other = existsSync(this.#path) ? readFileSync(this.#path, 'utf8') : null
    if (other !== null && isAlive(other)) appendFileSync(this.#meetings, `${process.pid} ${what} met ${other}\n`)
    const mine = `${this.#path}.${process.pid}`
    writeFileSync(mine, `${process.pid} ${what}`)
    renameSync(mine, this.#path) // Whole or not at all, whenever we are killed.
  }

  leave(): void {
    rmSync(this.#path, { force: true })
  }
}

function isAlive(owner: string): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${Number.parseInt(owner)}/stat`, 'utf8'))
  } catch {
    return false
  }
}
