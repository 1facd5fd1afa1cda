"""What programs need when they run, broken for real on a machine with a GPU: a program fails, envcheck names why, and
with its fix both are well again. Mounts are made in a private namespace.
"""

import json
import shutil
import subprocess
import sys

import pytest

from tests.every import cases
from tests.gpu.broken_variants import PRECONDITION, VARIANTS, Laboratory, Result, run

CHECK = [sys.executable, "-m", "envcheck"]


@pytest.fixture(scope="module")
def interpreter() -> str:
    for candidate in filter(None, (sys.executable, shutil.which("python3"))):
        if subprocess.run([candidate, "-c", "import torch, triton"], check=False, capture_output=True).returncode == 0:
            return candidate
    pytest.skip("no PyTorch with Triton here")


@pytest.fixture(scope="module")
def results(interpreter: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    if subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        pytest.skip("no private mount namespace can be made here")
    laboratory = Laboratory(interpreter, CHECK, None, deep=False, gpu=True)
    return {each.name: each for each in run(laboratory, PRECONDITION, 8, tmp_path_factory.mktemp("variants"))}


@cases("name", *(each.name for each in VARIANTS if each.family == PRECONDITION))
def test_it_is_named_and_mended(results: dict[str, Result], name: str) -> None:
    result = results[name]
    if result.skipped:
        pytest.skip(result.skipped)
    assert result.right_static, result.static
    if result.followed:
        assert not result.after["truth"], result.followed
        assert not result.after["named"], "the fix ends it"


def test_what_cannot_be_reached_is_the_cause(interpreter: str) -> None:
    """Under a limit of addresses cuInit says 'out of memory': the limit is the headline, and no memory is short."""
    limited = ["bash", "-c", 'ulimit -v 8388608; exec "$@"', "bash", *CHECK, "check", "--json", "--python", interpreter]
    report = json.loads(subprocess.run(limited, capture_output=True, text=True, check=False).stdout)
    assert report["verdict"] == "fail"
    open_failures = {each["rule"] for each in report["checks"] if each["status"] == "fail" and not each["explained_by"]}
    assert open_failures == {"limit-too-low"}, report["headline"]
