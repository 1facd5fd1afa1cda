"""Rows of frameworks and of what installs with them: they parse, agree with each other and with the other tables, and
answer facts of which the documents or the wheels are known."""

import itertools
import re
from collections import defaultdict

import pytest

from envcheck.compat.answer import ask
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.specifier import parse_specifier
from envcheck.knowledge.tables.software import ReleaseRow, TorchRow
from envcheck.model.components import parse_components
from envcheck.model.versions import CodeTarget, ComputeCapability
from tests.every import cases, every
from tests.known import known
from tests.matrix.test_library_rows import covers, version

MATRIX = load_matrix()
FILES = {
    "cupy": {"cupy", "cupy-cuda80", "cupy-cuda102", "cupy-cuda117", "cupy-cuda11x", "cupy-cuda12x", "cupy-cuda13x"},
    "mxnet-paddlepaddle": {"mxnet", "mxnet-cu112", "paddlepaddle-gpu", "cntk-gpu", "caffe", "caffe2"},
    "jax": {"jax", "jaxlib", "jax-cuda12-plugin", "jax-cuda12-pjrt", "jax-cuda13-plugin", "jax-cuda13-pjrt"},
    "numba": {"numba", "numba-cuda", "cuda-bindings", "cuda-python"},
    "onnxruntime": {"onnxruntime", "onnxruntime-gpu"},
    "tensorflow": {"tensorflow", "tensorflow-gpu", "tensorflow-cpu"},
    "torch-family": {"torchvision", "torchaudio", "triton", "torch-tensorrt"},
}
ROWS = [row for row in MATRIX.releases if row.source[0].partition("/")[0] in FILES]
BY_NAME: dict[str, list[ReleaseRow]] = defaultdict(list)
for _row in ROWS:
    BY_NAME[_row.name].append(_row)
TOOLKITS = {row.version: row for row in MATRIX.cuda if row.toolkit}
OLDEST_TOOLKIT = (8, 0)


def rows_for(name: str, release: str) -> list[ReleaseRow]:
    """The rows that speak of a release or, with a local tag, of that build of it, as the engine chooses them."""
    wanted = version(name, release)
    found = [row for row in BY_NAME[name] if covers(name, row.versions, release)]
    exact = [row for row in found if parse_specifier(row.versions).names_post and wanted.post is not None]
    return [row for row in exact or found if row.build == wanted.local]


def verdict(question: str) -> str:
    """The verdict of ``envcheck matrix check``; components are parted by a semicolon."""
    return ask(MATRIX, [part for text in question.split(";") for part in parse_components(text.strip())]).verdict


# --- each row -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("file", "names"), FILES.items(), ids=FILES)
def test_the_components_are_there(file: str, names: set[str]) -> None:
    assert names <= {row.name for row in ROWS if row.source[0].startswith(f"{file}/")}


@every(BY_NAME)
def test_rows_can_be_read(name: str) -> None:
    assert re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", name)
    for row in BY_NAME[name]:
        for component, text in row.bundles.items():
            version(component, text)
        for capability in (row.capability_min, row.capability_max, *row.capabilities):
            assert capability is None or ComputeCapability.parse(capability), row.id


@every(BY_NAME)
def test_gpu_code_is_what_the_cuda_of_the_build_compiles(name: str) -> None:
    for row in BY_NAME[name]:
        if row.cuda and tuple(map(int, row.cuda.split("."))) >= OLDEST_TOOLKIT:
            for text in row.targets:
                target = known(CodeTarget.parse(text))
                assert target.capability.sm in TOOLKITS[row.cuda].targets, (row.id, text)


@every(BY_NAME)
def test_a_build_may_be_beside_the_cuda_it_was_made_with(name: str) -> None:
    for row in BY_NAME[name]:
        if row.cuda and "cuda" in row.needs:
            assert covers("cuda", row.needs["cuda"], row.cuda), row.id


@every(BY_NAME)
def test_cpu_builds_need_nothing_of_the_gpu(name: str) -> None:
    for row in BY_NAME[name]:
        if row.cuda == "":
            assert not {"cuda", "cudnn", "tensorrt", "driver-linux"} & set(row.needs), row.id
            assert not row.targets, row.id


# --- rows together ------------------------------------------------------------------------------------------------
def probes(rows: list[ReleaseRow]) -> set[str]:
    """The releases at which what the rows say changes."""
    bounds = [bound for row in rows for bound in parse_specifier(row.versions).bounds]
    texts = {
        ".".join(map(str, bound.numbers)) + (f".post{bound.post}" if bound.post is not None else "") for bound in bounds
    }
    return texts | {f"{text}.0" for text in texts if "post" not in text}


def shared(one: ReleaseRow, other: ReleaseRow) -> bool:
    """Whether both mean the same build on some system and machine."""
    systems = not one.os or not other.os or set(one.os) & set(other.os)
    machines = not one.machine or not other.machine or set(one.machine) & set(other.machine)
    return one.build == other.build and bool(systems) and bool(machines)


@every(BY_NAME)
def test_one_row_speaks_of_a_build(name: str) -> None:
    for text, build in itertools.product(probes(BY_NAME[name]), {row.build for row in BY_NAME[name]}):
        for one, other in itertools.combinations(rows_for(name, f"{text}+{build}" if build else text), 2):
            assert not shared(one, other), (text, one.id, other.id)


@every(sorted(set(BY_NAME) - {"cudnn"}))
def test_one_file_speaks_of_a_component(name: str) -> None:
    """But for what goes with it, which says nothing of its builds."""
    rows = [row for row in MATRIX.releases if row.name == name]
    assert BY_NAME[name] == [row for row in rows if not row.source[0].startswith("pairings/")]


def test_the_old_cudnn_ends_where_the_other_file_begins() -> None:
    rows = [row for row in MATRIX.releases if row.name == "cudnn"]
    for release in ("5.1", "6.0.21", "7.0.5", "7.6.5", "9.1.0"):
        assert len({row.source[0].partition("/")[0] for row in rows if covers("cudnn", row.versions, release)}) == 1


@cases("name", "jax-cuda12-plugin", "jax-cuda13-plugin", "jax-cuda12-pjrt", "jax-cuda13-pjrt")
def test_a_plugin_has_the_version_of_its_jaxlib(name: str) -> None:
    for row in BY_NAME[name]:
        assert row.needs["jaxlib"] == row.versions
        assert rows_for("jaxlib", row.versions.removeprefix("==")), row.id


@cases("name", "jaxlib", "jax-cuda12-plugin", "jax-cuda13-plugin")
def test_jax_takes_nothing_newer_than_itself_and_never_goes_back(name: str) -> None:
    rows = sorted((row for row in BY_NAME["jax"] if name in row.needs), key=lambda row: numbers_of(row.versions))
    least = [numbers_of(row.needs[name]) for row in rows]
    assert least == sorted(least)
    assert all(low <= numbers_of(row.versions) for low, row in zip(least, rows, strict=True))


def numbers_of(spec: str) -> tuple[int, ...]:
    """What the first bound of a specifier names."""
    return parse_specifier(spec).bounds[0].numbers


# --- torch and what is paired with it -----------------------------------------------------------------------------
TORCH = {row.version: row for row in MATRIX.torch}
NO_TORCHAUDIO = {"1.0.0", "1.0.1", "1.1.0"}


def partners(name: str, torch: str, build: str = "") -> list[ReleaseRow]:
    rows = [row for row in BY_NAME[name] if row.build == build and "torch" in row.needs]
    return [row for row in rows if covers("torch", row.needs["torch"], torch)]


@every(TORCH)
def test_every_torch_has_its_torchvision_and_torchaudio(torch: str) -> None:
    assert partners("torchvision", torch)
    assert bool(partners("torchaudio", torch)) == (torch not in NO_TORCHAUDIO)


@every([row for row in MATRIX.torch if row.triton])
def test_triton_and_torch_name_each_other(torch: TorchRow) -> None:
    mine = parse_specifier(known(torch.triton)).bounds[0].numbers
    assert rows_for("triton", ".".join(map(str, mine))) == partners("triton", torch.version)


@every(itertools.product([row for row in MATRIX.torch if row.all_builds], ["torchvision", "torchaudio"]))
def test_a_tagged_build_has_a_torch_of_its_cuda(torch: TorchRow, name: str) -> None:
    of_torch = {build.cuda for build in torch.builds}
    exact = [row for row in BY_NAME[name] if row.build and row.needs["torch"] == f"=={torch.version}"]
    assert {row.cuda for row in exact} <= of_torch
    assert all(row.build == "cu" + (row.cuda or "").replace(".", "") for row in exact)


@every(BY_NAME["torch-tensorrt"])
def test_torch_tensorrt_is_of_one_minor_of_torch(row: ReleaseRow) -> None:
    assert len({torch.rsplit(".", 1)[0] for torch in TORCH if covers("torch", row.needs["torch"], torch)}) == 1


# --- facts --------------------------------------------------------------------------------------------------------
@cases("name", "mxnet", "mxnet-cu112", "cntk", "cntk-gpu", "caffe", "caffe2")
def test_projects_that_ended_name_their_last_stack(name: str) -> None:
    assert all(row.superseded for row in BY_NAME[name])


@cases("name, first, last, after",
    ("cupy-cuda80", "4.0.0", "7.8.0", "8.0.0"), ("cupy-cuda102", "7.2.0", "12.3.0", "13.0.0"),
    ("cupy-cuda117", "10.6.0", "10.6.0", "11.0.0"), ("cupy-cuda11x", "11.0.0", "13.6.0", "14.0.0"),
)  # fmt: skip
def test_packages_that_ended(name: str, first: str, last: str, after: str) -> None:
    assert rows_for(name, first)
    assert rows_for(name, last)
    assert not rows_for(name, after)


@every(load_matrix().rows_of("onnxruntime-gpu"))
def test_onnx_runtime_runs_without_tensorrt(row: ReleaseRow) -> None:
    """Its CUDA provider does not need it, so that a GPU that TensorRT has left is no obstacle."""
    assert "tensorrt" not in row.needs or "tensorrt" in row.optional
