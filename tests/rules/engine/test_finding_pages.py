"""A finding about a framework cites no other framework's documentation."""

from __future__ import annotations

import pytest

from envcheck.compat.load import load_matrix
from envcheck.rules.api import FrameworkSubject, Rule
from envcheck.rules.catalog import all_rules, find_rule
from envcheck.rules.engine.evaluate import pages, pages_about
from envcheck.snapshot import Framework
from tests.rules.machines import machine, venv

FRAMEWORKS = ("torch", "tensorflow", "jax", "jax-cuda12-plugin", "onnxruntime-gpu", "cupy-cuda12x", "numba-cuda")
SITES = {
    "torch": "pytorch",
    "tensorflow": "tensorflow.org",
    "jax": "jax.dev",
    "onnxruntime": "onnxruntime.ai",
    "cupy": "docs.cupy.dev",
}
"""Where the pages of each lie, by how its distributions begin."""


def cited(rule: str, name: str, extends: str | None = None) -> list[str]:
    framework = Framework(source="elf", name=name, extends=extends)
    found = find_rule(rule)
    assert found is not None
    return [each.address for each in pages(found, FrameworkSubject(venv(framework), framework), load_matrix())]


def rules_of_frameworks() -> list[Rule]:
    return [rule for rule in all_rules() if rule.per == "framework" and rule.sources]


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_no_page_of_another_framework(name: str) -> None:
    others = [site for start, site in SITES.items() if not name.startswith(start)]
    for rule in rules_of_frameworks():
        addresses = cited(rule.name, name)
        assert addresses
        foreign = [address for address in addresses if any(site in address for site in others)]
        assert foreign == [], rule.name


@pytest.mark.parametrize(
    ("rule", "name", "page"),
    [
        ("cpu-only-build", "torch", "https://docs.astral.sh/uv/guides/integration/pytorch/"),
        ("cudnn-too-old", "tensorflow", "https://www.tensorflow.org/install/source#gpu"),
        ("cpu-only-build", "cupy-cuda12x", "https://docs.cupy.dev/en/stable/install.html"),
        ("library-shadowed", "jax-cuda12-plugin", "https://docs.jax.dev/en/latest/installation.html"),
    ],
)
def test_the_framework_keeps_its_own(rule: str, name: str, page: str) -> None:
    assert page in cited(rule, name)


def test_an_extension_keeps_the_pages_of_what_it_extends() -> None:
    addresses = cited("extension-built-for-other-torch", "flash-attn", extends="torch")
    assert any("cpp_extension" in address for address in addresses)
    assert any("flash-attention" in address for address in addresses)
    assert not any("xformers" in address for address in addresses)


def test_of_the_machine_all_pages_stay() -> None:
    rule = find_rule("gpu-memory-exhausted")
    assert rule is not None
    assert pages(rule, machine(), load_matrix()) == rule.sources


def test_of_an_unknown_framework_the_pages_stay() -> None:
    framework = Framework(source="elf", name="unheard-of")
    rule = find_rule("cpu-only-build")
    assert rule is not None
    assert pages(rule, FrameworkSubject(venv(framework), framework), load_matrix())


@pytest.mark.parametrize(
    ("program", "place"),
    [
        ("llama.cpp", "llama.cpp"),
        ("ollama", "ollama"),
        ("opencv", "opencv"),
        ("xgboost", "xgboost"),
        ("faiss", "faiss"),
    ],
)
def test_of_a_program_that_a_line_names_its_own_page_stands_first(program: str, place: str) -> None:
    rule = find_rule("cpu-only-build")
    assert rule is not None
    found = [each.address for each in pages_about(rule, program, load_matrix())]
    assert len(found) == 1
    assert place in found[0]
