/** What an operator does to a run or a task, and who that is: the words of task_actions. */

export const ACTIONS = ['retry', 'cancel', 'pause', 'resume', 'release', 'set', 'backfill', 'prune'] as const
export type ActionName = (typeof ACTIONS)[number]

/** Who acts, from where. */
export interface Actor {
  /** The person, as far as the host knows: `ann`, or behind sudo the user who called it. */
  readonly user: string
  readonly host: string
  readonly pid: number
  readonly launcher: string
}

/** One line of `task_actions`. Texts are bounded and cleaned before they reach the store. */
export interface Action {
  /** Tells it from the same action done again, and ours after an unknown commit; one of its own by default. */
  readonly id?: string
  readonly name: ActionName
  readonly task: string | null
  readonly taskKey: string | null
  /** The reason, in the actor's words. */
  readonly because: string | null
  /** Facts of the action as JSON, such as the bounds of a prune. */
  readonly details?: string | null
}

/** One that has been recorded. */
export interface RecordedAction extends Action {
  readonly at: Date
  readonly by: Actor
}
