"""The CUDA probe: its decisions, its two ways to call, and which library file is mapped."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from envcheck.model.snapshot import ApiResult, Gpu, Snapshot
from probes import cuda
from probes.common.record import canonical_bus_id
from probes.common.system import is_missing, mapped, why_not_loadable
from probes.driver_apis import cuda as driver_api
from probes.driver_apis.cuda import Answer
from tests.every import cases
from tests.known import Expected, fields, known
from tests.probes.conftest import RunProbe
from tests.probes.fake_parent import run_child

HERE = Path(__file__).parents[1]


METHODS = {
    "cuDriverGetVersion": "driver_version", "cuInit": "init", "cuDeviceGetCount": "device_count",
    "cuDeviceGet": "device", "cuDeviceGetPCIBusId": "pci_bus_id", "cuDeviceGetName": "name",
    "cuDeviceGetUuid": "uuid", "cuDeviceTotalMem": "total_memory", "cuDeviceGetAttribute": "attribute",
    "cuDeviceCanAccessPeer": "can_access_peer",
}  # fmt: skip


@dataclass
class FakeApi:
    """A ``DriverApi`` that answers from its fields; ``failing`` maps a method's name to the status it returns."""

    names: list[str] = field(default_factory=lambda: ["NVIDIA H200"])
    buses: list[str] = field(default_factory=lambda: ["0000:1B:00.0"])
    version: int = 13000
    failing: dict[str, int] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    barred: tuple[tuple[int, int], ...] = ()  # Ordinals of which the first may not reach the memory of the second

    def _answer(self, method: str, value: Any) -> Answer[Any]:
        self.calls.append(method)
        code = self.failing.get(method, 0)
        return code, None if code else value

    def call(self, name: str, *arguments: Any) -> Answer[Any]:
        answer: Answer[Any] = getattr(self, METHODS[name])(*arguments)
        return answer

    def driver_version(self) -> Answer[int]:
        return self._answer("driver_version", self.version)

    def init(self, _flags: int) -> Answer[None]:
        return self._answer("init", None)

    def device_count(self) -> Answer[int]:
        return self._answer("device_count", len(self.names))

    def device(self, ordinal: int) -> Answer[object]:
        return self._answer("device", ordinal)

    def pci_bus_id(self, device: Any) -> Answer[str]:
        return self._answer("pci_bus_id", self.buses[device])

    def name(self, device: Any) -> Answer[str]:
        return self._answer("name", self.names[device])

    def uuid(self, device: Any) -> Answer[bytes]:
        return self._answer("uuid", bytes([device]) * 16)

    def total_memory(self, device: Any) -> Answer[int]:
        return self._answer("total_memory", 150 << 30)

    def attribute(self, number: int, device: object) -> Answer[int]:
        return self._answer("attribute", {16: 132, 37: 6144, 75: 9, 76: 0}[number])

    def can_access_peer(self, device: object, other: object) -> Answer[int]:
        return self._answer("can_access_peer", int((device, other) not in self.barred))

    def error(self, code: int) -> tuple[str, str]:
        return f"NAME_{code}", f"text {code}"


@pytest.fixture
def ask(run_probe: RunProbe, monkeypatch: pytest.MonkeyPatch) -> RunProbe:
    """RunProbe the probe over a driver API; ``nvml`` says whether there is an NVML beside it."""

    def ask(api: FakeApi, *, nvml: bool = True) -> tuple[Snapshot, dict[str, str]]:
        monkeypatch.setattr(cuda, "open_api", lambda: api)
        monkeypatch.setattr(cuda, "why_not_loadable", lambda soname: None if nvml else f"{soname}: not here")
        return run_probe("cuda")

    return ask


def gpus(snapshot: Snapshot) -> tuple[Gpu, ...]:
    return known(snapshot.gpus).items


def started(snapshot: Snapshot) -> ApiResult:
    assert snapshot.driver
    assert snapshot.driver.cuda_init
    return snapshot.driver.cuda_init


def test_devices_are_named_by_address_with_cudas_ordinal(ask: RunProbe) -> None:
    snapshot, done = ask(FakeApi(["NVIDIA H200"] * 2, ["0000:43:00.0", "0000:1B:00.0"]))
    first, second = gpus(snapshot)
    assert (first.pci_bus_id, first.cuda_ordinal, first.name) == ("0000:43:00.0", 0, "NVIDIA H200")
    assert (second.pci_bus_id, second.cuda_ordinal) == ("0000:1b:00.0", 1)
    assert second.uuid == "GPU-01010101-0101-0101-0101-010101010101"
    assert (first.compute_capability, first.sm_count, first.memory) == ("9.0", 132, None)
    assert not known(snapshot.gpus).complete
    assert snapshot.driver
    assert (snapshot.driver.cuda, snapshot.driver.cuda_devices) == ("13.0", 2)
    assert known(snapshot.driver.cuda_device_count).code == 0
    assert started(snapshot).seconds is not None
    assert done == {"status": "ok", "detail": ""}


TWO = ["0000:1B:00.0", "0000:43:00.0"]
INSTANCES = FakeApi(["NVIDIA H200 MIG 1g.18gb"] * 2, ["0000:1B:00.0"] * 2)


@cases("about, api, nvml, expected",
    ("memory is told where there is no NVML", FakeApi(), False,
     {"gpus.items.memory.total": (150 << 30,), "gpus.items.memory.bus_width": (6144,)}),
    ("a MIG instance tells what it shares with its GPU", INSTANCES, False,
     {"gpus.items.pci_bus_id": ("0000:1b:00.0",), "gpus.items.cuda_ordinal": (0,), "gpus.items.name": (None,),
      "gpus.items.compute_capability": ("9.0",), "gpus.items.uuid": (None,), "gpus.items.sm_count": (None,),
      "gpus.items.memory": (None,), "driver.cuda_devices": 2, "disagreements": ()}),
    ("peers reach each other if both ways are allowed",
     FakeApi(["NVIDIA L4"] * 3, [*TWO, "0000:52:00.0"], barred=((2, 0),)), True,
     {"fabric.peers.first": ("0000:1b:00.0", "0000:1b:00.0", "0000:43:00.0"),
      "fabric.peers.second": ("0000:43:00.0", "0000:52:00.0", "0000:52:00.0"),
      "fabric.peers.allowed": (True, False, True)}),
    ("peers that CUDA does not tell of", FakeApi(["NVIDIA L4"] * 2, TWO, failing={"can_access_peer": 101}), True,
     {"fabric": None}),
    ("instances of one GPU are no peers", INSTANCES, True, {"fabric": None}),
    ("no device is none enumerated", FakeApi(failing={"init": 100}), True, {"driver.cuda_devices": 0}),
    ("a count that fails is not none", FakeApi(failing={"device_count": 3}), True,
     {"driver.cuda_devices": None, "driver.cuda_device_count.code": 3}),
    ("a version that is not told is unknown", FakeApi(failing={"driver_version": 1}), True, {"driver.cuda": None}),
)  # fmt: skip
def test_what_is_told(ask: RunProbe, about: str, api: FakeApi, nvml: bool, expected: Expected) -> None:  # noqa: FBT001
    assert fields(ask(api, nvml=nvml)[0], expected) == expected


@cases("code", 3, 802, 803, 804, 999)
def test_a_failed_start_is_a_fact_and_nothing_more_is_asked(ask: RunProbe, code: int) -> None:
    api = FakeApi(failing={"init": code})
    snapshot, done = ask(api)
    result = started(snapshot)
    assert (result.call, result.code, result.name, result.text) == ("cuInit", code, f"NAME_{code}", f"text {code}")
    assert snapshot.driver
    assert (snapshot.driver.cuda, snapshot.driver.cuda_devices, snapshot.gpus) == ("13.0", None, None)
    assert api.calls == ["driver_version", "init"]
    assert done["status"] == "ok"


def test_calls_that_fail_are_kept_with_the_device(ask: RunProbe) -> None:
    snapshot, _ = ask(FakeApi(failing={"pci_bus_id": 719, "uuid": 719, "attribute": 1}))
    (gpu,) = gpus(snapshot)
    assert (gpu.label, gpu.pci_bus_id, gpu.uuid, gpu.name) == ("cuda-0", None, None, "NVIDIA H200")
    assert (gpu.compute_capability, gpu.sm_count) == (None, None)
    assert ("cuDeviceGetPCIBusId", 719) in {(error.call, error.code) for error in gpu.errors}
    assert ("cuDeviceGetAttribute(75)", 1) in {(error.call, error.code) for error in gpu.errors}


def test_a_device_without_handle_is_asked_nothing(ask: RunProbe) -> None:
    api = FakeApi(failing={"device": 101})
    (gpu,) = gpus(ask(api)[0])
    assert [(error.call, error.code) for error in gpu.errors] == [("cuDeviceGet", 101)]
    assert api.calls[-1] == "device"


@cases("complaint, status",
    ("libcuda.so.1: cannot open shared object file: No such file or directory", "absent"),
    ("/usr/lib/libcuda.so.1: invalid ELF header", "ok"),
)  # fmt: skip
def test_a_libcuda_that_cannot_be_loaded(
    run_probe: RunProbe, monkeypatch: pytest.MonkeyPatch, complaint: str, status: str
) -> None:
    def refuse() -> None:
        raise OSError(complaint)

    monkeypatch.setattr(cuda, "open_api", refuse)
    snapshot, done = run_probe("cuda")
    result = started(snapshot)
    assert (result.code, result.name, result.text) == (-1, "LIBRARY_NOT_FOUND", complaint)
    assert done["status"] == status


def test_bindings_are_not_imported_where_the_loader_finds_no_libcuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_api, "SONAME", "libcuda-of-nowhere.so.1")
    monkeypatch.setattr(driver_api, "BoundDriver", lambda: pytest.fail("it is of no use"))
    with pytest.raises(OSError, match=r"libcuda-of-nowhere.so.1: .*No such file"):
        driver_api.open_api()


@cases("text, canonical",
    ("0000:1B:00.0", "0000:1b:00.0"), ("00000000:1B:00.0", "0000:1b:00.0"), ("00010000:01:1F.7", "10000:01:1f.7"),
    ("1B:00.0", None), ("", None), ("0000:1b:00.8", None),
)  # fmt: skip
def test_bus_ids(text: str, canonical: str | None) -> None:
    assert canonical_bus_id(text) == canonical


# --- through a libcuda ----------------------------------------------------------------------------------------------
@pytest.fixture(scope="module", params=["newer", "older"])
def libcuda(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a compiled libcuda, with or without the entry point that newer bindings insist on."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler to build a libcuda with")
    folder = tmp_path_factory.mktemp(request.param)
    define = ["-DOLD"] if request.param == "older" else []
    command = [compiler, *define, "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", str(folder / "libcuda.so.1")]
    subprocess.run([*command, str(HERE / "fake_libcuda.c"), "-ldl"], check=True)
    return folder


def through(folder: Path, *, bindings: bool = True, **variables: str) -> Snapshot:
    blocked = () if bindings else ("cuda",)
    ran = run_child("cuda", variables={"LD_LIBRARY_PATH": str(folder), **variables}, blocked=blocked)
    assert (ran.status, ran.noise) == ("ok", "")
    return ran.snapshot


@cases("bindings", True, False)
def test_a_libcuda_is_asked_through_the_bindings_and_directly(libcuda: Path, *, bindings: bool) -> None:
    snapshot = through(libcuda, bindings=bindings, FAKE_COUNT="2", FAKE_BUS="0000:43:00.0 0000:1B:00.0")
    result = started(snapshot)
    assert (result.code, result.name, result.library) == (0, "CUDA_SUCCESS", str((libcuda / "libcuda.so.1").resolve()))
    first, second = gpus(snapshot)
    assert (first.pci_bus_id, second.pci_bus_id) == ("0000:43:00.0", "0000:1b:00.0")
    assert (first.cuda_ordinal, second.cuda_ordinal) == (0, 1)
    assert first.uuid == "GPU-10111213-1415-1617-1819-1a1b1c1d1e1f"
    assert (first.name, first.compute_capability, first.sm_count, first.errors) == ("NVIDIA H200", "9.0", 132, ())
    assert snapshot.driver
    assert (snapshot.driver.cuda, snapshot.driver.cuda_devices) == ("13.0", 2)


@cases("bindings", True, False)
@cases("code, name, text",
    (802, "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized"), (4711, "", None),
)  # fmt: skip
def test_statuses_of_a_libcuda(libcuda: Path, code: int, name: str, text: str | None, *, bindings: bool) -> None:
    result = started(through(libcuda, bindings=bindings, FAKE_INIT=str(code)))
    assert (result.code, result.name) == (code, name)
    assert text is None or result.text == text


@cases("bindings", True, False)
def test_a_device_that_is_lost_after_the_start(libcuda: Path, *, bindings: bool) -> None:
    (gpu,) = gpus(through(libcuda, bindings=bindings, FAKE_LOST="999"))
    assert (gpu.label, gpu.cuda_ordinal, gpu.pci_bus_id) == ("cuda-0", 0, None)
    assert {error.code for error in gpu.errors} == {999}


# --- Which library file is mapped, and why one is not ---------------------------------------------------------------
MAPS = """\
5581-5582 r--p 00000000 00:1f 1234                       /usr/bin/python3.11
7f01-7f02 rw-p 00000000 00:00 0
7f02-7f03 r-xp 00000000 00:1f 2001                       {folder}/libcudart.so.12
7f03-7f04 r-xp 00000000 00:1f 2002                       {folder}/with blank/libcuda.so.580.1
7f04-7f05 r-xp 00000000 00:1f 2003                       {folder}/libcuda.so.1
7f05-7f06 rw-p 00000000 00:00 0                          [heap]
"""


def test_the_first_file_with_the_stem_is_named(tmp_path: Path) -> None:
    maps = tmp_path / "maps"
    maps.write_text(MAPS.format(folder=tmp_path))
    assert mapped("libcuda.so", str(maps)) == str(tmp_path / "with blank/libcuda.so.580.1")
    assert mapped("libnvidia-ml.so", str(maps)) is None
    assert mapped("libcuda.so", str(tmp_path / "missing")) is None


def test_links_are_resolved_and_strange_names_stay_printable(tmp_path: Path) -> None:
    (tmp_path / "libcuda.so.580.1").touch()
    (tmp_path / "libcuda.so.1").symlink_to("libcuda.so.580.1")
    maps = tmp_path / "maps"
    maps.write_bytes(f"1-2 r-xp 0 00:1f 1 {tmp_path}/libcuda.so.1\n".encode())
    assert mapped("libcuda.so", str(maps)) == str(tmp_path / "libcuda.so.580.1")
    maps.write_bytes(b"1-2 r-xp 0 00:1f 1 /\xff/libcuda.so.1\n")
    assert mapped("libcuda.so", str(maps)) == "/\ufffd/libcuda.so.1"


def test_this_process_has_the_c_library_mapped() -> None:
    assert ctypes.CDLL(None)
    path = mapped("libc.so") or mapped("ld-linux-x86-64.so") or mapped("ld-linux-aarch64.so")
    assert path
    assert Path(path).is_file()


def test_the_loaders_words(tmp_path: Path) -> None:
    soname = "libof-no-such-thing.so.9"
    complaint = why_not_loadable(soname)
    assert complaint
    assert is_missing(soname, complaint)
    torn = tmp_path / "libtorn.so.1"
    torn.write_text("no library")
    complaint = why_not_loadable(str(torn))
    assert complaint
    assert not is_missing("libtorn.so.1", complaint)


def test_a_library_that_loads_has_nothing_against_it() -> None:
    path = mapped("libc.so")
    if path is None:
        pytest.skip("no libc.so among the mapped files")
    assert why_not_loadable(path) is None
