"""The table of options: it is sound, and an entry is all that a new option needs."""

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from envcheck.cli.parser import grammar
from envcheck.config.options import OPTIONS, VERBS, options_of
from tests.every import cases
from tests.installed import ROOT

ADDED = """\
    Option(
        "--root DIR",
        "check: what to check",
        "look below this folder",
        key="Where to look.",
        excludes="--all-envs",
        because="{} looks everywhere, and --root below one folder",
    ),
    Option("--flag", "check: what to check", "a flag", key="A flag."),
"""
WITH_IT = """
import importlib.util, json, os, sys
from pathlib import Path

spec = importlib.util.find_spec("envcheck.config.options")
module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
source = Path(spec.origin).read_text().replace("OPTIONS = (\\n", "OPTIONS = (\\n" + sys.argv[1])
exec(compile(source, spec.origin, "exec"), module.__dict__)

from envcheck.cli import completion
from envcheck.cli.parser import grammar, parse
from envcheck.cli.parser import configured
from envcheck.cli.request import judging_request
from envcheck.config.read import schema
from envcheck.errors import UsageError
from scripts.documentation import man_page

def root_of(words, variables):
    options = configured(parse(["check", *words], variables), ["check", *words], variables)
    return judging_request(options).root

def refused(words):
    try:
        parse(["check", *words], {})
    except UsageError as error:
        return str(error)

variables = {"ENVCHECK_" + "ROOT": "/variable"}  # in two, as no option of this name exists
Path("envcheck.toml").write_text("root = '/key'\\nflag = true\\n")
print(json.dumps({
    "given": root_of(["--root", "/given"], variables),
    "variable": root_of([], variables),
    "key": root_of([], {}),
    "flags": [configured(parse(words, {}), words, {}).flag for words in (["check"], ["check", "--no-config"])],
    "none": root_of(["--no-config"], {}),
    "empty": refused(["--root", ""]),
    "misspelt": refused(["--rot", "/given"]),
    "conflict": refused(["--root", "/given", "--all-envs"]),
    "help": "--root DIR" in grammar()._subparsers._group_actions[0].choices["check"].format_help(),
    "schema": schema()["$defs"]["Config"]["properties"]["root"]["description"],
    "completion": ["--root" in write({}) or "-l root" in write({}) for write in (completion.bash, completion.zsh)],
    "fish": "-l root -r -F -d 'look below this folder'" in completion.fish({}),
    "man": "look below this folder" in man_page(),
}))
"""


@cases("verb", *(verb.name.partition(" ")[0] for verb in VERBS if verb.name))
def test_a_verb_is_described_alike_by_itself_and_among_all(verb: str) -> None:
    def pages(parser: argparse.ArgumentParser) -> dict[str, str]:
        below = [each for action in parser._actions if isinstance(action.choices, dict) for each in [action.choices]]
        found = {parser.prog: parser.format_help()}
        return found | {name: page for each in below for one in each.values() for name, page in pages(one).items()}

    own, every = pages(grammar(first=verb)), pages(grammar())
    command = f"envcheck {verb}"
    assert {name for name in own if name != "envcheck"} == {
        name for name in every if f"{name} ".startswith(f"{command} ")
    }
    assert all(every[name] == page for name, page in own.items() if name != "envcheck")


def test_an_entry_is_all_that_an_option_needs(tmp_path: Path) -> None:
    """Parser, variable, key, Request, suggestions, conflicts, help, schema, completions and man page know it then."""
    ran = subprocess.run(
        [sys.executable, "-c", WITH_IT, ADDED], cwd=tmp_path, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {
        "given": "/given", "variable": "/variable", "key": "/key", "flags": [True, False], "none": "/",
        "empty": "argument --root: an empty path; see envcheck check --help",
        "misspelt": "envcheck check has no option --rot: did you mean '--root'?; see envcheck check --help",
        "conflict": "--all-envs looks everywhere, and --root below one folder", "help": True,
        "schema": "Where to look.", "completion": [True, True], "fish": True, "man": True,
    }  # fmt: skip


def test_the_table_names_verbs_and_options_that_exist() -> None:
    names = {verb.name for verb in VERBS}
    assert set(Counter(option.name for option in OPTIONS if option.key).values()) == {1}
    for option in OPTIONS:
        assert {verb for verb, _ in option.places} <= names, option.usage
        assert bool(option.excludes) == bool(option.because), option.usage
        beside = [{flag for each in options_of(verb) for flag in each.flags} for verb, _ in option.places]
        assert all({*option.excludes.split()} <= flags for flags in beside), option.usage
        assert not option.needs or any({*option.needs.split()} <= flags for flags in beside), option.usage
    for verb in names:
        flags = Counter(flag for option in options_of(verb) for flag in option.flags)
        assert set(flags.values()) <= {1}, verb
