"""A text that is too long to be read whole is never found to be in order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.calling import envcheck
from tests.importers.pasting import recorded

HEALTHY = recorded("h200_collect_env.txt")
STEPS = "".join(f"step {n}\n" for n in range(60_000))
ERROR = "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"
FORMS = ("json", "summary", "markdown", "html", "junit")


def explained(text: str, *options: str, tmp_path: Path) -> tuple[int, str]:
    (tmp_path / "log.txt").write_text(text)
    result = envcheck("explain", "log.txt", *options, cwd=tmp_path)
    return result.status, result.out


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the reports about a text with an error in its middle, which was read once."""
    folder = tmp_path_factory.mktemp("read")
    (folder / "log.txt").write_text(HEALTHY + STEPS + ERROR + STEPS)
    result = envcheck("explain", "log.txt", *(word for form in FORMS for word in ("-o", f"{form}:{form}")), cwd=folder)
    assert result.status == 3
    assert "[text-not-read-whole]" in result.out.splitlines()[0]
    assert "only the first and the last 50000 lines" in " ".join(result.out.split())
    return folder


def test_a_short_text_with_nothing_wrong_passes(tmp_path: Path) -> None:
    status, page = explained(HEALTHY, tmp_path=tmp_path)
    assert (status, page.partition(" ")[0]) == (0, "PASS")


@pytest.mark.parametrize(
    "options", [("--scope", "node"), ("--scope", "container"), ("--scope", "env"), ("--only", "driver-too-old")]
)
def test_an_error_in_the_middle_does_not_pass(options: tuple[str, str], read: Path) -> None:
    result = envcheck("check", "--from", "json", *options, cwd=read)
    assert result.status == 3
    assert "[text-not-read-whole]" in result.out.splitlines()[0]


def test_an_error_far_within_a_line_does_not_pass(tmp_path: Path) -> None:
    line = "step " * 2000 + ERROR.strip()
    status, page = explained(f"{HEALTHY}{line}\n{line}\n", tmp_path=tmp_path)
    assert status == 3
    number = HEALTHY.count("\n") + 1
    assert f"only the first 4000 characters of line {number} and of 1 more were read" in " ".join(page.split())


def test_an_error_far_within_a_log_as_one_string_counts(tmp_path: Path) -> None:
    status, page = explained(HEALTHY + json.dumps({"log": "step\n" * 2000 + ERROR}), tmp_path=tmp_path)
    assert (status, page.partition(" ")[0]) == (1, "FAIL")


@pytest.mark.parametrize("form", FORMS)
def test_every_format_says_so(form: str, read: Path) -> None:
    assert "text-not-read-whole" in (read / form).read_text()


def test_what_is_found_at_the_ends_still_counts(tmp_path: Path) -> None:
    status, page = explained(HEALTHY + STEPS + STEPS + ERROR, tmp_path=tmp_path)
    assert (status, page.partition(" ")[0]) == (1, "FAIL")
    assert "text-not-read-whole" in page


def test_more_than_can_be_taken_in_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with (tmp_path / "log.txt").open("wb") as file:
        file.truncate((64 << 20) + 1)
    for name in ("log.txt", "-"):
        result = envcheck("explain", name, cwd=tmp_path, stdin=b"\n" * ((64 << 20) + 1) if name == "-" else b"")
        assert (result.status, result.out) == (2, "")
        named = "stdin" if name == "-" else name
        assert result.err.startswith(f"envcheck: {named} has more than 64 MiB: keep the lines")
        assert result.err.count("\n") == 1
