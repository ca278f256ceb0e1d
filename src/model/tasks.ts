/** The tasks of a program, with what goes into them and what comes out: a type that callers hand to openLedger. */
import type { StandardSchema } from './standard-schema.ts'

/** `interface Tasks { send_invoice: { payload: { order: number }; result: { mail: string } } }` */
export interface TaskTypes {
  readonly payload?: unknown
  readonly result?: unknown
}

/** Where nothing was declared, anything goes. */
// eslint-disable-next-line typescript/no-explicit-any -- the caller's own types
export type AnyTasks = Record<string, { payload?: any; result?: any }>

export type TaskName<Tasks> = keyof Tasks & string
export type PayloadOf<Tasks, Name extends keyof Tasks> = Tasks[Name] extends { payload?: infer Payload } ? Payload : unknown
export type ResultOf<Tasks, Name extends keyof Tasks> = Tasks[Name] extends { result?: infer Result } ? Result : unknown

/** What validates the payload of a task, at enqueue and before its handler. */
export type Schemas<Tasks> = { readonly [Name in TaskName<Tasks>]?: StandardSchema<PayloadOf<Tasks, Name>> }
