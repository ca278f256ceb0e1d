/** docs/fencing.md and docs/guarantees.md: their SQL runs, on every database, and does what they say. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { before, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { migrate } from '../../src/index.ts'
import { eachDatabase, type DatabaseName } from '../support/databases.ts'

const read = (name: string) => readFileSync(fileURLToPath(new URL(`../../docs/${name}`, import.meta.url)), 'utf8')
const CHAPTER: Record<DatabaseName, string> = { sqlite: 'SQLite', postgres: 'PostgreSQL', mariadb: 'MySQL and MariaDB', mysql: 'MySQL and MariaDB' }

eachDatabase('the documented guard', (db) => {
  let url = ''
  before(async () => {
    url = await db.url()
  })
  const chapter = read('fencing.md').split('\n### ').find((text) => text.startsWith(`${CHAPTER[db.name]}\n`)) ?? ''
  const [table = '', guard = ''] = [...chapter.matchAll(/```sql\n([^`]+)```/g)].map(([, text]) => text)

  /** Refused: an error that names the constraint, or no row changed; the token tells the two from a pass. */
  async function write(token: number): Promise<number> {
    const refused = (error: unknown) => assert.match(String(error), /fenced_resources_stale/)
    await db.admin(guard.replaceAll(':resource', `'report'`).replaceAll(':token', String(token)), url).catch(refused)
    return Number((await db.admin(`select token from fenced_resources where resource = 'report'`, url))[0]!['token'])
  }

  it('lets a greater and the same token through, and a lower one changes nothing', async () => {
    await db.admin(table, url)
    assert.deepEqual([await write(9), await write(10), await write(10), await write(9)], [9, 10, 10, 10])
    assert.deepEqual(await db.admin('select stale from fenced_resources', url), [{ stale: 0 }])
  })

  it('what guarantees.md asks of the effects in doubt can be asked', async () => {
    await migrate(url)
    const [, statement = ''] = /```sql\n([^`]+)```/.exec(read('guarantees.md')) ?? []
    assert.deepEqual(await db.admin(statement, url), [])
  })
})
