/** Database URLs are read in one way for all drivers, and what is wrong with one is said without repeating it. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { inspect } from 'node:util'
import fc from 'fast-check'
import { eachAddress, parseDatabaseUrl, placeOf, type ServerAddress } from '../../src/dialect/url.ts'
import { openLedger } from '../../src/runtime/ledger.ts'
import { migrate } from '../../src/runtime/schema.ts'
import { eachServer, userUrl } from '../support/each-server.ts'
import { faultProxy } from '../support/fault-proxy.ts'

/** Every character that means something in a URL, a shell or SQL. */
const PASSWORD = `p@:/?#%[]& +$'"`

describe('url', () => {
  it('case 106: every part of it may have any character, percent-encoded', () => {
    const [user, database] = ['us er@home', 'da/ta?base']
    const address = addressOf(`postgres://${encodeURIComponent(user)}:${encodeURIComponent(PASSWORD)}@db.example:6543/${encodeURIComponent(database)}`)
    assert.deepEqual([address.user, address.password, address.host, address.port, address.database], [user, PASSWORD, 'db.example', 6543, database])
  })

  for (const [url, host, port, database] of [
    ['postgres://db.example/app', 'db.example', 5432, 'app'],
    ['postgresql://db.example/app', 'db.example', 5432, 'app'],
    ['mysql://db.example/app', 'db.example', 3306, 'app'],
    ['mariadb://db.example:3307/app', 'db.example', 3307, 'app'],
    ['MySQL://db.example/app', 'db.example', 3306, 'app'],
    ['postgres://[::1]:5433/app', '::1', 5433, 'app'],
    ['postgres:///app', '127.0.0.1', 5432, 'app'],
    ['postgres://u:p@%2Ftmp%2Fsockets/app', '/tmp/sockets', 5432, 'app'],
    ['postgresql:///app?host=/tmp', '/tmp', 5432, 'app'],
    ['mysql://u:p@localhost/app?socket=%2Ftmp%2Fmysql.sock', '/tmp/mysql.sock', 3306, 'app'],
    ['postgres://db.example', 'db.example', 5432, undefined],
  ] as const) {
    it(`case 106: ${url} is read`, () => {
      const address = addressOf(url)
      assert.deepEqual([address.host, address.port, address.database], [host, port, database])
    })
  }

  for (const [url, places] of [
    ['postgres://u:p@db-1:5433,db-2/app?target_session_attrs=read-write', ['db-1:5433', 'db-2:5432']],
    ['postgres://u:p@db-1,[::1]:5433,10.0.0.3/app?target_session_attrs=primary', ['db-1:5432', '[::1]:5433', '10.0.0.3:5432']],
    ['postgres://u:p@%2Ftmp%2Fsockets:5433,%2Ftmp%2Fsockets:5434/app', ['/tmp/sockets:5433', '/tmp/sockets:5434']],
    ['mysql://u:p,q@node-1,node-2:3307/app', ['node-1:3306', 'node-2:3307']],
  ] as const) {
    it(`case 61: ${url} has several servers, in this order`, () => {
      assert.equal(placeOf(addressOf(url)), `${places.join(',')}/app`)
      assert.deepEqual(eachAddress(addressOf(url)).map((address) => placeOf(address)), places.map((place) => `${place}/app`))
    })
  }

  for (const [url, problem] of [
    ['postgres://u:p@db-1,,db-2/app', /has an empty host/],
    ['postgres://u:p@db-1,:5433/app', /has an empty host/],
    ['postgres://u:p@db-1,db-2:port/app', /is not a valid URL/],
    ['postgres://u:p@db-1,db-2/app?host=/tmp', /cannot stand beside several hosts/],
    ['postgres://u:p@db-1,db-2/app?target_session_attrs=any', /can only be read-write or primary/],
    ['postgres://db-1/app?target_session_attrs=standby', /can only be read-write or primary/],
  ] as const) {
    it(`${url} is refused at the door`, () => {
      assert.throws(() => parseDatabaseUrl(url), { code: 'INVALID_OPTION', message: problem })
    })
  }

  for (const url of ['sqlite:ledger.db', 'sqlite:/var/lib/ledger.db', 'sqlite:///var/lib/ledger.db', 'sqlite::memory:']) {
    it(`${url} is a file`, () => {
      assert.deepEqual(parseDatabaseUrl(url), { kind: 'sqlite', path: url.slice('sqlite:'.length).replace('///', '/'), tablePrefix: '' })
    })
  }

  for (const url of ['', 'ledger.db', '/var/lib/ledger.db', 'oracle://db/app', 'sqlite:', 'sqlite://u:p@db/app', 'postgres:app', 'postgres:/app', 'postgres://db:port/app', 'postgres://db:70000/app', 'postgres://[::1/app']) {
    it(`${JSON.stringify(url)} is refused at the door`, () => {
      assert.throws(() => parseDatabaseUrl(url), { code: 'INVALID_OPTION', message: /^INVALID_OPTION: db: / })
    })
  }

  for (const part of ['postgres://u:77%zz@db/app', 'postgres://7%zz@db/app', 'postgres://u:p@db/77%zz', 'mysql://u:77%@db/app']) {
    it(`case 106: a percent sign that starts no encoding is named by its part, not by its value (${part})`, () => {
      assert.throws(() => parseDatabaseUrl(part), (error: Error) => /has a '%' that starts no percent-encoding/.test(error.message) && !error.message.includes('7'))
    })
  }

  for (const zone of ['UTC', 'utc', 'Z', '%2B00:00', '+00:00', 'Etc/UTC', 'GMT']) {
    it(`case 44: timezone=${zone} is what every connection has anyway`, () => {
      assert.deepEqual(parseDatabaseUrl(`mysql://db/app?timezone=${zone}`), parseDatabaseUrl('mysql://db/app'))
    })
  }

  for (const zone of ['local', 'Mars', 'Asia/Tokyo', '%2B09:00', '']) {
    it(`case 44: timezone=${zone} is refused, not ignored`, () => {
      assert.throws(() => parseDatabaseUrl(`mysql://db/app?timezone=${zone}`), { code: 'INVALID_OPTION', message: /timezone can only be UTC/ })
    })
  }

  for (const url of ['postgres://db/app?table_prefix=', 'mysql://db/app?table_prefix=', 'sqlite:ledger.db?table_prefix=', 'sqlite::memory:?table_prefix=']) {
    it(`${url} is read like any other, with a prefix that is a name`, () => {
      const parsed = [parseDatabaseUrl(`${url}app_2_`), parseDatabaseUrl(url.split('?')[0]!)]
      assert.deepEqual(parsed.map((one) => (one.kind === 'sqlite' ? one.tablePrefix : one.address.tablePrefix)), ['app_2_', ''])
      assert.deepEqual(parsed.map((one) => (one.kind === 'sqlite' ? one.path : placeOf(one.address))), Array(2).fill(parsed[1]!.kind === 'sqlite' ? parsed[1]!.path : placeOf(parsed[1]!.address)))
    })

    for (const prefix of [`x"; drop table t;--`, 'x`y`', 'App_', 'a-b', 'a.b', 'a b', 'ä', 'a'.repeat(21), 'sqlite_']) {
      it(`case 107: ${url}${prefix} is refused at the door`, () => {
        assert.throws(() => parseDatabaseUrl(url + encodeURIComponent(prefix)), { code: 'INVALID_OPTION', message: /table_prefix may have/ })
      })
    }
  }

  it('a question mark in the path of a file is a character of it, and a parameter is one', () => {
    assert.deepEqual(parseDatabaseUrl('sqlite:/tmp/what?.db?table_prefix=a_'), { kind: 'sqlite', path: '/tmp/what?.db', tablePrefix: 'a_' })
    assert.throws(() => parseDatabaseUrl('sqlite:ledger.db?mode=ro'), { code: 'INVALID_OPTION', message: /unknown parameter 'mode'/ })
  })

  it('an unknown parameter is refused by its name', () => {
    assert.throws(() => parseDatabaseUrl('mysql://db/app?conectTimeout=5'), { code: 'INVALID_OPTION', message: /unknown parameter 'conectTimeout'/ })
  })

  it('no part of a password appears in what is said of a malformed URL, nor as any other part of one that is accepted', () => {
    const marker = 'hunterTwo'
    const junk = fc.string({ unit: fc.constantFrom(...Array.from(`${PASSWORD}\\<>^{}|=;,!~\`\n\tä0159ab`)), maxLength: 6 })
    const url = fc
      .record({
        scheme: fc.constantFrom('postgres', 'postgresql', 'mysql', 'mariadb', 'pg', ''),
        slashes: fc.constantFrom('://', '://', '://', ':', ':/', ':///'),
        user: fc.constantFrom('user', 'user', '', 'us%er'),
        before: junk,
        after: junk,
        host: fc.constantFrom('db.example', '127.0.0.1', '[::1]', '[::1', '%2Ftmp', '', 'db-1,db-2', 'db-1,', ',[::1]'),
        port: fc.constantFrom('', ':5432', ':x', ':99999'),
        rest: fc.constantFrom('/app', '', '/app?schema=x', '/app?timezone=Mars', '/app#x', '/a%p', '?x=1'),
      })
      .map(({ scheme, slashes, user, before, after, host, port, rest }) => `${scheme}${slashes}${user}:${before}${marker}${after}@${host}${port}${rest}`)
    fc.assert(
      fc.property(url, (text) => {
        try {
          const parsed = parseDatabaseUrl(text)
          assert.ok(parsed.kind !== 'sqlite')
          const { password, ...shown } = parsed.address
          assert.ok(password?.includes(marker))
          assert.ok(!everythingIn({ shown, place: placeOf(parsed.address) }).includes(marker), text)
        } catch (error) {
          if (error instanceof assert.AssertionError) throw error
          assert.ok(!everythingIn(error).includes(marker), text)
          assert.equal((error as { code?: string }).code, 'INVALID_OPTION')
        }
      }),
      { numRuns: 5_000 },
    )
  })
})

eachServer('url', (db) => {
  let url: string
  let theirs: string
  before(async () => {
    url = await db.url()
    theirs = await userUrl(db, url, PASSWORD)
    await migrate(theirs)
  })

  it('case 106: a password with every special character connects', async () => {
    const ledger = await openLedger(theirs)
    const outcome = await ledger.run({ task: 'password', key: 'a' }, () => {})
    await ledger.close()
    assert.equal(outcome.status, 'completed')
  })

  it('case 106: through a Unix socket, in either way of writing it, and through IPv6', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'runledger-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const file = join(folder, '.s.PGSQL.5432')
    const [socket, six] = [await faultProxy(url, { on: file }), await faultProxy(url, { on: '::1' })]
    t.after(() => Promise.all([socket.close(), six.close()]))
    const path = encodeURIComponent(db.name === 'postgres' ? folder : file)
    const user = /\/\/(.*)@/.exec(theirs)![1]!
    const { protocol, pathname } = new URL(theirs)

    for (const form of [`${protocol}//${user}@${path}${pathname}`, `${protocol}//${user}@localhost${pathname}?host=${path}`, `${protocol}//${user}@[::1]:${six.port}${pathname}`]) {
      const ledger = await openLedger(form)
      assert.equal((await ledger.runs()).length, 1, form)
      await ledger.close()
    }
  })

  it('a refused password, an unknown database and a dead address are told without the password', async () => {
    const secret = 'hunterTwo'
    const wrong = new URL(theirs)
    wrong.password = secret
    const [unknown, dead] = [new URL(wrong), new URL(wrong)]
    unknown.password = new URL(theirs).password
    unknown.pathname = '/no_such_database'
    dead.port = '1'
    for (const bad of [wrong, unknown, dead]) {
      const error: unknown = await openLedger(bad.href, { connectTimeout: 0 }).then((ledger) => ledger.close(), (refusal: unknown) => refusal)
      assert.equal((error as { code?: string }).code, 'DATABASE_UNAVAILABLE', inspect(error))
      for (const password of [secret, PASSWORD, encodeURIComponent(PASSWORD)]) assert.ok(!everythingIn(error).includes(password))
    }
  })
})

function addressOf(url: string): ServerAddress {
  const parsed = parseDatabaseUrl(url)
  assert.ok(parsed.kind !== 'sqlite')
  return parsed.address
}

/** All that a log could print of it: message, stack, cause, facts, and fields that do not show. */
function everythingIn(value: unknown): string {
  return inspect(value, { depth: Infinity, showHidden: true, maxStringLength: null, maxArrayLength: null, breakLength: Infinity })
}
