"""Packages on top of PyTorch, and RAPIDS: their rows are well formed, have no gap, and answer sourced facts."""

import itertools
import re
from collections import defaultdict

from envcheck.compat.answer import ask
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.names import scheme
from envcheck.knowledge.specifier import Version, parse_specifier, parse_version, speaks_of
from envcheck.knowledge.tables.software import ReleaseRow
from envcheck.model.components import parse_components
from envcheck.model.versions import CodeTarget, ComputeCapability
from tests.every import cases, every, every_tabled
from tests.known import known

MATRIX = load_matrix()
FILES = {"packages-on-frameworks", "rapids"}
ROWS = [row for row in MATRIX.releases if row.source[0].partition("/")[0] in FILES]
BY_NAME: dict[str, list[ReleaseRow]] = defaultdict(list)
for _row in ROWS:
    BY_NAME[_row.name].append(_row)
TOOLKITS = {row.version: row for row in MATRIX.cuda if row.toolkit}


def version(name: str, text: str) -> Version:
    return known(parse_version(text, scheme(name)))


def rows_for(name: str, release: str, machine: str = "x86_64", os: str = "linux") -> list[ReleaseRow]:
    """The rows that speak of a release, as the engine chooses them: those that name its post-release, where any do."""
    wanted = version(name, release)
    found = [row for row in BY_NAME[name] if speaks_of(row.versions, wanted) == "all"]
    exact = [row for row in found if parse_specifier(row.versions).names_post]
    rows = exact if exact and wanted.post is not None else found
    return [row for row in rows if (not row.machine or machine in row.machine) and (not row.os or os in row.os)]


def needs(name: str, release: str, need: str) -> set[str]:
    return {row.needs[need] for row in rows_for(name, release) if need in row.needs}


def answer(question: str) -> str:
    """The verdict of ``envcheck matrix check``; components are parted by a semicolon."""
    return ask(load_matrix(), [part for text in question.split(";") for part in parse_components(text.strip())]).verdict


# --- each row -----------------------------------------------------------------------------------------------------
def test_every_package_is_there() -> None:
    assert {
        "vllm",
        "xformers",
        "bitsandbytes",
        "flash-attn",
        "flash-attn-3",
        "deepspeed",
        "transformer-engine",
        "transformer-engine-cu12",
        "transformer-engine-cu13",
        "tensorrt-llm",
        "rapids",
        *(f"{name}-cu{major}" for name in ("cudf", "cuml", "cugraph", "rmm", "dask-cudf") for major in (11, 12, 13)),
    } <= set(BY_NAME)


@every(ROWS)
def test_a_row_can_be_read(row: ReleaseRow) -> None:
    assert re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", row.name)
    assert row.needs or row.targets
    for text in (row.capability_min, row.capability_max, *row.capabilities):
        assert text is None or ComputeCapability.parse(text)
    assert "cuda" not in row.bundles


@every([row for row in ROWS if row.cuda])
def test_what_a_build_holds_its_toolkit_can_compile(row: ReleaseRow) -> None:
    toolkit = TOOLKITS[known(row.cuda)]
    for text in row.targets:
        target = known(CodeTarget.parse(text))
        assert target.capability.sm in toolkit.targets, text


@every([row for row in ROWS if row.cuda and "cuda" in row.needs])
def test_a_build_fits_the_cuda_it_was_built_with(row: ReleaseRow) -> None:
    assert parse_specifier(row.needs["cuda"]).cover(version("cuda", row.cuda or "")) == "all"


@every([row for row in ROWS if row.targets])
def test_the_least_capability_has_code(row: ReleaseRow) -> None:
    held = [target for text in row.targets if (target := CodeTarget.parse(text))]
    least = ComputeCapability.parse(row.capability_min)
    assert least is None or min(target.capability for target in held) <= least


@every([row for row in ROWS if "torch" in row.needs])
def test_the_pytorch_that_is_needed_exists(row: ReleaseRow) -> None:
    spec = parse_specifier(row.needs["torch"])
    assert any(spec.cover(version("torch", known.version)) == "all" for known in MATRIX.torch)


# --- whole families -----------------------------------------------------------------------------------------------
VLLM = (
    *("0.1.4", "0.1.7", "0.2.0", "0.2.1.post1", "0.2.2", "0.2.5", "0.2.7", "0.3.0", "0.3.3", "0.4.0", "0.4.0.post1"),
    *("0.4.1", "0.4.2", "0.4.3", "0.5.0", "0.5.0.post1", "0.5.1", "0.5.2", "0.5.3.post1", "0.5.4", "0.5.5", "0.6.0"),
    *("0.6.1.post2", "0.6.2", "0.6.3", "0.6.3.post1", "0.6.4", "0.6.6.post1", "0.7.0", "0.7.3", "0.8.0", "0.8.5.post1"),
    *("0.9.0", "0.9.0.1", "0.9.1", "0.9.2", "0.10.0", "0.10.1.1", "0.10.2", "0.11.0", "0.11.2", "0.12.0", "0.13.0"),
    *("0.14.1", "0.15.1", "0.16.0", "0.17.1", "0.18.1", "0.19.1", "0.20.2", "0.22.1", "0.26.0", "0.27.1", "0.33.0"),
)
"""Releases of vLLM at both ends of what one row covers, as PyPI lists them."""


@every(VLLM)
def test_every_vllm_has_one_pytorch_and_code(release: str) -> None:
    rows = rows_for("vllm", release)
    assert len([row for row in rows if "torch" in row.needs]) == 1
    assert len([row for row in rows if row.targets]) == 1
    assert all("python" in row.needs for row in rows if "torch" in row.needs)


@every([release for release in VLLM if version("vllm", release).numbers >= (0, 10, 2)])
def test_vllm_holds_code_on_arm_too(release: str) -> None:
    assert len([row for row in rows_for("vllm", release, machine="aarch64") if row.targets]) == 1


@cases("release", "0.1.3", "0.2.1", "0.34.0", "1.0.0")
def test_a_vllm_that_nobody_read_has_no_row(release: str) -> None:
    assert rows_for("vllm", release) == []


def test_every_xformers_that_vllm_pins_is_one_that_fits_the_same_pytorch() -> None:
    pinned = [row for row in BY_NAME["vllm"] if row.needs.get("xformers", "").startswith("==")]
    assert len(pinned) > 10
    for row in pinned:
        torch = row.needs.get("torch") or next(iter(needs("vllm", row.versions.split(",")[0].lstrip(">=<"), "torch")))
        assert needs("xformers", row.needs["xformers"].removeprefix("=="), "torch") == {torch}


@every(itertools.product(["cudf", "dask-cudf", "cuml", "cugraph", "rmm", "cuvs"], [11, 12, 13]))
def test_rapids_has_no_gap(name: str, major: int) -> None:
    first = {11: (23, 2), 12: (23, 6), 13: (25, 10)}[major]
    last = {11: (25, 6), 12: (26, 10), 13: (26, 10)}[major]
    start = max(first, (24, 4)) if name == "cuvs" else first
    released = [(year, month) for year in range(23, 27) for month in range(2, 13, 2)]
    held = [pair for pair in released if rows_for(f"{name}-cu{major}", f"{pair[0]}.{pair[1]}.0")]
    assert held == [pair for pair in released if start <= pair <= last]


# --- facts, each from its source ----------------------------------------------------------------------------------
@every_tabled
def test_a_pin_is_what_metadata_says(name: str, release: str, need: str, wanted: str) -> None:
    assert needs(name, release, need) == {wanted}


@every_tabled
def test_a_fact(question: str, verdict: str) -> None:
    assert answer(question) == verdict
