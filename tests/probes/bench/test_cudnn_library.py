"""What becomes of cuDNN's answers, of a library that is whole and of one that lacks a part. A stand-in gives them."""

import ctypes
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from probes.bench import cudnn as bench_cudnn
from probes.common.out import Out
from probes.common.tree import Tree
from probes.measuring.cudnn import convolution
from probes.measuring.cudnn.layers import Layer, W, X, Y
from probes.measuring.cudnn.library import MODE_A, Cudnn, Graph, IncompleteError, NotSupported
from probes.measuring.library import CudaLibrary
from probes.measuring.runtime import Fields, LibraryError, Unavailable, run_all
from tests.every import cases
from tests.probes.tiny_elf import tiny_elf

from .host_gpu import Function, HostDevice, bench_on

WORDS = {0: b"CUDNN_STATUS_SUCCESS", 9: b"CUDNN_STATUS_NOT_SUPPORTED", 14: b"CUDNN_STATUS_VERSION_MISMATCH"}
WORDS |= {1002: b"CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH", 3007: b"CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH"}
WORDS |= {3009: b"CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE", 5000: b"CUDNN_STATUS_EXECUTION_FAILED"}
TENSOR, OPERATION, GRAPH, HEURISTIC, CONFIGURATION, PLAN, PACK = 17, 10, 15, 4, 3, 5, 16
"""Kinds of descriptors (``cudnnBackendDescriptorType_t``)."""
INTEGER = {1: ctypes.c_int, 2: ctypes.c_bool, 3: ctypes.c_int64, 4: ctypes.c_float}
LAYER = Layer(images=2, channels=3, filters=4, side=5, window=3)


class StandIn:
    """A cuDNN of the graph API in Python: it holds descriptors, and convolves FP32 in NCHW."""

    def __init__(
        self, number: int = 91900, failing: dict[str, int] | None = None, lacking: tuple[str, ...] = ()
    ) -> None:
        self.number, self.failing = number, failing or {}
        of_8, of_9 = ("OpsInferVersionCheck", "CnnInferVersionCheck"), ("GraphVersionCheck", "GetLastErrorString")
        self.lacking = {*lacking, *(f"cudnn{name}" for name in (of_8 if number >= 90000 else of_9))}
        self.kinds: dict[int, int] = {}
        self.values: dict[tuple[int, int], list[Any]] = {}
        self.alive: set[int] = set()
        self.called: list[str] = []
        self.wrong = 0.0
        self.proposed = 1

    def __getattr__(self, name: str) -> Function:
        if name in self.lacking or not name.startswith("cudnn"):
            raise AttributeError(name)
        own: Callable[..., Any] = getattr(type(self), "_" + name, lambda *_: 0)

        def call(*arguments: Any) -> Any:
            self.called.append(name)
            return self.failing.get(name) or own(self, *arguments)

        return Function(call)

    def _cudnnGetVersion(self) -> int:  # noqa: N802
        return self.number

    def _cudnnGetErrorString(self, status: ctypes.c_int) -> bytes:  # noqa: N802
        return WORDS[status.value]

    def _cudnnGetLastErrorString(self, message: Any, _: Any) -> int:  # noqa: N802
        message.value = b"no valid  engine\n"
        return 0

    def _cudnnBackendCreateDescriptor(self, kind: int, descriptor: Any) -> int:  # noqa: N802
        address = len(self.kinds) + 1
        self.kinds[address] = kind
        self.alive.add(address)
        descriptor._obj.value = address
        return 0

    def _cudnnBackendDestroyDescriptor(self, descriptor: ctypes.c_void_p) -> int:  # noqa: N802
        self.alive.remove(descriptor.value or 0)
        return 0

    def _cudnnBackendSetAttribute(self, descriptor: Any, name: int, kind: int, count: Any, elements: Any) -> int:  # noqa: N802
        assert len(elements._obj) == count.value
        assert elements._obj._type_ is INTEGER.get(kind, elements._obj._type_)
        self.values[descriptor.value, name] = list(elements._obj)
        return 0

    def _cudnnBackendGetAttribute(  # noqa: N802
        self, descriptor: Any, name: int, kind: int, asked: Any, count: Any, elements: Any
    ) -> int:
        del descriptor, kind
        assert len(elements._obj) == asked.value
        count._obj.value = {202: self.proposed, 300: 1, 402: 1, 1301: 1, 1303: 0}[name]
        if name in (402, 1301):
            elements._obj[0] = {402: 64, 1301: 7}[name]
        return 0

    def _cudnnBackendExecute(self, _: Any, plan: ctypes.c_void_p, pack: ctypes.c_void_p) -> int:  # noqa: N802
        assert self.kinds[plan.value or 0] == PLAN
        at = dict(zip(self.values[pack.value or 0, 1000], self.values[pack.value or 0, 1001], strict=True))
        shapes = {
            self.values[each, 906][0]: self.values[each, 902] for each, kind in self.kinds.items() if kind == TENSOR
        }
        assert [shapes[X][1], shapes[W][0]] == [shapes[W][1], shapes[Y][1]]
        kinds = {number: ctypes.c_float * _size(shape) for number, shape in shapes.items()}
        self._convolve({number: kind.from_address(at[number]) for number, kind in kinds.items()})
        return 0

    def _convolve(self, data: dict[int, Any]) -> None:
        side, pad = range(LAYER.side), LAYER.window // 2
        for n in range(LAYER.images):
            for k in range(LAYER.filters):
                for p in side:
                    for q in side:
                        data[Y][((n * LAYER.filters + k) * LAYER.side + p) * LAYER.side + q] = self.wrong + sum(
                            data[X][((n * LAYER.channels + c) * LAYER.side + p + r - pad) * LAYER.side + q + s - pad]
                            * data[W][((k * LAYER.channels + c) * LAYER.window + r) * LAYER.window + s]
                            for c in range(LAYER.channels)
                            for r in range(LAYER.window)
                            for s in range(LAYER.window)
                            if p + r - pad in side and q + s - pad in side
                        )


def _size(shape: list[int]) -> int:
    size = 1
    for each in shape:
        size *= each
    return size


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """A bench whose cuDNN is a stand-in; libraries named in ``unloadable`` are not to be loaded."""

    def load(standin: StandIn, unloadable: str = "?", path: str = "/nowhere/libcudnn.so.9", why: str = "") -> Any:
        def opened(name: str) -> StandIn:
            if unloadable in name:
                raise OSError(f"{name}: {why or 'cannot open shared object file'}")
            return standin

        monkeypatch.setattr(ctypes, "CDLL", opened)
        monkeypatch.setattr(convolution, "SMALL_LAYER", LAYER)
        return bench_on(HostDevice(), {"cudnn": [path]})

    return load


def sent(bench: Any) -> Fields:
    """What the deep check's measurement says."""
    lines: list[bytes] = []
    run_all(Out("bench.cudnn", lines.append), bench_cudnn.measures(bench), bench.uuid)
    facts = [json.loads(line).get("fact", {}).get("measurements", []) for line in lines]
    (found,) = [each for fact in facts for each in fact]
    described: Fields = found
    return described


# --- one convolution, as in a deep check --------------------------------------------------------------------------
def test_the_convolution_of_a_deep_check_is_made_and_verified(loaded: Callable[..., Any]) -> None:
    standin = StandIn()
    found = sent(loaded(standin))
    assert found["verification"]["right"], found
    assert (found["name"], found["method"], found["library"]) == (
        "cudnn-convolution", "cudnn", "/nowhere/libcudnn.so.9",
    )  # fmt: skip
    assert found["detail"] == "cuDNN 9.19.0, engine 7, 2x3x5x5, 4 filters of 3x3"
    assert not standin.alive


def test_a_wrong_convolution_is_told(loaded: Callable[..., Any]) -> None:
    standin = StandIn()
    standin.wrong = 0.01
    verdict = sent(loaded(standin))["verification"]
    assert (verdict["right"], verdict["wrong"]) == (False, verdict["checked"])


@cases("failing, words",
    ({"cudnnCreate": 3007}, "cudnnCreate: CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH (3007)"),
    ({"cudnnBackendExecute": 5000}, "cudnnBackendExecute: CUDNN_STATUS_EXECUTION_FAILED (5000): no valid engine"),
    ({"cudnnBackendFinalize": 3007}, "cudnnBackendFinalize: CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH (3007)"),
    ({"cudnnOpsVersionCheck": 1002}, "cudnnOpsVersionCheck: CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH (1002)"),
)  # fmt: skip
def test_a_failing_call_in_cudnns_words(failing: dict[str, int], words: str, loaded: Callable[..., Any]) -> None:
    found = sent(loaded(StandIn(failing=failing)))
    assert words in found["missing"]
    assert found["library"] == "/nowhere/libcudnn.so.9"
    assert found["failed"]


def test_a_cudnn_without_an_engine_for_a_convolution_has_failed(loaded: Callable[..., Any]) -> None:
    standin = StandIn()
    standin.proposed = 0
    found = sent(loaded(standin))
    assert found["failed"]
    assert found["missing"].startswith("cuDNN 9.19.0 has no engine for this on this GPU")


# --- sub-libraries ------------------------------------------------------------------------------------------------
@cases("number, part", (91900, "graph"), (91900, "engines_runtime_compiled"), (8907, "cnn_infer"), (8907, "ops_train"))
def test_a_missing_part_is_named_before_cudnn_is_called(number: int, part: str, loaded: Callable[..., Any]) -> None:
    standin = StandIn(number)
    with pytest.raises(IncompleteError, match=rf"missing beside it: .*libcudnn_{part}\.so.*cannot open"):
        Cudnn(loaded(standin, f"_{part}."))
    assert standin.called == []


@cases("part", "cnn", "ops", "engines_precompiled", "heuristic")
@cases("others", False, True)
def test_a_cudnn_has_all_of_its_kernels_or_compiles_them(
    part: str,
    others: bool,  # noqa: FBT001
    loaded: Callable[..., Any],
    tmp_path: Path,
) -> None:
    main = tmp_path / "libcudnn.so.9"
    main.write_bytes(tiny_elf())
    if others:
        (tmp_path / "libcudnn_ops.so.9").write_bytes(tiny_elf())
    bench = loaded(StandIn(), f"_{part}.", str(main))
    if others:
        with pytest.raises(IncompleteError, match=f"libcudnn_{part}"):
            Cudnn(bench)
    else:
        assert Cudnn(bench).version == "9.19.0"


@cases("status", 1002, 3007, 5000)
def test_a_call_that_fails_names_parts_from_elsewhere(status: int, loaded: Callable[..., Any], tmp_path: Path) -> None:
    """One of another release may load, and fail at work."""
    for name in ("", "_graph", "_engines_runtime_compiled", "_ops", "_cnn", "_engines_precompiled"):
        (tmp_path / f"libcudnn{name}.so.9").write_bytes(tiny_elf())
    found = sent(loaded(StandIn(failing={"cudnnBackendFinalize": status}), path=str(tmp_path / "libcudnn.so.9")))
    assert found["failed"]
    assert found["missing"].endswith("(missing beside it: libcudnn_heuristic.so.9)")


def test_parts_beside_the_library_come_first(loaded: Callable[..., Any], tmp_path: Path) -> None:
    for name in ("libcudnn.so.9.19.0", "libcudnn_graph.so.9"):
        (tmp_path / name).write_bytes(tiny_elf())
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "libcudnn.so.9"
    link.symlink_to(tmp_path / "libcudnn.so.9.19.0")
    with pytest.raises(IncompleteError, match=str(tmp_path / "libcudnn_graph.so.9")):
        Cudnn(loaded(StandIn(), "_graph.", str(link)))


def test_parts_of_two_releases_are_told(loaded: Callable[..., Any], tmp_path: Path) -> None:
    for name in ("", "_graph", "_engines_runtime_compiled"):
        (tmp_path / f"libcudnn{name}.so.9").write_bytes(tiny_elf())
    bench = loaded(StandIn(), "_engines", str(tmp_path / "libcudnn.so.9"), "undefined symbol: cudnnBackend")
    with pytest.raises(IncompleteError, match=r"\(they are of different releases\): .*undefined symbol"):
        Cudnn(bench)


def test_a_part_that_the_loader_finds_elsewhere_comes_first(loaded: Callable[..., Any], tmp_path: Path) -> None:
    """As with LD_LIBRARY_PATH: the loader looks there before it looks where cuDNN lies."""
    for name in ("libcudnn.so.9", "libcudnn_graph.so.9"):
        (tmp_path / name).write_bytes(tiny_elf())
    elsewhere = tmp_path / "libcudnn_graph.so.9.1"
    elsewhere.write_bytes(tiny_elf()[:-1])
    bench = loaded(StandIn(), path=str(tmp_path / "libcudnn.so.9"))
    bench.libraries["cudnn_graph"] = [str(elsewhere), str(tmp_path / "libcudnn_graph.so.9")]
    with pytest.raises(IncompleteError, match=f"{elsewhere}: it is cut off"):
        Cudnn(bench)


@cases("part", "graph", "adv", "a_new_part")
def test_a_part_that_is_cut_off_is_not_loaded(part: str, loaded: Callable[..., Any], tmp_path: Path) -> None:
    """The loader would map it, and the process die of it; some parts cuDNN loads late."""
    for name in ("libcudnn.so.9", "libcudnn_graph.so.9"):
        (tmp_path / name).write_bytes(tiny_elf())
    cut = tmp_path / f"libcudnn_{part}.so.9"
    cut.write_bytes(tiny_elf()[:-1])
    standin = StandIn()
    with pytest.raises(IncompleteError, match=rf"{cut}: it is cut off: \d+ of at least \d+ bytes"):
        Cudnn(loaded(standin, path=str(tmp_path / "libcudnn.so.9")))
    assert standin.called == []


def test_a_library_that_is_cut_off_is_not_loaded(tmp_path: Path) -> None:
    path = tmp_path / "libcudnn.so.9"
    path.write_bytes(tiny_elf()[:-1])
    with pytest.raises(LibraryError, match=r"cuDNN cannot be loaded: .* it is cut off"):
        Cudnn(bench_on(HostDevice(), {"cudnn": [str(path)]}))


def test_a_part_that_only_some_calls_need_does_not_stop_the_rest(loaded: Callable[..., Any]) -> None:
    assert sent(loaded(StandIn(failing={"cudnnCnnVersionCheck": 3009})))["verification"]["right"]


# --- releases and statuses ----------------------------------------------------------------------------------------
@cases("number, version", (8500, "8.5.0"), (8907, "8.9.7"), (90000, "9.0.0"), (92801, "9.28.1"))
def test_releases(number: int, version: str, loaded: Callable[..., Any]) -> None:
    library = Cudnn(loaded(StandIn(number)))
    assert (library.version, library.major) == (version, int(version[0]))


def test_an_older_one_is_no_fault(loaded: Callable[..., Any]) -> None:
    with pytest.raises(Unavailable, match="not a cuDNN 8 or 9"):
        Cudnn(loaded(StandIn(7605, lacking=("cudnnBackendExecute",))))


@cases("number, status, kind",
    (8907, 9, NotSupported), (8907, 14, IncompleteError), (91900, 3007, NotSupported), (91900, 3009, NotSupported),
    (91900, 1002, IncompleteError), (91900, 5000, LibraryError),
)  # fmt: skip
def test_statuses(number: int, status: int, kind: type[Exception], loaded: Callable[..., Any]) -> None:
    library = Cudnn(loaded(StandIn(number, {"cudnnSoftmaxForward": status})))
    with pytest.raises(kind, match=WORDS[status].decode()) as caught:
        library.ask("cudnnSoftmaxForward", library.handle)
    assert type(caught.value) is kind
    assert ("no valid engine" in str(caught.value)) is (number >= 90000)


def test_a_call_whose_part_is_missing_is_a_fault_of_a_whole_cudnn(loaded: Callable[..., Any], tmp_path: Path) -> None:
    for name in ("", "_graph", "_engines_runtime_compiled", "_cnn"):
        (tmp_path / f"libcudnn{name}.so.9").write_bytes(tiny_elf())
    library = Cudnn(loaded(StandIn(failing={"cudnnSoftmaxForward": 3009}), path=str(tmp_path / "libcudnn.so.9")))
    with pytest.raises(IncompleteError, match="SUBLIBRARY_UNAVAILABLE"):
        library.ask("cudnnSoftmaxForward", library.handle)


def test_what_cannot_be_planned_is_skipped_but_an_incomplete_cudnn_is_not(
    loaded: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    standin = StandIn()
    standin.proposed = 5
    library = Cudnn(loaded(standin))
    answers = [9999, 3007, 0]
    ask = CudaLibrary.ask

    def asked(self: Cudnn, name: str, *arguments: object) -> None:
        kind = standin.kinds.get(getattr(arguments[0], "value", 0) or 0) if name == "cudnnBackendFinalize" else None
        answer = answers.pop(0) if kind == PLAN and answers else 0
        if answer == 3007:
            raise NotSupported("no")
        if answer == 1002:
            raise IncompleteError("of another release", self.path)
        if answer:
            raise LibraryError("failed", self.path)
        ask(self, name, *arguments)

    monkeypatch.setattr(Cudnn, "ask", asked)
    with Graph(library) as graph:
        assert len(list(graph.plans(graph.proposals(MODE_A), 2))) == 2
        assert answers == []
        answers += [3007, 9999, 3007, 3007, 3007]
        with pytest.raises(LibraryError, match="failed"):
            list(graph.plans(graph.proposals(MODE_A), 2))
        answers += [1002]
        with pytest.raises(IncompleteError, match="another release"):
            list(graph.plans(graph.proposals(MODE_A), 2))
    assert not standin.alive


def test_without_cudnn_nothing_has_failed() -> None:
    found = sent(bench_on(HostDevice(), {}))
    assert "no cuDNN was found" in found["missing"]
    assert not found.get("failed")


# --- what is asked for --------------------------------------------------------------------------------------------
def test_a_quick_run_leaves_it_out() -> None:
    lines: list[bytes] = []
    out = Out("bench.cudnn", lines.append)
    bench_cudnn.collect(Tree({"bench": {"gpu": "GPU-1", "gpus": [], "libraries": {}}}), out)
    out.done()
    assert json.loads(lines[-1])["done"]["detail"] == "measured with --full"


def test_figures_are_told_apart() -> None:
    device = HostDevice()
    bench: Any = bench_on(device, {})
    figures = list(bench_cudnn.measures(type(bench)(**{**vars(bench), "timing": True, "full": True})))
    assert len(figures) == len(set(figures))
    assert {"cudnn-convolution", "cudnn-attention", "cudnn-handles", "cudnn-softmax"} <= {each.name for each in figures}
    assert bench_cudnn.SMALLEST in figures
    assert random.choice(figures).name.startswith("cudnn-")
