"""Remedies: the rows for kinds of reports, with the words of the text; and no fix holds a placeholder."""

import importlib
import re
import sys
from pathlib import Path

import pytest

from envcheck.importers import read_text
from envcheck.knowledge.load import load_matrix
from envcheck.model.checks import Check, Fix, Report
from envcheck.pipeline.session import Request, judge
from envcheck.rules.api import Facts
from envcheck.rules.catalog import all_rules
from envcheck.rules.fixes.remedies import remedy_of
from tests.documents import texts
from tests.every import cases, every
from tests.known import known

toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
_FILE = Path(__file__).parents[3] / "matrix" / "remedies.toml"
MATRIX = load_matrix()
EXAMPLES = {row["name"]: row["examples"] for row in toml.loads(_FILE.read_text(encoding="utf-8"))["remedy"]}
PLACEHOLDER = re.compile(
    r"…|\{\w+\}|<[a-z][\w -]{0,30}>|/path/to\b|(?<![\w=./-])(?:NAME|PACKAGE|IMAGE|PORT|NNN|VERSION|FILE)\b(?!=)"
)
"""What somebody would have to replace before a command runs."""


def explained(text: str) -> Report:
    return judge(read_text(text), Request())


def placeholders(fix: Fix) -> list[str]:
    return PLACEHOLDER.findall(" ".join((fix.text, *fix.command)))


def remedied(text: str, name: str) -> Check | None:
    """The check that has the fixes of a row."""
    row = next(row for row in MATRIX.remedies if row.name == name)
    cited = MATRIX.cite(row)
    found = (check for check in explained(text).checks if check.rule in row.problems and check.fixes)
    titled = (check for check in found if not row.title or check.title == row.title)
    return next((check for check in titled if check.sources[: len(cited)] == cited), None)


@every(lambda: [(name, text) for name, texts in EXAMPLES.items() for text in texts])
def test_a_remedy_is_offered_for_its_examples(name: str, text: str) -> None:
    check = known(remedied(text, name))
    assert not any(map(placeholders, check.fixes)), check.fixes


def test_every_remedy_has_an_example_and_is_for_rules_that_exist() -> None:
    names = {rule.name for rule in all_rules()}
    assert EXAMPLES.keys() == {row.name for row in MATRIX.remedies}
    assert [row.name for row in MATRIX.remedies if not {*row.problems} <= names] == []


def test_no_fix_of_a_row_or_rule_holds_a_placeholder() -> None:
    facts = Facts(read_text("torch 2.6.0"), MATRIX)
    fixes = [fix for rule in all_rules() for fix in rule.remedies(facts)]
    assert len(fixes) > 100
    assert [fix.text for fix in fixes if placeholders(fix)] == []


@cases(
    "line, fixes",
    ("Installed CUDA version 12.0 does not match the version torch was compiled with 11.8", 3),
    ("Installed CUDA version 12.0 does not match the version torch was compiled with $(id)", 0),
)
def test_a_fix_without_its_words_is_not_offered(line: str, fixes: int) -> None:
    found = remedy_of("toolkit-differs-from-build", (), Facts(read_text(line), MATRIX))
    assert len(found.fixes if found else ()) == fixes


@cases("package, offered", ("dgl==2.1.0+cu121", "data.dgl.ai/wheels/torch-2.4/cu121"), ("dgl==2.1.0", "dgl==1.1.3"))
def test_a_build_for_cuda_is_not_replaced_by_that_of_another_index(package: str, offered: str) -> None:
    line = "Cannot find DGL C++ graphbolt library at /v/dgl/graphbolt/libgraphbolt_pytorch_2.4.0.so"
    report = explained(f"FileNotFoundError: {line}\ntorch==2.4.0+cu121\n{package}\nUbuntu 22.04")
    (found,) = (check for check in report.checks if check.rule == "extension-built-for-other-torch")
    assert offered in " ".join(found.fixes[0].command)


@cases("package, offered", ("vllm", 1), ("nobodys_package_of_this_name", 0))
def test_a_package_is_installed_only_if_an_index_has_it(package: str, offered: int) -> None:
    text = f"No module named '{package}._C'\nFile \"/home/u/{package}/{package}/__init__.py\", line 8"
    fixes = known(remedied(text, "source-folder-of-extension")).fixes
    assert [fix.command for fix in fixes].count(("python", "-m", "pip", "install", package)) == offered


@cases("more, named", ("", "flash-attn"), ("\ntorch==2.6.0\nflash-attn==2.8.0.post2", "flash-attn==2.8.0.post2"))
def test_a_release_that_the_text_names_is_compiled_again_with_what_forces_it(more: str, named: str) -> None:
    line = "ImportError: /v/flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so: undefined symbol: _ZN3c105Error"
    (fix,) = known(remedied(line + more, "ready-wheel-of-flash-attention")).fixes
    assert "FLASH_ATTENTION_FORCE_BUILD=TRUE" in fix.command
    assert fix.command[-3 if more else -1] == named


@pytest.mark.parametrize("error", ["out of memory", "CUDA out of memory. Tried to allocate 2.00 GiB"])
def test_what_a_program_asks_too_much_of_is_no_fault_of_the_environment(error: str) -> None:
    report = explained(f"torch.OutOfMemoryError: {error}\ntorch 2.5.1+cu124, RTX 4090, driver 550.54")
    (warned,) = [check for check in report.checks if check.rule == "gpu-memory-exhausted"]
    assert (report.verdict, warned.status) == ("warn", "warn")
    assert "environment is not the cause" in warned.message
    assert warned.fixes


def test_all_wheels_that_write_over_each_other_are_removed_before_the_right_ones_are_installed() -> None:
    text = "ImportError: libcudnn.so.9: cannot open shared object file\ntorch==2.9.1+cu128\n"
    wheels = [f"nvidia-{each}" for each in ("cudnn-cu12==9.10.2.21", "cudnn-cu13==9.13.0.50", "nccl-cu12==2.27.5")]
    report = explained("\n".join((text, *wheels, "nvidia-nccl-cu13==2.27.7")))
    assert report.primary == "nvidia-wheel-conflict"
    removed, wanted = report.fix
    assert {line.partition("==")[0] for line in wheels} <= {*removed.command}
    assert wanted.command[-2:] == ("nvidia-cudnn-cu12==9.10.2.21", "nvidia-nccl-cu12==2.27.5")
    assert wanted.continues


@cases("more, problem", ("nvidia-cudnn-cu12==9.1.0.70\n", "library-not-found"), ("", "cudnn-missing"))
def test_a_library_whose_wheel_is_listed_is_not_found_and_not_missing(more: str, problem: str) -> None:
    line = "Could not load library libcudnn.so.9: cannot open shared object file"
    report = explained(f"{line}\n{more}torch==2.4.0+cu121")
    assert report.primary == problem
    (check,) = [check for check in report.checks if check.rule == problem]
    assert ("nvidia-cudnn-cu12==9.1.0.70 is installed" in check.fixes[0].text) is (problem == "library-not-found")


def test_a_wheel_is_offered_only_where_an_index_has_it() -> None:
    for torch, major, offered in (("1.12.1+cu102", 7, False), ("2.3.0+cu121", 8, True), ("2.5.1+cu124", 8, False)):
        line = f"Could not load library libcudnn.so.{major}: cannot open shared object file"
        checks = explained(f"{line}\ntorch=={torch}").checks
        words = {word for check in checks for fix in check.fixes for word in fix.command}
        assert any(word.startswith("nvidia-cudnn-cu") for word in words) is offered, torch
        assert not any(word.startswith("nvidia-cudnn-cu10") for word in words)


@cases("torch, vision", ("2.5.1+cpu", "0.20.1+cpu"), ("2.5.1+cu121", "0.20.1+cu121"))
def test_the_family_is_installed_with_the_label_of_its_build(torch: str, vision: str) -> None:
    text = f"RuntimeError: operator torchvision::nms does not exist\ntorch=={torch}\ntorchvision==0.20.1"
    commands = [fix.command for check in explained(text).checks for fix in check.fixes]
    assert any(f"torchvision=={vision}" in command for command in commands), commands


_FOLLOWED = (Path(__file__).with_name("data") / "followed.txt").read_text(encoding="utf-8")


@every(texts(_FOLLOWED))
def test_a_fix_that_would_not_work_is_not_printed(why: str, expected: str, text: str) -> None:
    printed, left_out = expected.split(" | ")
    fixes = [fix for check in explained(text).checks for fix in check.fixes]
    written = "\n".join(f"{fix.text} {' '.join(fix.command)} {fix.risk}" for fix in fixes)
    assert printed in written
    assert left_out not in written
