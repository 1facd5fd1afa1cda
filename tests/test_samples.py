"""Every sample in README.md and docs/ is what is printed now: commands run, pages of recorded machines are rendered.

A line that begins with ``$`` is a command whose output stands below it. ``ENVCHECK_WRITE_SAMPLES=1 pytest
tests/test_samples.py`` writes the output of commands again.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

import envcheck
from envcheck.cli.parser import parse
from envcheck.config.find import find
from envcheck.model.checks import Report
from envcheck.model.snapshot import Snapshot
from envcheck.pipeline.session import Request, judge
from envcheck.report import Options, render
from tests.installed import INSTALLED, ROOT
from tests.known import known

PAGES = [ROOT / "README.md", *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent.name != "rules")]
_RUN = re.compile(r"(?m)^ {4}\$ (.+)\n((?: {4}(?!\$ ).*\n|\n(?= {4}(?!\$ )))*)")
_COMMAND = re.compile(r"(?m)^ {4,}(?:\$ )?(?:echo .*\| )?(envcheck(?: .*?)?)(?: {2,}#.*)?$")
_FIRST_LINE = re.compile(r"(?:PASS|WARN|FAIL|UNKNOWN|COMPATIBLE|INCOMPATIBLE|::\w+|GPU \d) ?.*|\{\".*")


def recorded(name: str, request: Request | None = None) -> Report:
    """The report about a machine of ``tests/machines``."""
    found = msgspec.json.decode((ROOT / "tests" / "machines" / f"{name}.json").read_bytes())
    return judge(msgspec.convert(found["snapshot"], Snapshot), request or Request())


def speed(report: Report) -> str:
    """The table of figures alone."""
    return "GPU 0" + render(report, "speed", Options()).partition("\nGPU 0")[2].partition("\n\n")[0] + "\n"


RECORDED: dict[str, Callable[[], str]] = {
    "figures.md": lambda: speed(recorded("h100-tried-and-measured")),
}
"""The block of a recorded machine that each page shows."""


def blocks(page: str) -> list[str]:
    """What stands in code blocks, indented by four columns or between fences."""
    indented = re.findall(r"(?m)^ {4}.*\n(?:^ {4}.*\n|^\n(?= {4}))*", page)
    return [re.sub(r"(?m)^ {4}", "", block) for block in indented] + re.findall(r"(?ms)^```\w*\n(.*?)^```$", page)


def with_output(page: str, folder: Path) -> str:
    """``page`` with what each command prints, run one after the other in ``folder``."""
    programs = folder / "programs"
    programs.mkdir()
    (programs / "envcheck").write_text(f'#!/bin/sh\nexec {sys.executable} -m envcheck "$@"\n')
    (programs / "envcheck").chmod(0o755)
    variables = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(folder), "PYTHONPATH": str(INSTALLED)}

    def run(found: re.Match[str]) -> str:
        done = subprocess.run(
            ["bash", "-c", found[1]], cwd=folder, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, check=False, timeout=120,
        )  # fmt: skip
        shown = "".join(f"    {line}".rstrip() + "\n" for line in done.stdout.rstrip("\n").splitlines())
        return f"    $ {found[1]}\n{shown}"

    return _RUN.sub(run, page)


@pytest.mark.parametrize("page", [page for page in PAGES if _RUN.search(page.read_text())], ids=lambda page: page.stem)
def test_commands_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if "jq" in text and shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    now = with_output(text, tmp_path)
    if os.environ.get("ENVCHECK_WRITE_SAMPLES"):
        page.write_text(now, encoding="utf-8")
    assert now == page.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", RECORDED)
def test_pages_of_recorded_machines_are_what_is_printed(name: str) -> None:
    (page,) = (page for page in PAGES if page.name == name and page.parent in (ROOT, ROOT / "docs"))
    assert RECORDED[name]() in blocks(page.read_text(encoding="utf-8"))


def test_no_sample_stands_outside_these_tests() -> None:
    known = {shown() for shown in RECORDED.values()}
    texts = {page.name: _RUN.sub("", page.read_text(encoding="utf-8")) for page in PAGES}
    samples = [(name, block) for name, text in texts.items() for block in blocks(text)]
    assert [each for each in samples if _FIRST_LINE.match(each[1]) and each[1] not in known] == []


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every line of the pages that calls envcheck, without what comes behind a pipe."""
    for page in PAGES:
        for line in _COMMAND.findall(page.read_text(encoding="utf-8")):
            words = shlex.split(line.replace("…", ""))
            end = min((words.index(mark) for mark in ("|", "<", ">") if mark in words), default=len(words))
            yield page.name, words[1:end]


def test_every_command_is_one_that_the_parser_takes() -> None:
    found = list(commands())
    assert len(found) > 25
    for _, words in found:
        parse(words, {})


def test_the_pictures_are_those_that_a_test_draws() -> None:
    shown = {name for page in PAGES for name in re.findall(r"!\[[^]]*\]\(\S*?([\w-]+)\.svg\)", page.read_text())}
    assert shown == {file.stem for file in (ROOT / "docs" / "screens").iterdir()}


def test_the_configuration_of_the_page_is_one(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("\n".join(re.findall(r"(?ms)^```toml\n(.*?)^```$", CONFIGURATION)))
    found = find(str(tmp_path))
    assert list(known(found).config.target or ()) == ["cluster"]


CONFIGURATION = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")


def test_the_program_of_the_page_runs_as_it_says() -> None:
    (program,) = re.findall(r"(?ms)^```python\n(.*?)^```$", (ROOT / "docs" / "python.md").read_text(encoding="utf-8"))
    with pytest.raises(envcheck.RequirementNotMet):
        exec(program.replace("gpus>=8", "gpus>=80"), {})
    exec(re.sub(r"(?m)^envcheck\.require.*\n", "", program), {})
