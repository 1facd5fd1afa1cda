"""Completion scripts for bash, zsh and fish, written from the table of options."""

from __future__ import annotations

from collections.abc import Sequence

from envcheck.config.options import FILES, VERBS, Option, options_of, verbs_below

_HELP = Option("-h --help", "", "show this help message and exit")


def bash(rules: Sequence[str]) -> str:
    """The script; ``rules`` are the values of what asks for the name of a rule."""
    cases, values, verbs = [], [], []
    for name in (verb.name for verb in VERBS):
        verbs += [f"'{name}'"] if name else []
        arguments = [option for option in options_of(name) if not option.flags]
        options = [_HELP, *(option for option in options_of(name) if option.flags)]
        offered = [*verbs_below(name), *(value for option in arguments for value in _values(option, rules))]
        offered += [flag for option in options for flag in option.flags]
        files = " files=1" if any(option.value in FILES for option in arguments) else ""
        cases.append(f"    '{name}') offered={_quoted(' '.join(offered))}{files} ;;")
        for option in (option for option in options if option.takes_value):
            place = "|".join(f"'{name} {flag}'" for flag in option.flags)
            files = " files=1" if option.value in FILES else ""
            values.append(f"    {place}) offered={_quoted(' '.join(_values(option, rules)))}{files} ;;")
    return _BASH.format(verbs="|".join(verbs), cases="\n".join(cases), values="\n".join(values))


def zsh(rules: Sequence[str]) -> str:
    """The script for zsh, to be sourced after ``compinit``: ``bashcompinit`` lets zsh run bash's functions."""
    return f"autoload -Uz bashcompinit && bashcompinit\n\n{bash(rules)}"


def fish(rules: Sequence[str]) -> str:
    lines = ["complete -c envcheck -f", "complete -c gpu-envcheck -w envcheck"]
    nested = {name: above for above, _, name in (verb.name.rpartition(" ") for verb in VERBS) if above}
    for verb in (verb.name for verb in VERBS):
        seen = [f"__fish_seen_subcommand_from {word}" for word in verb.split()]
        if below := verbs_below(verb):
            seen.append(f"not __fish_seen_subcommand_from {' '.join(below)}")
        elif verb in nested:  # "check" is seen in "matrix check" too
            seen.append(f"not __fish_seen_subcommand_from {nested[verb]}")
        start = f"complete -c envcheck -n {_quoted('; and '.join(seen))}"
        lines += [f"{start} -a {name} -d {_quoted(each.help)}" for name, each in below.items()]
        for option in (option for option in options_of(verb) if not option.flags):
            known = _values(option, rules)
            lines += [f"{start} -a {_quoted(' '.join(known))}"] if known else []
            lines += [f"{start} -F"] if option.value in FILES else []
        for option in (_HELP, *(option for option in options_of(verb) if option.flags)):
            flags = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags)
            known = _values(option, rules)
            value = " -r -F" if option.value in FILES else f" -x -a {_quoted(' '.join(known))}" if known else " -x"
            text = option.help.partition("(")[0].partition("%")[0].strip(" :")
            lines.append(f"{start} {flags}{value if option.takes_value else ''} -d {_quoted(text)}")
    return "\n".join(lines) + "\n"


def _values(option: Option, rules: Sequence[str]) -> Sequence[str]:
    """The values that ``option`` accepts; empty: a file, or free text."""
    is_rule = option.value == "RULE" or (option.usage == "name NAME" and option.where == "rule")
    return rules if is_rule else tuple(option.kind.get("choices", ()))


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
