"""The NVML probe where something fails: lost GPUs, a driver that does not start, a binding that is not the one."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envcheck.snapshot import Snapshot
from probes import nvml
from tests.probes.fake_gpus import h200, switched_h200
from tests.probes.fake_nvml import Status
from tests.probes.fake_nvml_run import Ask, asking, only_gpu

Run = Callable[..., tuple[Snapshot, dict[str, str]]]


@pytest.fixture
def ask(run_probe: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    return asking(run_probe, monkeypatch, capsys)


def eight_with_a_lost_one() -> list[Any]:
    gpus: list[Any] = [switched_h200(0x10 * (index + 1)) for index in range(8)]
    gpus[3] = Status(15)
    return gpus


def test_a_lost_gpu_is_an_item_with_its_error(ask: Ask) -> None:
    snapshot, done = ask(*eight_with_a_lost_one())
    assert snapshot.gpus
    assert len(snapshot.gpus.items) == 8
    assert not snapshot.gpus.complete
    (lost,) = [gpu for gpu in snapshot.gpus.items if gpu.errors]
    assert (lost.label, lost.index, lost.pci_bus_id) == ("nvml-3", 3, None)
    (error,) = lost.errors
    assert (error.call, error.code, error.name) == ("nvmlDeviceGetHandleByIndex", 15, "GPU_IS_LOST")
    assert error.text == "GPU is lost"
    assert done["status"] == "ok"


def test_a_lost_gpu_is_named_by_the_kernel_modules_list(ask: Ask, tmp_path: Path) -> None:
    for index in range(8):
        (tmp_path / f"proc/driver/nvidia/gpus/0000:{0x10 * (index + 1):02x}:00.0").mkdir(parents=True)
    snapshot, _ = ask(*eight_with_a_lost_one(), request={"root": str(tmp_path)})
    assert snapshot.gpus
    (lost,) = [gpu for gpu in snapshot.gpus.items if gpu.errors]
    assert (lost.pci_bus_id, lost.label) == ("0000:40:00.0", None)
    assert lost.source_of("pci_bus_id") == "procfs"
    assert lost.source_of("errors") == "nvml"


def test_a_list_that_contradicts_nvml_names_nobody(ask: Ask, tmp_path: Path) -> None:
    for index in range(8):
        (tmp_path / f"proc/driver/nvidia/gpus/0000:{0x10 * (index + 1) + 5:02x}:00.0").mkdir(parents=True)
    snapshot, _ = ask(*eight_with_a_lost_one(), request={"root": str(tmp_path)})
    assert snapshot.gpus
    assert [gpu.label for gpu in snapshot.gpus.items if gpu.errors] == ["nvml-3"]


def test_a_gpu_lost_halfway_keeps_its_identity_and_is_left_alone(ask: Ask) -> None:
    gpu = only_gpu(ask(h200(nvmlDeviceGetSerial=Status(15))))
    assert (gpu.pci_bus_id, gpu.name, gpu.serial, gpu.memory) == ("0000:00:06.0", "NVIDIA H200", None, None)
    assert [(error.call, error.code) for error in gpu.errors] == [("nvmlDeviceGetSerial", 15)]


def test_other_errors_are_kept_once_and_the_rest_goes_on(ask: Ask) -> None:
    gpu = only_gpu(
        ask(
            h200(
                nvmlDeviceGetTotalEccErrors=Status(999),
                nvmlDeviceGetRemappedRows=Status(16),
                nvmlDeviceGetSerial=Status(4),
            )
        )
    )
    assert sorted((error.call, error.code, error.name) for error in gpu.errors) == [
        ("nvmlDeviceGetRemappedRows", 16, "RESET_REQUIRED"),
        ("nvmlDeviceGetSerial", 4, "NO_PERMISSION"),
        ("nvmlDeviceGetTotalEccErrors", 999, "UNKNOWN"),
    ]
    assert gpu.pcie
    assert gpu.ecc
    assert gpu.ecc.volatile_uncorrected is None
    assert gpu.row_remap is None
    assert "row_remap" not in gpu.not_supported


# --- a driver that does not start -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "name"),
    [(9, "DRIVER_NOT_LOADED"), (18, "LIB_RM_VERSION_MISMATCH"), (4, "NO_PERMISSION"), (999, "UNKNOWN")],
)
def test_a_failed_start_is_a_fact(ask: Ask, code: int, name: str) -> None:
    uninitialised = {"nvmlSystemGetDriverVersion": Status(1), "nvmlSystemGetCudaDriverVersion_v2": Status(1)}
    snapshot, done = ask(system={"nvmlInitWithFlags": Status(code), **uninitialised})
    assert snapshot.driver
    assert snapshot.driver.nvml
    assert (snapshot.driver.nvml.code, snapshot.driver.nvml.name) == (code, name)
    assert snapshot.driver.nvml.text
    assert (snapshot.driver.release, snapshot.driver.nvml_version) == (None, "13.580.159.04")
    assert snapshot.gpus is None
    assert done["status"] == "ok"


def test_a_status_that_the_binding_does_not_know_keeps_its_number(ask: Ask) -> None:
    snapshot, _ = ask(system={"nvmlInitWithFlags": Status(4711)})
    assert snapshot.driver
    assert snapshot.driver.nvml
    assert (snapshot.driver.nvml.code, snapshot.driver.nvml.name) == (4711, "")


@pytest.mark.parametrize(
    ("complaint", "status"),
    [
        ("libnvidia-ml.so.1: cannot open shared object file: No such file or directory", "absent"),
        ("Error loading shared library libnvidia-ml.so.1: No such file or directory", "absent"),
        ("/usr/lib/libnvidia-ml.so.1: wrong ELF class: ELFCLASS32", "ok"),
        ("libfoo.so.2: cannot open shared object file: No such file or directory", "ok"),
        ("Error loading shared library libfoo.so.2: No such file or directory (needed by libnvidia-ml.so.1)", "ok"),
    ],
)
def test_a_library_that_cannot_be_loaded(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, complaint: str, status: str
) -> None:
    monkeypatch.setattr(nvml, "why_not_loadable", lambda soname: complaint)
    snapshot, done = ask(system={"nvmlInitWithFlags": Status(12)})
    assert snapshot.driver
    assert snapshot.driver.nvml
    assert (snapshot.driver.nvml.code, snapshot.driver.nvml.name) == (-1, "LIBRARY_NOT_FOUND")
    assert snapshot.driver.nvml.text == complaint
    assert done["status"] == status


def test_a_count_that_fails_ends_the_probe_with_the_reason(ask: Ask) -> None:
    with pytest.raises(RuntimeError, match="nvmlDeviceGetCount failed: 999 UNKNOWN"):
        ask(system={"nvmlDeviceGetCount_v2": Status(999)})


# --- a binding that is not the one ----------------------------------------------------------------------------------


def load_from(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    monkeypatch.syspath_prepend(str(folder))
    try:
        nvml.load_binding()
    finally:
        sys.modules.pop("pynvml", None)


def test_the_deprecated_distribution_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pynvml").mkdir()
    (tmp_path / "pynvml/__init__.py").write_text("class NVMLError(Exception): pass\ndef nvmlInit(): pass\n")
    with pytest.raises(ImportError, match=r"deprecated distribution 'pynvml' hides nvidia-ml-py: .*__init__\.py"):
        load_from(tmp_path, monkeypatch)


def test_a_strange_module_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pynvml.py").write_text("answer = 42\n")
    with pytest.raises(ImportError, match=r"pynvml\.py is not the pynvml of nvidia-ml-py"):
        load_from(tmp_path, monkeypatch)


def test_a_broken_module_is_an_import_error_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pynvml.py").write_text("raise ValueError('torn file')\n")
    with pytest.raises(ImportError, match="cannot be imported: ValueError: torn file"):
        load_from(tmp_path, monkeypatch)


def test_a_missing_module_is_an_import_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(ImportError, match=r"nvidia-ml-py.* cannot be imported: ModuleNotFoundError"):
        nvml.load_binding()


def test_the_deprecation_notice_of_the_redirecting_distribution_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("pynvml")
    module.NVMLError, module.nvmlInit = type("NVMLError", (Exception,), {}), print  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pynvml", module)
    assert nvml.load_binding() is module
