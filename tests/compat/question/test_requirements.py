"""What PyPI's wheels require, swept over every row: both sides of each bound, and the pins of a release together."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from envcheck.compat.load import load_matrix
from envcheck.compat.names import canonical
from envcheck.compat.question.wheels import covering, published, series_meant
from envcheck.compat.specifier import Specifier, Version, parse_specifier
from envcheck.compat.tables import ReleaseRow, RequirementRow
from tests.compat.asking import (
    assert_does_not_fit,
    assert_fits,
    assert_nobody_can_tell,
    judged,
    questions,
    shown,
    verdict,
)
from tests.every import every
from tests.thorough import sample

MATRIX = load_matrix()
CONTRADICTED = {"sglang==0.5.6": "torchcodec==0.7.0"}
"""Releases that pin what another of their pins refuses: SGLang 0.5.6 has PyTorch 2.9.1, and the TorchCodec for 2.8."""


def release(row: RequirementRow) -> Version | None:
    """A release that a row names, and that no other row but those of other Pythons or machines speaks of."""
    for bound in parse_specifier(row.versions).bounds:
        version = Version((*bound.numbers, 0, 0)[: max(len(bound.numbers), 3)], post=bound.post)
        if bound.operator in ("==", ">=", "<=") and row in own(row.name, version):
            return version
    return None


def own(name: str, version: Version) -> list[RequirementRow]:
    rows = covering(MATRIX.requirements_by_name[canonical(name)], version)
    return [row for row in rows if parse_specifier(row.versions).cover(version) == "all"]


def around(spec: Specifier) -> Iterator[Version]:
    """Versions at the bounds, and just beyond them."""
    for bound in spec.bounds:
        numbers = (*bound.numbers, 0, 0)[: max(len(bound.numbers), 3)]
        yield Version(numbers, post=bound.post)
        yield Version((*numbers[:-1], numbers[-1] + 1))
        if numbers[-1]:
            yield Version((*numbers[:-1], numbers[-1] - 1))


def where(row: RequirementRow) -> str:
    """A system for which the row holds, as the rest of a question; of those of its wheels, where it does not say. A
    source archive alone is for any.
    """
    version = release(row)
    assert version
    served = {each for one in covering(MATRIX.wheels_by_name[canonical(row.name)], version) for each in one.pythons}
    for os, machine in itertools.product(("linux", "windows", "macos"), ("x86_64", "aarch64")):
        held = os in (row.os or (os,)) and machine in (row.machine or (machine,))
        if held and (not served or served & {"any", f"{os}-{machine}"}):
            return f" os=={os} machine=={machine}"
    raise AssertionError(row.id)


def cases() -> list[RequirementRow]:
    return [row for row in MATRIX.requirements if release(row)]


def test_most_rows_are_swept() -> None:
    assert len(cases()) > 0.95 * len(MATRIX.requirements)


@every(lambda: sample([row for row in cases() if not row.python], 10))
def test_a_wheel_takes_what_it_requires_and_nothing_else(row: RequirementRow) -> None:
    version, system = release(row), where(row)
    for name, text in row.needs.items():
        spec = parse_specifier(text)
        for there in set(around(spec)):
            if spec.cover(there) == "none" and not series_meant(MATRIX, name, there):
                assert verdict(f"{row.name}=={version} {name}=={there}{system}") != "compatible", (name, there)
    if len(own(row.name, version or Version(()))) == 1:
        pins = " ".join(
            f"{name}=={text[2:]}" for name, text in row.needs.items() if text.startswith("==") and "," not in text
        )
        asked = f"{row.name}=={version}"
        if pins and CONTRADICTED.get(asked) not in pins.split():
            assert verdict(f"{asked} {pins}{system}") != "incompatible", pins


@every(lambda: sample([row for row in cases() if not row.python], 4))
def test_a_bound_below_alone_leaves_no_doubt_but_about_compiled_interfaces(row: RequirementRow) -> None:
    version, system = release(row), where(row)
    for name, text in row.needs.items():
        listed = published(MATRIX, canonical(name))
        open_ended = all(bound.operator in (">=", ">") for bound in parse_specifier(text).bounds)
        if listed and open_ended and not MATRIX.has_trait(name, "binary-interface"):
            told = shown(judged(f"{row.name}=={version} {name}=={listed[-1]}{system}"))
            assert "with that major version" not in told, (name, told)


@every(MATRIX.requirements)
def test_a_row_can_be_read(row: RequirementRow) -> None:
    assert row.needs
    for spec in filter(None, (row.versions, row.python, *row.needs.values())):
        assert parse_specifier(spec).bounds


@every(
    questions("""
vllm==0.11.0 numba==0.61.2
vllm==0.11.0 numba==0.60.0 python==3.9
torch==2.9.1 nvidia-nvshmem-cu12==3.3.20
cuml-cu13==25.10.0 cupy-cuda13x==13.6.0
sglang==0.5.9 torchcodec==0.8.0
sglang==0.4.6 flashinfer-python==0.2.3
trl==0.11.4 numpy==2.0.0 os==linux
ultralytics==8.3.187 torch==2.4.0 os==macos machine==aarch64
opencv-python==4.4.0.46 numpy==1.19.1 python==3.8
scikit-learn==1.6.0 numpy==2.2.0
cuml-cu12==26.2.0 cupy-cuda12x==14.0.0
""")
)
def test_fits(question: str) -> None:
    assert_fits(question)


@every(
    questions("""
vllm==0.11.0 numba==0.61.2 python==3.9
vllm==0.11.0 numba==0.60.0 python==3.12
vllm==0.8.5 transformers==4.51.0
cuml-cu13==25.10.0 numba==0.62.0
jax==0.4.35 numpy==1.25.0 python==3.12
cuda-python==12.9.7 cuda-bindings==12.9.6
torch==2.9.1 nvidia-cublas-cu12==12.8.3.14
trl==0.11.4 numpy==2.0.0 os==windows
ultralytics==8.3.187 torch==2.4.0 os==windows
opencv-python==4.4.0.46 numpy==1.19.1 python==3.9
onnxruntime==1.18.0 numpy==2.0.0
onnx==1.9.0 numpy==1.24.0
""")
)
def test_does_not_fit(question: str) -> None:
    assert_does_not_fit(question)


@every([(row, key) for row in MATRIX.releases for key in row.known])
def test_beyond_what_documents_speak_of_nobody_can_tell(row: ReleaseRow, key: str) -> None:
    bound = next(one for one in parse_specifier(row.versions).bounds if one.operator in ("==", ">="))
    asked = f"{row.name}=={Version(bound.numbers, post=bound.post)}"
    *series, newest = map(int, row.known[key].split("."))
    beyond = (*series, newest + 1, 0)
    assert parse_specifier(row.needs[key]).cover(Version(beyond)) == "all"
    last = row.known[key] + (".0" if series else ".9")
    assert verdict(f"{asked} {key}=={last}") == "compatible"
    assert_nobody_can_tell(f"{asked} {key}=={'.'.join(map(str, beyond))}")


@every(
    questions("""
numba==0.62.1 numba-cuda==0.19.1 cuda==13.0
numba==0.62.1 cuda==12.8 gpu==H100
""")
)
def test_the_package_that_takes_over_decides(question: str) -> None:
    assert_fits(question)


def test_components_that_only_run_on_the_same_system_are_not_related() -> None:
    assert_nobody_can_tell("keras==3.11.0 ctranslate2==4.6.0 os==windows")


def test_a_release_that_only_others_name_is_judged_by_them_alone() -> None:
    assert_fits("sglang==0.5.1 flashinfer-python==0.2.11.post3 gpu==H100")
    assert_nobody_can_tell("flashinfer-python==0.2.11.post3 gpu==H100")


def test_the_lower_bound_of_a_compiled_wheel_says_nothing_of_later_major_versions() -> None:
    found = judged("catboost==1.2.0 numpy==2.1.0")
    assert found.verdict in ("unknown", "incompatible"), shown(found)
