/** What an administrator types to give somebody a role on the ledger. */
import { invalidOption } from '../model/errors.ts'
import { rightsOf, ROLES, type Role } from '../store/roles.ts'
import { openStore } from './open-store.ts'
import { settle } from './settle.ts'

const USER = /^[A-Za-z0-9_][A-Za-z0-9_.$-]{0,62}(@[A-Za-z0-9_.:%-]{1,255})?$/

/**
 * The lines, for the database at `url`; nothing is changed, and the tables need not be there yet.
 * @param user by default `ledger_` and the role @throws INVALID_OPTION, DATABASE_UNAVAILABLE
 */
export async function grants(url: string, role: Role, user = `ledger_${role}`, patienceMs = 10_000): Promise<readonly string[]> {
  if (!ROLES.includes(role)) throw invalidOption('role', `must be one of ${ROLES.join(', ')}, got ${JSON.stringify(role)}`)
  if (!USER.test(user)) throw invalidOption('user', 'may have letters, digits and _ . $ -, and on MySQL and MariaDB a host behind an @')
  const store = await settle({ diagnose: () => ({ kind: 'other' }), place: '' }, patienceMs, () => openStore(url))
  try {
    return store.grants(user, rightsOf(role))
  } finally {
    await store.close()
  }
}
