"""Rules by name: every problem that users meet has one, and a new one warns at first and is in the changelog."""

import re
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from envcheck import __version__
from envcheck.knowledge.load import load_matrix
from envcheck.rules.api import FIRST_RELEASE, Facts, Rule
from envcheck.rules.catalog import all_rules, find_rule
from envcheck.rules.engine import evaluate as engine
from envcheck.rules.engine.evaluate import evaluate
from scripts.rule_index import INDEX, ROOT, index
from tests.every import cases, every
from tests.rules.machines import h200, machine

CHANGELOG = (Path(__file__).parents[3] / "CHANGELOG.md").read_text()


def unnamed(changelog: str, rules: Iterable[Rule]) -> list[str]:
    """The rules that are not in the section of the release that brought them."""
    sections = {
        found[1]: found[0]
        for found in re.finditer(r"^## (\d+\.\d+)\.\d+.*?(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    }
    return [rule.name for rule in rules if f"`{rule.name}`" not in sections.get(rule.since, "")]


def test_the_changelog_names_the_rules_that_a_release_brought() -> None:
    assert unnamed(CHANGELOG, (rule for rule in all_rules() if rule.since != FIRST_RELEASE)) == []
    rule = msgspec.structs.replace(all_rules()[0], since="0.2")
    assert unnamed(CHANGELOG, [rule]) == [rule.name]
    text = f"# Changelog\n\n## 0.2.0\n\n- New rule: `{rule.name}`.\n\n## 0.1.0\n\n- First.\n"
    assert unnamed(text, [rule]) == []
    assert unnamed(text.replace("0.2.0", "0.3.0"), [rule]) == [rule.name]


def test_no_rule_comes_from_a_later_release() -> None:
    current = tuple(map(int, __version__.split(".")[:2]))
    assert [rule.name for rule in all_rules() if tuple(map(int, rule.since.split("."))) > current] == []


@cases("since, version, status, judged",
    ("0.2", "0.2.1", "warn", "fail"), ("0.2", "0.3.0", "fail", None), ("0.1", "0.1.0", "fail", None),
)  # fmt: skip
def test_a_new_rule_warns(
    since: str, version: str, status: str, judged: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "__version__", version)
    known = find_rule("uncorrected-ecc")
    assert known is not None
    rule = msgspec.structs.replace(known, since=since)
    broken = machine(h200(0, ecc__volatile_uncorrected=2))
    (check,) = (found for found in evaluate(Facts(broken, load_matrix()), [rule], frozenset({"node"})))
    assert (check.status, check.judged) == (status, judged)


# --- Every problem that users of GPU stacks meet has a rule of its name ---------------------------------------------
HAVE_RULES = {rule.name for rule in all_rules()}

PROBLEMS = {
    "driver and kernel": """
        driver-not-installed driver-not-loaded kernel-module-missing nouveau-loaded secure-boot-blocks-module
        driver-library-mismatch driver-too-old driver-older-than-toolkit gpu-unsupported-by-driver known-bad-release
        forward-compat-unsupported
    """,
    "GPU and fabric": """
        no-nvidia-gpu no-gpu-visible gpu-hidden gpu-lost gpu-firmware-timeout gpu-init-failed fabric-manager-not-running
        mig-without-instances mig-enumeration mig-permission peer-access-blocked pcie-link-degraded power-throttled
        thermal-throttled gpu-memory-exhausted uncorrected-ecc row-remap-pending row-remap-failed gpu-needs-reset
        nvlink-down persistence-mode-off
    """,
    "containers and platforms": """
        container-without-gpu container-toolkit-missing container-lost-gpu driver-libraries-in-image
        shared-memory-too-small wsl-libcuda-shadowed windows-gpu-unsupported jetpack-mismatch
        jetson-libraries-not-mounted
    """,
    "builds": """
        cpu-only-build gpu-code-missing gpu-feature-unsupported jit-compiler-too-old jit-compiler-missing
        toolkit-lacks-gpu toolkit-missing toolkit-differs-from-build
    """,
    "libraries": """
        cuda-major-mismatch cuda-library-missing library-not-found library-shadowed cuda-library-too-old
        stub-library-loaded nvjitlink-mismatch nvidia-wheel-conflict cudnn-missing cudnn-major-mismatch cudnn-too-old
        cudnn-mixed-copies tensorrt-missing tensorrt-mixed-versions tensorrt-engine-mismatch nccl-missing
        nccl-version-mismatch nccl-no-interface
    """,
    "packages": """
        torch-family-mismatch extension-built-for-other-torch extension-binary-missing onnxruntime-cpu-and-gpu
        cupy-multiple-packages jax-plugin-mismatch numpy-abi-mismatch glibc-too-old libstdcxx-too-old
        python-unsupported
    """,
}
"""Names of problems, by family."""

NAMED = [name for names in PROBLEMS.values() for name in names.split()]


def test_each_problem_is_listed_once() -> None:
    assert len(NAMED) == len(set(NAMED)) == 77


@every(NAMED)
def test_the_problem_has_a_rule(name: str) -> None:
    assert name in HAVE_RULES


# --- docs/rules.md is what its script would write now ---------------------------------------------------------------
def test_the_index_lists_every_rule_as_it_is() -> None:
    assert (ROOT / INDEX).read_text(encoding="utf-8") == index(), "run: python scripts/rule_index.py"
