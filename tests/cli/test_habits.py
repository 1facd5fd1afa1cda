"""Habits of the command line: examples, suggestions for misspelled names, pages of rules, completion."""

import json
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from envcheck.cli import completion
from envcheck.cli.parser import parse
from envcheck.config.options import VERBS
from tests.cli.calling import envcheck
from tests.every import cases, tabled

RULES = {"driver-too-old": "The driver is too old", "cudnn-missing": "cuDNN is missing"}


def test_every_help_page_ends_with_examples() -> None:
    assert all(verb.examples for verb in VERBS)


@pytest.mark.parametrize("line", [line for verb in VERBS for line in verb.examples])
def test_the_examples_parse(line: str) -> None:
    words = shlex.split((line.partition("| ")[2] or line).partition(" > ")[0])
    assert words[0] == "envcheck"
    parse(words[1:], {})


def test_help_shows_the_examples_and_the_exit_status(tmp_path: Path) -> None:
    out = envcheck("diff", "--help", cwd=tmp_path).out
    assert "examples:\n  envcheck diff before.json after.json\n" in out
    assert "Exit status: 0 no difference in what both reports know" in out


def test_the_short_option_prints_the_versions(tmp_path: Path) -> None:
    assert envcheck("-V", cwd=tmp_path).out == envcheck("--version", cwd=tmp_path).out != ""


@tabled
def test_a_misspelled_name_gets_a_suggestion(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    result = envcheck(*arguments, cwd=tmp_path)
    assert result.status == 2
    assert words in result.err


def test_a_misspelled_component_gets_a_suggestion(tmp_path: Path) -> None:
    for name, near in (("troch", "torch"), ("drivr==550", "driver"), ("vlm==0.8", "vllm")):
        result = envcheck("matrix", "show", name, cwd=tmp_path)
        assert (result.status, result.out) == (3, f"The matrix knows nothing about {name}: did you mean {near!r}?\n")
    assert envcheck("matrix", "show", "zzzzqqqq", cwd=tmp_path).out == "The matrix knows nothing about zzzzqqqq.\n"
    machine = "gpu==H100,driver==550.54.14,os==linux"
    required = envcheck("check", "--assume", machine, "--require", "troch>=2.4", "--json", cwd=tmp_path)
    assert "troch>=2.4 is required; found none: did you mean 'torch'?" in required.out
    assumed = envcheck("check", "--assume", f"{machine},troch==2.4", "--json", cwd=tmp_path)
    assert "of this name: did you mean 'torch'?" in assumed.out
    own = envcheck("check", "--assume", machine, "--require", "our-own-package>=1", "--json", cwd=tmp_path)
    assert "did you mean" not in own.out


def test_rules_are_searched_by_a_word(tmp_path: Path) -> None:
    out = envcheck("rule", "CUDNN", cwd=tmp_path).out
    assert "cudnn-missing" in out
    assert "driver-too-old" not in out


def test_a_rule_in_json_and_markdown(tmp_path: Path) -> None:
    (rule,) = json.loads(envcheck("rule", "driver-too-old", "--format", "json", cwd=tmp_path).out)
    assert (rule["name"], rule["required"]) == ("driver-too-old", True)
    page, _, place = envcheck("rule", "driver-too-old", cwd=tmp_path).out.partition("\nThis page")
    assert (rule["documentation"], rule["page"], rule["address"]) == (page, "rules/driver-too-old.html", None)
    assert place == " in the documentation: rules/driver-too-old.html (ENVCHECK_DOCS_URL says where yours is hosted)\n"
    text = envcheck("rule", "driver-too-old", "--format", "markdown", cwd=tmp_path).out
    assert text.startswith("# `driver-too-old`\n\n")
    assert [line for line in text.splitlines() if line.startswith("## ")][-1] == "## Sources"
    assert all(f"- [{source['title']}]({source['address']})" in text for source in rule["sources"])
    assert len(json.loads(envcheck("rule", "--format", "json", cwd=tmp_path).out)) > 50


@tabled
def test_bash_completes(tmp_path: Path, line: str, offered: set[str], not_offered: set[str]) -> None:
    (tmp_path / "saved.json").touch()
    (tmp_path / "complete.bash").write_text(completion.bash(RULES))
    words = [*line.split(), ""] if line.endswith(" ") else line.split()
    script = (
        f"source ./complete.bash; COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}; _envcheck; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-uc", script], cwd=tmp_path, capture_output=True, check=True, timeout=60)
    found = set(done.stdout.decode().split())
    assert offered <= found
    assert found.isdisjoint(not_offered)


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
@tabled
def test_zsh_completes_with_descriptions(tmp_path: Path, line: str, offered: set[str], not_offered: set[str]) -> None:
    (tmp_path / "saved.json").touch()
    (tmp_path / "complete.zsh").write_text(completion.zsh(RULES))
    words = [*line.split(), ""]
    script = (
        "compdef() { :; }; _describe() { print -l -- ${(P)2}; }; _files() { print -l -- *; }; source ./complete.zsh; "
        f"words=({shlex.join(words)}); CURRENT={len(words)}; _envcheck"
    )
    done = subprocess.run(["zsh", "-fc", script], cwd=tmp_path, capture_output=True, check=True, timeout=60)
    found = done.stdout.decode().splitlines()
    assert all(any(line == word or line.startswith(f"{word}:") for line in found) for word in offered)
    assert {line.partition(":")[0] for line in found}.isdisjoint(not_offered)


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
@tabled
def test_fish_completes(tmp_path: Path, line: str, offered: set[str], not_offered: set[str]) -> None:
    (tmp_path / "complete.fish").write_text(completion.fish(RULES))
    script = f"source complete.fish; complete -C '{line}'"
    done = subprocess.run(
        ["fish", "--no-config", "-c", script], cwd=tmp_path, capture_output=True, check=True, timeout=60
    )
    found = {row.partition("\t")[0] for row in done.stdout.decode().splitlines()}
    assert offered <= found
    assert found.isdisjoint(not_offered)


@cases("shell", "bash", "zsh", "fish")
def test_the_scripts_are_syntax_of_their_shells(tmp_path: Path, shell: str) -> None:
    result = envcheck("completion", shell, cwd=tmp_path)
    assert result.status == 0
    assert "driver-too-old" in result.out
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed: its syntax was not checked")
    script = tmp_path / "script"
    script.write_text(result.out)
    subprocess.run([shell, "-n", script], check=True, timeout=60)
