/** Which claim a command is about: --claim, RUNLEDGER_CLAIM, or the job of `exec` that it runs in. */
import { claimFromEnv, parseClaim, type ClaimRef } from '../../index.ts'
import { invalidOption } from '../../model/errors.ts'
import type { FlagValues, Io } from '../command.ts'
import { text } from '../flags.ts'

export const CLAIM_FLAG = { claim: { type: 'string' } } as const

/** Null when there is none anywhere. @throws INVALID_OPTION for one that cannot be read */
export function findClaim(flags: FlagValues, io: Io): ClaimRef | null {
  const given = text(flags, 'claim')
  return given === undefined ? claimFromEnv(io.env) : parseClaim(given)
}

/** @throws INVALID_OPTION */
export function claimOf(flags: FlagValues, io: Io): ClaimRef {
  const found = findClaim(flags, io)
  if (!found) throw invalidOption('claim', 'is missing: give --claim JSON, set RUNLEDGER_CLAIM to what runledger claim printed, or call this from a job of runledger exec')
  return found
}
