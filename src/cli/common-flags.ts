/** The flags that every command has. */
export const COMMON_FLAGS = {
  db: { type: 'string' },
  'connect-timeout': { type: 'string' },
  json: { type: 'boolean' },
  'log-format': { type: 'string' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean' },
} as const
