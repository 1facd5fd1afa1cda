"""Numbers in pasted text and in plans: longer than Python converts (4300 digits), or digits that are no number."""

from __future__ import annotations

from pathlib import Path

from envcheck.importers import read_text
from envcheck.pipeline.request import Request
from envcheck.pipeline.session import judge
from tests.plans.reading import plan

LONG = "9" * 5000
LOCK = (
    'version = 1\n[[package]]\nname = "torch"\nversion = "{}"\nsource = {{ registry = "https://x.example/simple" }}\n'
)


def test_a_version_of_cudnn_that_is_no_number() -> None:
    text = "Loaded runtime CuDNN library: 8.0.5 but source was compiled with: \u00b2.  CuDNN library needs to match\n"
    assert judge(read_text(text), Request()).verdict in ("fail", "unknown")


def test_a_version_in_a_lock_file(tmp_path: Path) -> None:
    (found,) = plan(tmp_path, uv__lock=LOCK.format(LONG)).planned or ()
    assert (found.name, found.problem) == ("", "a version cannot be read")
