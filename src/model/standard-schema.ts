/** The interface of Standard Schema (standardschema.dev, version 1), by which any validation library can be asked. */

export interface StandardSchema<Output = unknown> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>
  }
}

export type SchemaResult<Output> = { readonly value: Output; readonly issues?: undefined } | { readonly issues: readonly SchemaIssue[] }

export interface SchemaIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

/** The value as the schema gives it back, or what is wrong with it in one line. */
export async function validate<Output>(schema: StandardSchema<Output>, value: unknown): Promise<{ readonly value: Output } | { readonly problem: string }> {
  const result = await schema['~standard'].validate(value)
  return result.issues ? { problem: result.issues.map(textOf).join('; ') || 'the schema refused it' } : { value: result.value }
}

function textOf({ message, path = [] }: SchemaIssue): string {
  const where = path.map((step) => String(typeof step === 'object' ? step.key : step)).join('.')
  return where === '' ? message : `${where}: ${message}`
}
