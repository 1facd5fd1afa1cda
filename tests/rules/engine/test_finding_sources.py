"""Every finding cites a page that documents it, of its own framework, whoever makes the finding."""

import importlib
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pytest

from envcheck.knowledge.load import load_matrix
from envcheck.model.checks import Check
from envcheck.model.snapshot import Environment, Framework, Snapshot, StartupVariable
from envcheck.rules.api import elsewhere
from envcheck.rules.catalog import all_rules, find_rule
from envcheck.rules.engine.evaluate import pages, pages_about
from tests.every import tabled
from tests.known import known
from tests.rules.engine.test_rule_catalog import NAMES, RULES
from tests.rules.machines import error, h200, judge, machine, torch, variables, venv, with_venv
from tests.rules.messages.examples import pairs
from tests.rules.packages.test_rules_distributions import environment, wheel
from tests.rules.speed.measurements import conditions, gemm, memory_copy, to_gpu, to_peer, wrong
from tests.rules.speed.test_rules_frameworks import on_cpu, slow_and_failed_framework
from tests.rules.speed.test_rules_libraries import convolution, on_processor, refused
from tests.rules.speed.test_rules_speed import measured, run
from tests.rules.speed.test_straggler import with_gpus
from tests.rules.test_whole_machines import BROKEN, HEALTHY

TESTS = Path(__file__).parents[1]
MODULES = [
    importlib.import_module(".".join(("tests", "rules", *path.relative_to(TESTS).with_suffix("").parts)))
    for path in sorted(TESTS.rglob("test_*.py"))
    if path != Path(__file__) and "page_examples" not in path.read_text(encoding="utf-8")
]
"""The tests of rules, whose tables hold machines and environments."""
FINDS_NOTHING = {
    "environment-unreadable", "gpu-not-measured", "machine-unreadable", "text-not-read-whole",
    "text-tells-too-little", "trial-unfinished",
}  # fmt: skip
"""What says only that something is not known."""


def measured_machines() -> Iterator[Snapshot]:
    yield measured(memory_copy(1e12), gemm(value=1e14), to_gpu(1e9), to_peer(1e10), gemm("fp8", verification=wrong()))
    yield measured(convolution(value=100e12), refused(), on_processor(verification=wrong()))
    yield measured(gemm(value=500e12, conditions=conditions(throttle={"sw_thermal_slowdown": 1.0})))
    yield slow_and_failed_framework()
    yield on_cpu()
    yield with_gpus(4, 820e12, 815e12, 700e12, 830e12)
    yield measured(memory_copy(4.0e12), baseline=(memory_copy(4.3e12),))
    two = with_gpus(2, 820e12, 815e12)
    yield msgspec.structs.replace(two, baseline=two.measurements[:1])
    yield measured(memory_copy(), runs=(run("timed-out", "timed out after 60 s", gpu=h200().uuid),))


def machines_in(cases: Any) -> Iterator[Snapshot]:
    """The machines in the cases of a test; an environment is that of a healthy one."""
    if isinstance(cases, Snapshot | Environment):
        yield cases if isinstance(cases, Snapshot) else with_venv(machine(), cases)
    elif isinstance(cases, list | tuple):
        yield from chain.from_iterable(map(machines_in, cases))


def every_machine() -> Iterator[Snapshot]:
    yield from HEALTHY.values()
    yield from (snapshot for snapshot, _ in BROKEN.values())
    for test in chain.from_iterable(vars(module).values() for module in MODULES):
        marks = (mark.args[1] for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize")
        yield from machines_in([*marks, getattr(test, "cases", ())])
    yield from measured_machines()
    yield machine(variables=variables(LD_LIBRARY_PATH="/a:"))
    hidden = StartupVariable(source="file z.pth", path="z.pth", name="CUDA_VISIBLE_DEVICES", value="")
    yield with_venv(machine(), venv(torch(), startup_variables=(hidden,)))
    yield with_venv(machine(), environment(wheel("torch", "2.4.0"), wheel("torch", "2.5.1")))
    yield from (error(line) for _, line in pairs())


@cache
def what_machines_show() -> list[tuple[Check, Snapshot]]:
    """Every check of every machine that did not just pass. Judged once: the examples of pages are of the same."""
    checks = ((check, snapshot) for snapshot in every_machine() for check in judge(snapshot))
    return [(check, snapshot) for check, snapshot in checks if check.status not in ("pass", "skipped")]


def test_every_finding_cites_a_page_that_documents_it() -> None:
    found = [check for check, _ in what_machines_show() if check.status in ("fail", "warn", "note")]
    without = {
        check.rule for check in found if not any(source.address.startswith("https://") for source in check.sources)
    }
    assert without == set()
    assert all(source.title for check in found for source in check.sources)
    seen = {check.rule for check in found}
    made_elsewhere = {rule.name for rule in RULES if rule.arises is elsewhere}
    assert seen == NAMES - FINDS_NOTHING - made_elsewhere, "a rule without a finding in these tests would go unseen"


# --- A finding about a framework cites no other framework's documentation -------------------------------------------
FRAMEWORKS = ("torch", "tensorflow", "jax", "jax-cuda12-plugin", "onnxruntime-gpu", "cupy-cuda12x", "numba-cuda")
SITES = {
    "torch": "pytorch", "tensorflow": "tensorflow.org", "jax": "jax.dev", "onnxruntime": "onnxruntime.ai",
    "cupy": "docs.cupy.dev",
}  # fmt: skip
"""Where the pages of each lie, by how its distributions begin."""


def cited(rule: str, name: str, extends: str | None = None) -> list[str]:
    framework = Framework(source="elf", name=name, extends=extends)
    found = known(find_rule(rule))
    return [each.address for each in pages(found, framework, load_matrix())]


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_no_page_of_another_framework(name: str) -> None:
    others = [site for start, site in SITES.items() if not name.startswith(start)]
    for rule in [rule for rule in all_rules() if rule.per == "framework" and rule.sources]:
        addresses = cited(rule.name, name)
        assert addresses
        assert [address for address in addresses if any(site in address for site in others)] == [], rule.name


@tabled
def test_the_framework_keeps_its_own(rule: str, name: str, page: str) -> None:
    assert page in cited(rule, name)


def test_an_extension_keeps_the_pages_of_what_it_extends() -> None:
    addresses = cited("extension-built-for-other-torch", "flash-attn", extends="torch")
    assert any("cpp_extension" in address for address in addresses)
    assert any("flash-attention" in address for address in addresses)
    assert not any("xformers" in address for address in addresses)


def test_of_the_machine_all_pages_stay() -> None:
    rule = known(find_rule("gpu-memory-exhausted"))
    assert pages(rule, machine(), load_matrix()) == rule.sources


def test_of_an_unknown_framework_the_pages_stay() -> None:
    framework = Framework(source="elf", name="unheard-of")
    rule = known(find_rule("cpu-only-build"))
    assert pages(rule, framework, load_matrix())


@tabled
def test_of_a_program_that_a_line_names_its_own_page_stands_first(program: str, place: str) -> None:
    rule = known(find_rule("cpu-only-build"))
    found = [each.address for each in pages_about(rule, program, load_matrix())]
    assert len(found) == 1
    assert place in found[0]
