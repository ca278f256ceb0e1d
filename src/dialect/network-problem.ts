/** Errors of sockets and of drivers that lost one, told in words; the same for every database behind a network. */

const CODES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nobody listens there',
  ECONNRESET: 'the connection was cut',
  EPIPE: 'the connection was cut',
  ETIMEDOUT: 'it does not answer',
  ENETUNREACH: 'the network is unreachable',
  EHOSTUNREACH: 'the host is unreachable',
  ENOTFOUND: 'the host name is unknown',
  EAI_AGAIN: 'the host name could not be looked up',
  ENOENT: 'there is no such socket',
  EACCES: 'the socket may not be opened',
  PROTOCOL_CONNECTION_LOST: 'the connection was lost',
  PROTOCOL_SEQUENCE_TIMEOUT: 'it does not answer',
}

// The drivers give these no code.
const MESSAGES: readonly [RegExp, string][] = [
  [/timeout exceeded when trying to connect|due to connection timeout/i, 'it does not answer'],
  [/query read timeout/i, 'it does not answer'],
  [/connection terminated|connection ended|server closed the connection/i, 'the connection was lost'],
  [/client has encountered a connection error|client was closed|not queryable/i, 'the connection was lost'],
  [/in closed state|connection is closed|pool is closed|end on the pool/i, 'the connection was lost'],
  [/does not support ssl/i, 'the server does not offer TLS'],
  [/certificate|self.signed/i, "the server's certificate could not be verified"],
]

/** What is wrong with the connection, or undefined when the error is about something else. */
export function networkProblem(error: Error): string | undefined {
  const nested = error instanceof AggregateError ? (error.errors.find((inner) => inner instanceof Error) as Error | undefined) : undefined
  const { code } = (nested ?? error) as Error & { code?: string }
  return (code !== undefined ? CODES[code] : undefined) ?? MESSAGES.find(([pattern]) => pattern.test(error.message))?.[1]
}
