/** `runledger completion bash|zsh`: made of the table of commands and of their options, so it knows what they know. */
import { invalidOption } from '../model/errors.ts'
import type { Command } from './command.ts'
import { COMMON_FLAGS } from './common-flags.ts'
import { EXIT } from './exit.ts'

const help = `
Usage: runledger completion bash|zsh

Prints a script that completes commands and flags; what stands behind -- is completed as a command of its own.

Exit codes: 0; 64 usage.

Example: runledger completion bash > /etc/bash_completion.d/runledger
Example: runledger completion zsh > "\${fpath[1]}/_runledger"
`

/** A command, its summary, and its flags with their dashes. */
interface Entry {
  readonly name: string
  readonly summary: string
  readonly flags: readonly string[]
}

export type Table = Readonly<Record<string, { readonly summary: string; load(): Promise<Command> }>>

/** @param table of all commands, which has this one in it */
export function completionOf(table: Table): Command {
  return {
    name: 'completion',
    summary: 'print shell completion for bash or zsh',
    help,
    options: {},
    async run({ words }, io) {
      const [shell, ...more] = words
      if ((shell !== 'bash' && shell !== 'zsh') || more.length > 0) throw invalidOption('completion', `takes bash or zsh, got ${JSON.stringify(words.join(' ').slice(0, 40))}`)
      const entries = await entriesOf(table)
      io.out(shell === 'bash' ? bash(entries) : zsh(entries))
      return EXIT.ok
    },
  }
}

async function entriesOf(table: Table): Promise<Entry[]> {
  const entries = Object.entries(table).map(async ([name, { summary, load }]) => {
    const { options } = await load()
    return { name, summary, flags: [...Object.keys(options), ...Object.keys(COMMON_FLAGS)].map((flag) => `--${flag}`) }
  })
  return Promise.all(entries)
}

function bash(entries: readonly Entry[]): string {
  return `# bash completion of runledger
_runledger() {
  local word=\${COMP_WORDS[COMP_CWORD]} flags= at
  for ((at = 2; at < COMP_CWORD; at++)); do
    [[ \${COMP_WORDS[at]} == -- ]] || continue
    if ((at + 1 == COMP_CWORD)); then COMPREPLY=($(compgen -c -- "$word")); else COMPREPLY=($(compgen -f -- "$word")); fi
    return
  done
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '${entries.map(({ name }) => name).join(' ')} --help --version' -- "$word"))
    return
  fi
  case \${COMP_WORDS[1]} in
${entries.map(({ name, flags }) => `    ${name}) flags='${flags.join(' ')}' ;;`).join('\n')}
  esac
  if [[ $word == -* ]]; then COMPREPLY=($(compgen -W "$flags --" -- "$word")); else COMPREPLY=($(compgen -f -- "$word")); fi
}
complete -F _runledger runledger
`
}

function zsh(entries: readonly Entry[]): string {
  const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
  return `#compdef runledger
# zsh completion of runledger
_runledger() {
  local -a commands flags
  local at=\${words[(i)--]}
  if ((CURRENT > at)); then shift at words; ((CURRENT -= at)); _normal; return; fi
  if ((CURRENT == 2)); then
    commands=(${entries.map(({ name, summary }) => quoted(`${name}:${summary}`)).join(' ')})
    _describe command commands
    return
  fi
  case $words[2] in
${entries.map(({ name, flags }) => `    ${name}) flags=(${flags.join(' ')}) ;;`).join('\n')}
  esac
  if [[ $PREFIX == -* ]]; then compadd -- $flags; else _files; fi
}
if [[ $funcstack[1] == _runledger ]]; then _runledger "$@"; else compdef _runledger runledger; fi
`
}
