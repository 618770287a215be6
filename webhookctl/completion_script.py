"""Writes the completion script of a shell from the tree of commands.

The script has the words itself: no process is started for a completion, which would take longer
than a person waits for the tab key.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

# The words that may follow a command, by its own words.
Words = Mapping[str, tuple[str, ...]]

BASH: Final = """\
_webhookctl() {{
    local path="" word words="" current="${{COMP_WORDS[COMP_CWORD]}}"
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "$path $word" in
            {paths}) path="$path $word" ;;
        esac
    done
    case "$path" in
{cases}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _webhookctl webhookctl"""
ZSH: Final = "autoload -U +X bashcompinit && bashcompinit\n"
FISH: Final = 'complete -c webhookctl -n "__webhookctl_at {path}" -a "{words}"'
FISH_AT: Final = """\
function __webhookctl_at
    set -l words (commandline -opc)
    set -e words[1]
    set -l path
    for word in $words
        if contains -- (string join " " $path $word) {paths}
            set path $path $word
        end
    end
    test (string join " " $path) = (string join " " $argv)
end"""


def words_of(tree: Any) -> Words:
    """Returns the subcommands and options of every command of a Typer tree; "" is the root."""
    return dict(_walk(tree, ""))


def _walk(command: Any, path: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    subcommands = getattr(command, "commands", {})
    options = (name for param in command.params for name in param.opts if name.startswith("--"))
    yield path, (*subcommands, *options, "--help")
    for name, each in subcommands.items():
        yield from _walk(each, f"{path} {name}".strip())


def script(shell: str, words: Words) -> str:
    """Returns the script of "bash", "zsh" or "fish"."""
    if shell == "fish":
        return _fish(words)
    cases = "\n".join(
        f"        {_quoted(path)}) words='{' '.join(each)}' ;;" for path, each in words.items()
    )
    paths = "|".join(_quoted(path) for path in words if path)
    text = BASH.format(paths=paths, cases=cases)
    return ZSH + text if shell == "zsh" else text


def _quoted(path: str) -> str:
    return f'" {path}"' if path else '""'


def _fish(words: Words) -> str:
    paths = " ".join(f'"{path}"' for path in words if path)
    lines = (FISH.format(path=path, words=" ".join(each)) for path, each in words.items())
    return "\n".join((FISH_AT.format(paths=paths), *lines))
