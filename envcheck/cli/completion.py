"""Completion scripts for bash, zsh and fish, written from the table of options."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from envcheck.config.options import FILES, VERBS, Option, options_of, verbs_below

_HELP = Option("-h --help", "", "show this help message and exit")


def bash(rules: Mapping[str, str]) -> str:
    """The script; ``rules`` are the values of what asks for the name of a rule, with their titles."""
    return _script(_BASH, rules, lambda words: _quoted(" ".join(words)))


def zsh(rules: Mapping[str, str]) -> str:
    """The script for zsh, to be sourced after ``compinit``, or to lie in a folder of ``fpath`` as ``_envcheck``."""

    def offered(words: Mapping[str, str]) -> str:
        return f"({' '.join(_quoted(f'{word}:{text}' if text else word) for word, text in words.items())})"

    return _script(_ZSH, rules, offered)


def _script(template: str, rules: Mapping[str, str], offered: Callable[[Mapping[str, str]], str]) -> str:
    """``template`` with what it offers behind each verb, and behind each option that takes a value."""
    cases, values, verbs = [], [], []
    for name in (verb.name for verb in VERBS):
        verbs += [f"'{name}'"] if name else []
        words = {below: verb.help for below, verb in verbs_below(name).items()}
        files = ""
        for option in (_HELP, *options_of(name)):
            where = " files=1" if option.value in FILES else ""
            if not option.flags:
                words |= _values(option, rules)
                files = files or where
                continue
            words |= dict.fromkeys(option.flags, _short(option))
            if option.takes_value:
                place = "|".join(f"'{name} {flag}'" for flag in option.flags)
                values.append(f"    {place}) offered={offered(_values(option, rules))}{where} ;;")
        cases.append(f"    '{name}') offered={offered(words)}{files} ;;")
    return template.format(verbs="|".join(verbs), cases="\n".join(cases), values="\n".join(values))


def fish(rules: Mapping[str, str]) -> str:
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
            lines.append(f"{start} {flags}{value if option.takes_value else ''} -d {_quoted(_short(option))}")
    return "\n".join(lines) + "\n"


def _values(option: Option, rules: Mapping[str, str]) -> Mapping[str, str]:
    """The values that ``option`` accepts, with what they mean; empty: a file, or free text."""
    is_rule = option.value == "RULE" or (option.usage == "name NAME" and option.where == "rule")
    return rules if is_rule else dict.fromkeys(option.kind.get("choices", ()), "")


def _short(option: Option) -> str:
    return option.help.partition("(")[0].partition("%")[0].strip(" :")


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

_ZSH = """\
#compdef envcheck gpu-envcheck
_envcheck() {{
  local word verb='' files=''
  local -a offered
  for word in "${{(@)words[2,CURRENT-1]}}"; do
    case "${{verb:+$verb }}$word" in
      {verbs}) verb="${{verb:+$verb }}$word" ;;
    esac
  done
  case "${{verb:+$verb }}${{words[CURRENT-1]}}" in
{values}
    *)
    case "$verb" in
{cases}
    esac ;;
  esac
  (( $#offered )) && _describe envcheck offered
  if [[ -n $files ]]; then
    _files
  fi
}}
if [[ $funcstack[1] == _envcheck ]]; then
  _envcheck "$@"
else
  compdef _envcheck envcheck gpu-envcheck
fi
"""
