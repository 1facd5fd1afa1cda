"""What a trial sends at each stage, on modules made up for the purpose; frameworks themselves are in tests/lab."""

import ctypes
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from probes.common.system import mapped_files
from probes.common.tree import Tree
from probes.trials.libraries import can_be_asked, decode, version_of_file
from probes.trials.onnx_models import convolution_model, product_model
from probes.trials.trial import (
    NotTriedError,
    OnCpuError,
    Step,
    TrialSubject,
    Where,
    attempt,
    close,
    equal,
    error_line,
    on_gpu,
    version_of,
)
from tests.every import cases

WHERE = Where("toy:0", "the toy says so")


class Sent:
    """What an attempt sent, fact by fact, as the trial and the rest of the framework."""

    def __init__(self) -> None:
        self.trials: list[dict[str, Any]] = []
        self.others: list[dict[str, Any]] = []
        self.said: list[str] = []

    def fact(self, part: dict[str, Any]) -> None:
        (environment,) = part["environments"]["items"]
        assert environment["key"] == "/env"
        (framework,) = environment["frameworks"]["items"]
        assert framework["name"] == "toy"
        if "trial" in framework:
            self.trials.append(framework["trial"])
        else:
            self.others.append(framework)

    def progress(self, text: str) -> None:
        self.said.append(text)

    @property
    def trial(self) -> dict[str, Any]:
        """All of the trial; no key is sent twice with different values."""
        whole: dict[str, Any] = {}
        for part in self.trials:
            for key, value in part.items():
                if key == "answers":
                    whole[key] = {**whole.get(key, {}), **value}
                else:
                    assert whole.setdefault(key, value) == value, key
        return whole


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("toy_framework")
    module.__dict__["__version__"] = "1.2"
    monkeypatch.setitem(sys.modules, "toy_framework", module)
    monkeypatch.setattr("probes.trials.trial.give_up_making_devices", lambda: True)
    monkeypatch.setattr("probes.trials.trial.first_gpu", lambda: "0000:1b:00.0")
    return module


def try_toy(*steps: Step, no_gpu: str = "", **subject: Any) -> Sent:
    sent = Sent()
    request = {"framework": {"name": "toy"}, "environment": "/env", "no_gpu": no_gpu}
    attempt(Tree(request), sent, TrialSubject("toy_framework", steps, **subject))  # type: ignore[arg-type]
    return sent


def fails(_module: Any) -> Where:
    raise RuntimeError("CUDA error: no kernel image\nadvice on the second line")


def test_stages_of_a_trial_that_goes_well(toy: ModuleType) -> None:
    subject: dict[str, Any] = {
        "build": {"version": version_of},
        "answers": {"devices": lambda _: 1, "nothing": lambda _: None},
    }
    sent = try_toy(Step("a sum", lambda _: WHERE), Step("a product", lambda _: None), **subject)
    assert sent.said == [
        "importing toy_framework", "asking for version", "computing a sum", "computing a product", "asking for devices",
        "asking for nothing", "reading the memory map",
    ]  # fmt: skip
    assert sent.trials[0]["imported"] is True
    assert "ran_on_gpu" not in sent.trials[0]
    trial = sent.trial
    assert trial["ran_on_gpu"] is True
    assert (trial["device"], trial["proof"], trial["gpu"]) == ("toy:0", "the toy says so", "0000:1b:00.0")
    assert trial["answers"] == {"version": "1.2", "devices": "1"}
    assert trial["import_seconds"] >= 0 <= trial["seconds"]
    assert "error" not in trial
    assert {part["source"] for part in sent.trials} == {"trial"}


def test_an_import_that_fails(monkeypatch: pytest.MonkeyPatch, toy: ModuleType, tmp_path: Path) -> None:
    monkeypatch.delitem(sys.modules, "toy_framework")
    (tmp_path / "toy_framework.py").write_text("raise ImportError('libfoo.so.1: cannot open shared object file')\n")
    monkeypatch.syspath_prepend(tmp_path)
    sent = try_toy(Step("a sum", lambda _: WHERE), answers={"devices": lambda _: 1})
    assert sent.trial["imported"] is False
    assert sent.trial["error"] == "ImportError: libfoo.so.1: cannot open shared object file"
    assert "ran_on_gpu" not in sent.trial
    assert sent.said == ["importing toy_framework", "reading the memory map"]


def test_an_import_that_exits(monkeypatch: pytest.MonkeyPatch, toy: ModuleType, tmp_path: Path) -> None:
    monkeypatch.delitem(sys.modules, "toy_framework")
    (tmp_path / "toy_framework.py").write_text("import sys; sys.exit('go away')\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert try_toy().trial["error"] == "SystemExit: go away"


def test_an_operation_that_fails_is_told_by_its_first_line(toy: ModuleType, capfd: pytest.CaptureFixture[str]) -> None:
    sent = try_toy(Step("a sum", fails), Step("a product", lambda _: None), answers={"devices": lambda _: 1})
    assert sent.trial["ran_on_gpu"] is False
    assert sent.trial["error"] == "RuntimeError: CUDA error: no kernel image (in a sum)"
    assert sent.trial["answers"] == {"devices": "1"}
    assert "computing a product" not in sent.said
    assert "advice on the second line" in capfd.readouterr().err


def test_a_later_operation_that_fails_leaves_the_first_as_it_was(toy: ModuleType) -> None:
    sent = try_toy(Step("a sum", lambda _: WHERE), Step("a product", fails))
    assert sent.trial["ran_on_gpu"] is True
    assert sent.trial["error"] == "RuntimeError: CUDA error: no kernel image (in a product)"


def test_a_fallback_to_the_cpu_is_told_in_its_own_words(toy: ModuleType) -> None:
    def falls_back(_module: Any) -> Where:
        raise OnCpuError("it computes on the CPU")

    sent = try_toy(Step("a sum", falls_back))
    assert (sent.trial["ran_on_gpu"], sent.trial["error"]) == (False, "it computes on the CPU (in a sum)")


def test_what_cannot_be_tried_says_why(toy: ModuleType) -> None:
    def refuses(_module: Any) -> Where:
        raise NotTriedError("it needs a model")

    assert try_toy(Step("a sum", refuses)).trial["skipped"] == "it needs a model"
    assert try_toy(Step("a sum", fails), no_gpu="there is no GPU").trial["skipped"] == "there is no GPU"
    assert try_toy(why_none="importing is all").trial["skipped"] == "importing is all"
    assert "ran_on_gpu" not in try_toy(Step("a sum", refuses)).trial
    later = try_toy(Step("a sum", lambda _: WHERE), Step("a product", refuses)).trial
    assert "skipped" not in later
    assert "error" not in later


def test_an_answer_that_cannot_be_had_is_left_out(toy: ModuleType) -> None:
    assert try_toy(build={"version": fails, "cuda": lambda _: "13.0"}).trial["answers"] == {"cuda": "13.0"}


def test_whether_it_says_that_it_can_use_a_gpu(toy: ModuleType) -> None:
    assert try_toy(available=lambda _: True).others == [
        {"name": "toy", "source": "trial", "gpu_available": True, "read": {"gpu_available": "trial"}}
    ]
    assert try_toy(available=fails).others == []


def test_results_are_compared() -> None:
    equal([[1.0, 2], [3]], [1, 2, 3])
    close([1.0, 2.0], [1.0005, 1.9995])
    with pytest.raises(ArithmeticError):
        equal([1.0], [1.5])
    with pytest.raises(ArithmeticError):
        close([1.0], [1.0, 2.0])
    with pytest.raises(ArithmeticError):
        close([1.0], [float("nan")])


def test_memory_of_the_processor_is_no_proof() -> None:
    buffer = ctypes.create_string_buffer(64)
    with pytest.raises(OnCpuError, match="the result is on cpu and not in a GPU's memory"):
        on_gpu(ctypes.addressof(buffer), "cpu")


# --- what was raised, in one line ---------------------------------------------------------------------------------
def raised(code: str) -> BaseException:
    try:
        exec(code, {})
    except BaseException as error:  # noqa: BLE001  whatever it is, it is what is looked at
        return error
    raise AssertionError("nothing was raised")


@cases("code, line",
    ("raise ValueError('one\\ntwo')", "ValueError: one"), ("raise ValueError", "ValueError"),
    ("raise ValueError('at start:\\n\\nno driver\\nadvice')", "ValueError: at start: no driver"),
    ("raise ValueError('\\n=====\\n  Failed to import\\n')", "ValueError: Failed to import"),
    ("try:\n    raise OSError('libcuda.so.1: cannot open')\nexcept OSError as e:\n    raise ImportError('help') from e",
     "OSError: libcuda.so.1: cannot open"),
    ("try:\n    raise OSError('inner')\nexcept OSError:\n    raise ImportError('outer')", "ImportError: outer"),
    ("raise ImportError('Traceback (most recent call last):\\n  File x\\nImportError: libfoo.so\\n\\nFailed')",
     "ImportError: libfoo.so"),
    ("class E(Exception):\n    def __str__(self): raise KeyError\nraise E", "E"),
    ("raise ValueError('x' * 9000)", "ValueError: " + "x" * 588),
)  # fmt: skip
def test_the_line_that_tells(code: str, line: str) -> None:
    assert error_line(raised(code)) == line


# --- libraries ----------------------------------------------------------------------------------------------------
@cases("number, since, version",
    (8902, 9, "8.9.2"), (91002, 9, "9.10.2"), (91900, 9, "9.19.0"), (7605, 9, "7.6.5"), (22809, 2, "2.28.9"),
    (2804, 2, "2.8.4"), (8601, 10, "8.6.1"), (100300, 10, "10.3.0"), (20200, 1, "2.2.0"), (0, 9, None),
)  # fmt: skip
def test_numbers_are_read_by_the_scheme_of_their_time(number: int, since: int, version: str | None) -> None:
    assert decode(number, since) == version


def test_the_map_names_files(tmp_path: Path) -> None:
    maps = tmp_path / "maps"
    maps.write_bytes(
        b"00400000-00452000 r-xp 00000000 08:02 173521 /opt/a b/libcudnn.so.9.1.0\n"
        b"00652000-00655000 rw-p 00052000 08:02 173521 /opt/a b/libcudnn.so.9.1.0\n"
        b"7f0000000000-7f0000001000 rw-p 00000000 00:00 0 [heap]\n"
        b"7f1000000000-7f1000001000 rw-p 00000000 00:00 0 \n"
        b"7f2000000000-7f2000001000 r--p 00000000 08:02 9 /opt/libcudart-a7b20f20.so.11.0\n"
        b"7f3000000000-7f3000001000 r--p 00000000 08:02 9 /opt/gone\xff.so (deleted)\n"
    )
    assert mapped_files(str(maps))[:2] == ["/opt/a b/libcudnn.so.9.1.0", "/opt/libcudart-a7b20f20.so.11.0"]


def test_a_library_that_cannot_be_asked(tmp_path: Path) -> None:
    assert not can_be_asked("cuda")
    assert version_of_file("/nowhere/libcuda.so.1", "cuda") is None
    (tmp_path / "libnccl.so.2").write_bytes(b"no library")
    with pytest.raises(OSError, match=r"file too short|invalid ELF header"):
        version_of_file(str(tmp_path / "libnccl.so.2"), "nccl")
    assert version_of_file(next(path for path in mapped_files() if "/libc" in path), "nccl") is None


# --- models -------------------------------------------------------------------------------------------------------
def test_models_are_protocol_buffers() -> None:
    """Read back by a reader of the wire format; ONNX Runtime itself runs them in tests/lab."""
    model = fields(product_model(64))
    assert model[1] == [6]
    graph = fields(model[7][0])
    (node,) = [fields(each) for each in graph[1]]
    assert (node[1], node[2], node[4]) == ([b"X", b"X"], [b"Y"], [b"MatMul"])
    assert 5 not in graph
    weights = fields(fields(fields(convolution_model(4, 8, 16, 3))[7][0])[5][0])
    assert (weights[1], weights[2], weights[8], len(weights[9][0])) == ([8, 4, 3, 3], [1], [b"W"], 8 * 4 * 3 * 3 * 4)


def fields(data: bytes) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = number()
        if key & 7 == 0:
            found.setdefault(key >> 3, []).append(number())
        else:
            length = number()
            found.setdefault(key >> 3, []).append(data[at : at + length])
            at += length
    return found
