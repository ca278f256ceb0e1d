/** Finds the program a command names, as a shell would, before anything is claimed or started. */
import { accessSync, closeSync, constants, existsSync, openSync, readSync, statSync } from 'node:fs'
import { delimiter, isAbsolute } from 'node:path'

/** 127: there is no such program. 126: it is there, but cannot be executed. */
export type NoCommand = { readonly exitCode: 126 | 127; readonly problem: string }
export type FoundCommand = { readonly path: string }

/** What execvp(3) searches where PATH is not set. */
const DEFAULT_PATH = '/usr/local/bin:/usr/bin:/bin'
/** Linux reads no more than this of a script's first line. */
const SHEBANG_BYTES = 256

/**
 * The absolute path of `command`. A name with a slash is a path, relative to `cwd`; any other is looked for in `env.PATH`,
 * where an empty entry means `cwd`, and an entry that cannot be executed is passed over for a later one that can.
 * A script whose interpreter is missing is not found either: the kernel would say so only after the claim.
 */
export function findCommand(command: string, env: NodeJS.ProcessEnv, cwd: string): FoundCommand | NoCommand {
  if (command === '') return { exitCode: 127, problem: 'the command is empty' }
  const refused: NoCommand[] = []
  for (const path of candidates(command, env, cwd)) {
    const verdict = judge(path)
    if (verdict === 'executable') return { path }
    if (verdict !== 'absent') refused.push({ ...verdict, problem: `${command}: ${verdict.problem}` })
  }
  const notFound: NoCommand = { exitCode: 127, problem: command.includes('/') ? `${command}: no such file` : `${command}: command not found` }
  return refused.find(({ exitCode }) => exitCode === 126) ?? refused[0] ?? notFound
}

function candidates(command: string, env: NodeJS.ProcessEnv, cwd: string): string[] {
  if (command.includes('/')) return [absolute(command, cwd)]
  return (env['PATH'] ?? DEFAULT_PATH).split(delimiter).map((folder) => `${absolute(folder, cwd)}/${command}`)
}

/** Not path.resolve(): it would drop `link/..`, which leads elsewhere than it seems. */
function absolute(path: string, cwd: string): string {
  return isAbsolute(path) ? path : `${cwd}/${path}`
}

function judge(path: string): 'executable' | 'absent' | NoCommand {
  try {
    const stat = statSync(path)
    if (!stat.isFile()) return { exitCode: 126, problem: stat.isDirectory() ? 'is a directory' : 'is not a regular file' }
    accessSync(path, constants.X_OK)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return 'absent'
    return { exitCode: 126, problem: code === 'EACCES' ? 'permission denied' : `cannot be executed (${code})` }
  }
  const interpreter = interpreterOf(path)
  if (interpreter === null || existsSync(interpreter)) return 'executable'
  return { exitCode: 127, problem: `its interpreter ${JSON.stringify(interpreter)} was not found` }
}

/** What a script's first line names (a script saved with CRLF names `/bin/sh\r`, which nobody has). */
function interpreterOf(path: string): string | null {
  const named = /^#![ \t]*([^ \t\n\0]+)/.exec(firstBytes(path))?.[1]
  return named !== undefined && isAbsolute(named) ? named : null
}

function firstBytes(path: string): string {
  let fd: number
  try {
    fd = openSync(path, 'r')
  } catch {
    return '' // executable but not readable is legal for a program, and no script
  }
  try {
    const buffer = Buffer.alloc(SHEBANG_BYTES)
    return buffer.toString('latin1', 0, readSync(fd, buffer, 0, SHEBANG_BYTES, 0))
  } finally {
    closeSync(fd)
  }
}
