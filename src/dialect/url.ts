/** Database URLs, read in one way for all drivers, with errors that never repeat a part that may be a secret. */
import { invalidOption } from '../model/errors.ts'

export interface ServerPlace {
  /** Host name, address, or the folder of a Unix socket (it starts with a slash). */
  readonly host: string
  readonly port: number
}

export interface ServerAddress extends ServerPlace {
  /** Further servers of the same database (standbys, nodes of a cluster), for when the one before does not take us. */
  readonly others: readonly ServerPlace[]
  readonly user: string | undefined
  readonly password: string | undefined
  readonly database: string | undefined
  readonly tls: Tls
  /** PostgreSQL only: the schema that holds the ledger's tables. */
  readonly schema: string | undefined
  /** Before the name of each of them, where others use the database too; empty otherwise. */
  readonly tablePrefix: string
}

/** `require` encrypts without asking who answers (as libpq does); `verify` checks the certificate and the name. */
export type Tls = { readonly mode: 'disable' } | { readonly mode: 'require' } | { readonly mode: 'verify'; readonly rootCertFile: string | undefined }

export type DatabaseUrl =
  | { readonly kind: 'sqlite'; readonly path: string; readonly tablePrefix: string }
  | { readonly kind: 'postgres'; readonly address: ServerAddress }
  | { readonly kind: 'mysql'; readonly address: ServerAddress }

/**
 * `postgres://`, `postgresql://`, `mysql://`, `mariadb://` (the same driver) or `sqlite:PATH`.
 * @throws INVALID_OPTION; the message never has the URL in it, since a password may stand anywhere in a malformed one
 */
export function parseDatabaseUrl(text: string): DatabaseUrl {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(text)?.[1]?.toLowerCase()
  switch (scheme) {
    case 'sqlite':
      return sqliteFile(text.slice('sqlite:'.length))
    case 'postgres':
    case 'postgresql':
      return { kind: 'postgres', address: serverAddress(text, 5432) }
    case 'mysql':
    case 'mariadb':
      return { kind: 'mysql', address: serverAddress(text, 3306) }
    default:
      throw invalidOption('db', 'must be a URL that begins with postgres://, mysql:// or sqlite:')
  }
}

/** A question mark is a character of the path like any other, unless a parameter follows. */
function sqliteFile(rest: string): DatabaseUrl {
  const [, path = rest, parameters = ''] = /^(.*?)\?([a-z_]+=.*)$/s.exec(rest) ?? []
  const query = queryOf(new URLSearchParams(parameters))
  const tablePrefix = tablePrefixOf(query)
  ignoreDriverWords(query)
  query.refuseRest()
  return { kind: 'sqlite', path: sqlitePath(path), tablePrefix }
}

function sqlitePath(rest: string): string {
  const path = rest.startsWith('///') ? rest.slice(2) : rest
  if (path === '' || path.startsWith('//')) throw invalidOption('db', 'sqlite: needs a path, such as sqlite:/var/lib/app/ledger.db')
  if (path.includes('\0')) throw invalidOption('db', 'the path has a NUL character')
  return path
}

function serverAddress(text: string, defaultPort: number): ServerAddress {
  const urls = urlPerHost(text).map(parse)
  const url = urls[0]!
  if (url.hash !== '') throw invalidOption('db', "the URL has a '#': percent-encode it as %23")
  const query = queryOf(url.searchParams)
  const socketFolder = query.take('host') ?? query.take('socket')
  if (urls.length > 1 && socketFolder !== undefined) throw invalidOption('db', "'host' and 'socket' cannot stand beside several hosts; write each socket's folder in the list, percent-encoded")
  const [first, ...others] = urls.map((one) => placeIn(one, defaultPort, socketFolder))
  ignoreDriverWords(query)
  checkSession(query.take('target_session_attrs'))
  const address: ServerAddress = {
    ...first!,
    others,
    user: decode('user', url.username) || undefined,
    password: decode('password', url.password) || undefined,
    database: decode('database', url.pathname.replace(/^\//, '')) || undefined,
    tls: tlsOf(query),
    schema: query.take('schema') || undefined,
    tablePrefix: tablePrefixOf(query),
  }
  query.refuseRest()
  return address
}

/** `scheme://user@a,b/db` as one URL for each of its hosts, so that each is read like a single one. */
function urlPerHost(text: string): string[] {
  const [, before = '', hosts = '', rest = ''] = /^([a-z]+:\/\/(?:[^/?#]*@)?)([^/?#@]*)([^]*)$/i.exec(text) ?? []
  const list = hosts.split(',')
  if (list.length === 1) return [text]
  if (list.some((host) => /^(:|$)/.test(host))) throw invalidOption('db', 'has an empty host among several')
  return list.map((host) => `${before}${host}${rest}`)
}

function placeIn(url: URL, defaultPort: number, socketFolder: string | undefined): ServerPlace {
  const host = socketFolder ?? (decode('host', url.hostname.replace(/^\[(.*)\]$/, '$1')) || '127.0.0.1')
  return { host, port: url.port === '' ? defaultPort : Number(url.port) }
}

/** The '@' that ends the password comes before any '/', '?' or '#'; a later one means that a part of the password would count as something else. */
const SHAPE = /^[a-z]+:\/\/[^/?#]*([/?#][^@]*)?$/i

function parse(text: string): URL {
  try {
    if (SHAPE.test(text)) return new URL(text)
  } catch {
    // The cause is dropped on purpose: Node puts the whole input into it.
  }
  throw invalidOption('db', 'is not a valid URL (percent-encode @ : / ? # % in user, password and database)')
}

function decode(part: string, text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw invalidOption('db', `the ${part} has a '%' that starts no percent-encoding; write it as %25`)
  }
}

/** What URLs say to drivers and the ledger decides by itself, the same way everywhere. */
function ignoreDriverWords(query: Query): void {
  checkTimeZone(query.take('timezone'))
  query.take('flags') // Whatever it says, affected rows are matched rows: the guards count on it.
}

interface Query {
  take(name: string): string | undefined
  refuseRest(): void
}

function queryOf(parameters: URLSearchParams): Query {
  const left = new Map(parameters)
  return {
    take(name: string): string | undefined {
      const value = left.get(name)
      left.delete(name)
      return value
    },
    refuseRest(): void {
      const [unknown] = left.keys()
      // Only a name that looks like one is repeated: a stray `?` in a password makes a part of it a "name".
      if (unknown !== undefined) throw invalidOption('db', /^[a-z_-]{1,20}$/i.test(unknown) && parameters.get(unknown) !== '' ? `has an unknown parameter '${unknown}'` : "has an unknown parameter (is a '?' in the password not percent-encoded?)")
    },
  }
}

/** Instants are UTC on every connection, whatever the session, the server or the driver think. */
function checkTimeZone(zone: string | undefined): void {
  if (zone === undefined || ['utc', 'z', '+00:00', ' 00:00', 'etc/utc', 'gmt'].includes(zone.toLowerCase())) return
  throw invalidOption('db', 'timezone can only be UTC: the ledger stores instants in UTC and shows them in the zone of the task')
}

/** As libpq has it; what we want of a server among several anyway. */
function checkSession(attributes: string | undefined): void {
  if (attributes === undefined || ['read-write', 'primary'].includes(attributes)) return
  throw invalidOption('db', 'target_session_attrs can only be read-write or primary: the ledger writes')
}

const TABLE_PREFIX = /^[a-z0-9_]{0,20}$/

/** Lower case, since some servers fold the names of tables; SQLite keeps the names that begin with its own for itself. */
function tablePrefixOf(query: Query): string {
  const prefix = query.take('table_prefix') ?? ''
  if (!TABLE_PREFIX.test(prefix) || prefix.startsWith('sqlite_')) throw invalidOption('db', 'table_prefix may have at most 20 lower-case letters, digits and _ (and not begin with sqlite_), such as app_')
  return prefix
}

function tlsOf(query: Query): Tls {
  const mode = (query.take('sslmode') ?? query.take('ssl-mode') ?? 'disable').toLowerCase()
  const rootCertFile = query.take('sslrootcert') ?? query.take('ssl-ca')
  if (mode === 'disable' || mode === 'disabled') return { mode: 'disable' }
  if (mode === 'require' || mode === 'required') return rootCertFile === undefined ? { mode: 'require' } : { mode: 'verify', rootCertFile }
  if (['verify-full', 'verify-ca', 'verify_identity', 'verify_ca'].includes(mode)) return { mode: 'verify', rootCertFile }
  throw invalidOption('db', 'sslmode must be disable, require or verify-full')
}

/** One address for each server of the database, in the order they are to be tried. */
export function eachAddress(address: ServerAddress): ServerAddress[] {
  return [address, ...address.others].map((place) => ({ ...address, ...place, others: [] }))
}

/** Where a server is, for people: `127.0.0.1:5432/app`, or `db-1:5432,db-2:5432/app`. */
export function placeOf(address: ServerAddress): string {
  const places = eachAddress(address).map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`)
  return `${places.join(',')}/${address.database ?? ''}`
}
