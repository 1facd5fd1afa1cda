"""Completion scripts for bash, zsh and fish, written from the command line's own grammar."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_FILES = ("FILE", "REPORT", "DIR", "PATH", "FORMAT:FILE")
"""Metavariables of values that name a file."""


class Option(NamedTuple):
    flags: tuple[str, ...]
    takes_value: bool
    values: tuple[str, ...]
    """The values that it accepts; empty: a file, or free text."""
    is_file: bool
    help: str


class CompletionCommand(NamedTuple):
    """The program, or a verb by its words: what may follow it."""

    words: tuple[str, ...]
    verbs: dict[str, str]
    """Help by verb."""
    options: tuple[Option, ...]
    values: tuple[str, ...]
    """What its arguments may be."""
    is_file: bool


def commands(
    parser: argparse.ArgumentParser, rules: Sequence[str] = (), words: tuple[str, ...] = ()
) -> Iterator[CompletionCommand]:
    """The program and its verbs; ``rules`` are the values of what asks for the name of a rule."""
    verbs: dict[str, str] = {}
    options: list[Option] = []
    values: list[str] = []
    below: list[CompletionCommand] = []
    is_file = False
    for action in parser._actions:  # noqa: SLF001 - argparse has no public list of its actions
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - nor a public name for this one
            verbs |= {choice.dest: choice.help or "" for choice in action._get_subactions()}  # noqa: SLF001
            for name, verb in action.choices.items():
                below += commands(verb, rules, (*words, name))
            continue
        known = tuple(map(str, action.choices or ()))
        if action.metavar == "RULE" or (words == ("rule",) and action.dest == "name"):
            known = tuple(rules)
        names_file = action.metavar in _FILES
        if action.option_strings:
            first_line = (action.help or "").partition("(")[0].partition("%")[0].strip(" :")
            options.append(Option(tuple(action.option_strings), action.nargs != 0, known, names_file, first_line))
        else:
            values += known
            is_file = is_file or names_file
    yield CompletionCommand(words, verbs, tuple(options), tuple(values), is_file)
    yield from below


def bash(found: Sequence[CompletionCommand]) -> str:
    cases, values = [], []
    for command in found:
        offered = [*command.verbs, *command.values, *(flag for option in command.options for flag in option.flags)]
        files = " files=1" if command.is_file else ""
        cases.append(f"    '{' '.join(command.words)}') offered={_quoted(' '.join(offered))}{files} ;;")
        for option in command.options:
            if option.takes_value:
                place = "|".join(f"'{' '.join((*command.words, flag))}'" for flag in option.flags)
                files = " files=1" if option.is_file else ""
                values.append(f"    {place}) offered={_quoted(' '.join(option.values))}{files} ;;")
    verbs = "|".join(f"'{' '.join(command.words)}'" for command in found if command.words)
    return _BASH.format(verbs=verbs, cases="\n".join(cases), values="\n".join(values))


def zsh(found: Sequence[CompletionCommand]) -> str:
    """The script for zsh, to be sourced after ``compinit``: ``bashcompinit`` lets zsh run bash's functions."""
    return f"autoload -Uz bashcompinit && bashcompinit\n\n{bash(found)}"


def fish(found: Sequence[CompletionCommand]) -> str:
    lines = ["complete -c envcheck -f", "complete -c gpu-envcheck -w envcheck"]
    nested = {command.words[-1]: command.words[0] for command in found if len(command.words) > 1}
    for command in found:
        seen = [f"__fish_seen_subcommand_from {word}" for word in command.words]
        others = f"not __fish_seen_subcommand_from {' '.join(command.verbs)}" if command.verbs else ""
        if len(command.words) == 1 and command.words[0] in nested:  # "check" is seen in "matrix check" too
            others = f"not __fish_seen_subcommand_from {nested[command.words[0]]}"
        condition = _quoted("; and ".join(filter(None, [*seen, others])))
        start = f"complete -c envcheck -n {condition}"
        lines += [f"{start} -a {verb} -d {_quoted(text)}" for verb, text in command.verbs.items()]
        if command.values:
            lines.append(f"{start} -a {_quoted(' '.join(command.values))}")
        if command.is_file:
            lines.append(f"{start} -F")
        lines += [_fish_option(start, option) for option in command.options]
    return "\n".join(lines) + "\n"


def _fish_option(start: str, option: Option) -> str:
    flags = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags)
    value = ""
    if option.takes_value:
        value = " -r -F" if option.is_file else f" -x -a {_quoted(' '.join(option.values))}" if option.values else " -x"
    return f"{start} {flags}{value} -d {_quoted(option.help)}"


def _quoted(text: str) -> str:
    """One word of any of the shells; ours has no backslash, and an apostrophe becomes a typographic one."""
    return "'" + text.replace("'", "\N{RIGHT SINGLE QUOTATION MARK}").replace("\n", " ") + "'"


_BASH = """\
_envcheck() {{
  local word verb='' offered='' files='' current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}"
  for word in "${{COMP_WORDS[@]:1:$((COMP_CWORD-1))}}"; do
    case "${{verb:+$verb }}$word" in
      {verbs}) verb="${{verb:+$verb }}$word" ;;
    esac
  done
  case "${{verb:+$verb }}$previous" in
{values}
    *)
    case "$verb" in
{cases}
    esac ;;
  esac
  COMPREPLY=($(compgen -W "$offered" -- "$current"))
  if [[ -n $files ]]; then
    local IFS=$'\\n'
    COMPREPLY+=($(compgen -f -- "$current"))
  fi
}}
complete -F _envcheck envcheck gpu-envcheck
"""
