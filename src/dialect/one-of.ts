/** One of several servers that hold the same database: the first that takes us, and that one until it does so no more. */

export class OneOf<Server> {
  readonly #servers: readonly Server[]
  readonly #problem: (error: Error) => string | undefined
  #current = 0

  /** @param problem why a server cannot be reached, or undefined for an error that another one would answer with too */
  constructor(servers: readonly Server[], problem: (error: Error) => string | undefined) {
    this.#servers = servers
    this.#problem = problem
  }

  /**
   * Tries to reach them in turn, from the one that was reached last.
   * @throws the error of the last one that could not be reached, or at once what a server refuses: the others would too
   */
  async reach<T>(attempt: (server: Server) => Promise<T>): Promise<T> {
    const first = this.#current
    for (let turn = 0; ; turn++) {
      const index = (first + turn) % this.#servers.length
      try {
        const reached = await attempt(this.#servers[index]!)
        this.#current = index
        return reached
      } catch (error) {
        if (turn + 1 >= this.#servers.length || !(error instanceof Error) || this.#problem(error) === undefined) throw error
      }
    }
  }
}
