/** The fields that begin every log line of `exec`, in their fixed order. */
import type { Instance } from '../../index.ts'
import type { LogFields } from '../log.ts'

export function logLine(instance: Instance, { task, key, ...rest }: LogFields): LogFields {
  return { task, key, instance: instance.id, host: instance.host, pid: instance.pid, launcher: instance.launcher, ...rest }
}
