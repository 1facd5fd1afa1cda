"""The driver probes against Debian's real libraries without a device, also behind a library that is none."""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from elftools.elf.elffile import ELFFile

from envcheck.model.merge import merge
from envcheck.model.snapshot import Gpu, Platform, Snapshot, Variables
from probes import nvml
from probes.common.out import Out
from probes.common.tree import Tree
from tests.cli.calling import ROOT, envcheck
from tests.collect.same_snapshot import differences, steady
from tests.collect.test_collector import collect
from tests.every import cases
from tests.lab import debian_driver
from tests.probes import fake_gpus
from tests.probes.fake_nvml import FakeLibrary, binding, fabric, install, listed
from tests.probes.fake_parent import run_child
from tests.rules.machines import check_of, checks_of

pytestmark = pytest.mark.lab

PROBES = Path(__file__).resolve().parents[2] / "probes"


@pytest.fixture(scope="module", params=["535", "470"])
def driver(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    release: str = request.param
    return release, debian_driver.driver_libraries(release, tmp_path_factory.mktemp(f"driver-{release}"))


Wheel = Callable[[str], Path]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Wheel:
    """``wheel("name==1.0") -> folder``: the distribution and what it needs, unpacked for this interpreter."""

    def install(requirement: str) -> Path:
        folder = tmp_path_factory.mktemp("wheel")
        command = [sys.executable, "-m", "pip", "install", "-q", "--only-binary=:all:", "--target", str(folder)]
        done = subprocess.run([*command, requirement], capture_output=True, text=True, check=False, timeout=300)
        if done.returncode != 0:
            pytest.skip(f"{requirement}: {(done.stderr.strip().splitlines() or ['pip failed'])[-1]}")
        return folder

    return install


def finding(libraries: Path | None) -> dict[str, str | None]:
    return {"LD_LIBRARY_PATH": None if libraries is None else str(libraries)}


@cases("probe", "nvml", "cuda")
def test_asking_makes_no_device_node(probe: str, driver: tuple[str, Path]) -> None:
    node = Path("/dev/nvidiactl")
    if node.exists():
        pytest.skip(f"{node} exists already")
    run_child(probe, variables=finding(driver[1]))
    made = node.exists()
    if made:
        node.unlink()
    assert not made


def test_nvml_without_a_kernel_module(driver: tuple[str, Path]) -> None:
    release, libraries = driver
    ran = run_child("nvml", variables=finding(libraries))
    assert ran.status == "ok"
    result = ran.driver.nvml
    assert result
    assert (result.call, result.code, result.name) == ("nvmlInit", 9, "DRIVER_NOT_LOADED")
    assert result.text == "Driver Not Loaded"
    assert result.library
    assert Path(result.library).parent == libraries.resolve()
    assert Path(result.library).name.startswith(f"libnvidia-ml.so.{release}.")
    assert ran.driver.release is None
    assert ran.snapshot.gpus is None


@cases("through", "installed bindings", "cuda-bindings==12.9.0", "cuda-bindings==13.0.0", "none")
def test_cuda_without_a_kernel_module(driver: tuple[str, Path], wheel: Wheel, through: str) -> None:
    release, libraries = driver
    path = [wheel(through)] if "==" in through else []
    ran = run_child("cuda", path=path, variables=finding(libraries), blocked=("cuda",) if through == "none" else ())
    assert ran.status == "ok"
    result = ran.driver.cuda_init
    assert result
    assert (result.call, result.code, result.name) == ("cuInit", 100, "CUDA_ERROR_NO_DEVICE")
    assert result.text == "no CUDA-capable device is detected"
    assert result.library
    assert Path(result.library).name.startswith(f"libcuda.so.{release}.")
    assert (ran.driver.cuda, ran.driver.cuda_devices) == ({"535": "12.2", "470": "11.4"}[release], 0)
    assert ran.snapshot.gpus is None


# --- what measures, of which only the start can be tried without a device ------------------------------------------
CALLED = re.compile(r"""\bcall\(\s*"(cu[A-Z]\w+)\"""")
ASKED = {"gpu": "GPU-1", "gpus": [{"uuid": "GPU-1"}], "libraries": {}}
START = """
import sys
sys.path[:0] = {path!r}
from probes.measuring import device
from probes.common import harmless
harmless.give_up_making_devices()
try:
    print(device.ordinals())
except Exception as error:
    print(f"{{type(error).__name__}}: {{error}}")
"""


def started(libraries: Path, *path: Path) -> str:
    """How it ends to ask for the GPUs that measurements may use."""
    code = START.format(path=[*map(str, path), *sys.path])
    variables = {**os.environ, "LD_LIBRARY_PATH": str(libraries)}
    command = [sys.executable, "-I", "-c", code]
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=True).stdout.strip()


def test_the_library_has_every_call_that_measures(driver: tuple[str, Path]) -> None:
    called = {name for file in PROBES.rglob("*.py") for name in CALLED.findall(file.read_text(encoding="utf-8"))}
    assert {"cuLaunchKernel", "cuModuleLoadData", "cuEventElapsedTime", "cuTexObjectCreate"} <= called
    with (driver[1] / "libcuda.so.1").open("rb") as file:
        symbols: Any = ELFFile(file).get_section_by_name(".dynsym")
        there = {symbol.name for symbol in symbols.iter_symbols()}
    assert {name for name in called if not {name, f"{name}_v2"} & there} == set()


@cases("through", "cuda-bindings==12.9.0", "cuda-bindings==13.0.0")
def test_older_bindings_start_to_measure(driver: tuple[str, Path], wheel: Wheel, through: str) -> None:
    assert started(driver[1], wheel(through)) == "CudaError: cuInit: CUDA_ERROR_NO_DEVICE (100)"


@cases("probe", "bench.memory", "bench.links")
def test_newer_bindings_say_that_they_cannot_measure(driver: tuple[str, Path], probe: str) -> None:
    release, libraries = driver
    if release == "470":
        ran = run_child(probe, variables=finding(libraries), more={"bench": ASKED})
        assert ran.status == "absent"
        assert re.fullmatch(
            r"cuda-bindings \S+ cannot work with this driver: Failed to get cuGetProcAddress_v2", ran.detail
        )
    else:
        assert started(libraries) == "CudaError: cuInit: CUDA_ERROR_NO_DEVICE (100)"


def test_no_device_node_is_left_behind(driver: tuple[str, Path]) -> None:
    _, libraries = driver
    before = sorted(Path("/dev").glob("nvidia*"))
    for probe in ("nvml", "cuda"):
        run_child(probe, variables=finding(libraries))
    assert sorted(Path("/dev").glob("nvidia*")) == before


@cases("probe, field", ("nvml", "nvml"), ("cuda", "cuda_init"))
def test_no_library_at_all(probe: str, field: str) -> None:
    if sys.platform != "linux" or Path("/proc/driver/nvidia").exists():
        pytest.skip("this machine has a driver of its own")
    ran = run_child(probe, variables=finding(None))
    result = getattr(ran.driver, field)
    assert (result.code, result.name) == (-1, "LIBRARY_NOT_FOUND")
    assert "No such file" in result.text
    assert ran.status == "absent"


@cases("probe, field", ("nvml", "nvml"), ("cuda", "cuda_init"))
def test_a_torn_library_is_not_a_missing_one(driver: tuple[str, Path], tmp_path: Path, probe: str, field: str) -> None:
    _, libraries = driver
    for soname in ("libcuda.so.1", "libnvidia-ml.so.1"):
        (tmp_path / soname).write_bytes((libraries / soname).read_bytes()[:40])
    ran = run_child(probe, variables=finding(tmp_path))
    result = getattr(ran.driver, field)
    assert result.code == -1
    assert str(tmp_path) in result.text
    assert ran.status == "ok"


def read_with(place: str | None, monkeypatch: pytest.MonkeyPatch, gpu: Any) -> Gpu:
    install(monkeypatch, binding(FakeLibrary([gpu], fake_gpus.SYSTEM), place))
    lines: list[bytes] = []
    nvml.collect(Tree({"root": "/nonexistent"}), Out("nvml", lines.append))
    facts = [json.loads(line).get("fact") for line in lines]
    listing = merge(msgspec.convert(fact, Snapshot) for fact in facts if fact).gpus
    assert listing
    (read,) = listing.items
    return read


@cases(
    "requirement, unknown",
    ("nvidia-ml-py==12.535.77", {"addressing_mode", "fabric", "processes"}),
    ("nvidia-ml-py==12.535.161", {"addressing_mode", "fabric"}),
    ("nvidia-ml-py==12.560.30", {"addressing_mode"}),
    ("nvidia-ml-py==12.575.51", {"addressing_mode"}),
    ("nvidia-ml-py==13.580.82", set()),
)
def test_older_bindings_read_the_same(
    wheel: Wheel,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    requirement: str,
    unknown: set[str],
) -> None:
    gpu = {
        **fake_gpus.switched_h200(0x1B),
        "nvmlDeviceGetComputeRunningProcesses_v3": listed([{"pid": 7, "usedGpuMemory": 1 << 30}]),
    }
    place = str(wheel(requirement) / "pynvml.py")
    older, newest = read_with(place, monkeypatch, gpu), read_with(None, monkeypatch, gpu)
    assert newest.fabric
    differing = {name for name in Gpu.__struct_fields__ if getattr(older, name) != getattr(newest, name)}
    assert differing - {"not_supported"} == unknown
    assert all(getattr(older, name) is None for name in unknown)
    assert capsys.readouterr().err == ""


def test_the_fabric_is_read_at_the_drivers_offsets(wheel: Wheel, monkeypatch: pytest.MonkeyPatch) -> None:
    """A binding of that time gives the cluster's UUID 80 bytes, where the driver writes 16."""
    gpu = {**fake_gpus.switched_h200(0x1B), "nvmlDeviceGetGpuFabricInfoV": fabric(999, 3, 1)}
    state = read_with(str(wheel("nvidia-ml-py==12.560.30") / "pynvml.py"), monkeypatch, gpu).fabric
    assert state
    assert (state.state, state.status, state.health) == ("completed", 999, ("degraded_bandwidth",))


def test_the_deprecated_distribution_is_refused_by_name(wheel: Wheel) -> None:
    folder = wheel("pynvml==11.5.3")
    code = f"import sys; sys.path[:0] = {[str(folder), *sys.path]!r}; from probes import nvml; nvml.load_binding()"
    child = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=False)
    assert child.returncode == 1
    assert "the deprecated distribution 'pynvml' hides nvidia-ml-py" in child.stderr


# --- the helper -----------------------------------------------------------------------------------------------------
def test_sources_of_both_formats_are_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debian_driver, "SOURCES", tmp_path)
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"VERSION_CODENAME": "bookworm"})
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list").write_text(
        "# deb http://mirror.invalid/no bookworm main\n"
        "deb [arch=amd64 signed-by=/k.gpg] http://mirror.invalid/one bookworm main contrib # ours\n"
        "deb http://mirror.invalid/other stable main\n"
    )
    (tmp_path / "sources.list.d/debian.sources").write_text(
        "Types: deb deb-src\n# why\nURIs: http://mirror.invalid/two\nSuites: bookworm bookworm-updates\n"
        "Components: main\nSigned-By:\n -----BEGIN\n .\n -----END\n"
    )
    assert list(debian_driver._debian_sources()) == [
        {
            "Types": "deb",
            "URIs": "http://mirror.invalid/two",
            "Suites": "bookworm",
            "Components": "non-free",
            "Signed-By": "\n -----BEGIN\n .\n -----END",
        },
        {
            "Types": "deb",
            "URIs": "http://mirror.invalid/one",
            "Suites": "bookworm",
            "Components": "non-free",
            "Signed-By": "/k.gpg",
        },
    ]


def test_the_collector_finds_what_a_check_finds(driver: tuple[str, Path], tmp_path: Path) -> None:
    """Libraries of a driver that drives nothing: NVML and CUDA are asked, and both say so."""
    variables = {"LD_LIBRARY_PATH": str(driver[1]), "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    collected = collect(tmp_path, "--python", sys.prefix, **variables)
    assert collected.returncode == 0, collected.stderr
    judged = envcheck("check", "--from", "-", "--json", cwd=tmp_path, stdin=collected.stdout)
    ours = json.loads(envcheck("check", "--python", sys.prefix, "--json", cwd=tmp_path, **variables).out)
    theirs = json.loads(judged.out)
    assert driver[0] in json.dumps(ours["snapshot"]["driver"])
    assert list(differences(steady(ours["snapshot"]), steady(theirs["snapshot"]))) == []
    assert [check["id"] for check in theirs["checks"]] == [check["id"] for check in ours["checks"]]


# --- A driver library that is none, first on LD_LIBRARY_PATH before Debian's real ones ------------------------------
STUB = "int cuInit(unsigned f){return 34;} int cuDriverGetVersion(int*v){*v=12080;return 0;}"
CUDA, NVML = "libcuda.so.1", "libnvidia-ml.so.1"


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return debian_driver.driver_libraries("535", tmp_path_factory.mktemp("driver"))


def empty(place: Path, _real: Path) -> None:
    place.write_bytes(b"")


def text(place: Path, _real: Path) -> None:
    place.write_text("version https://git-lfs.github.com/spec/v1\n")


def cut(place: Path, real: Path) -> None:
    place.write_bytes((real / place.name).read_bytes()[:200_000])


def folder(place: Path, _real: Path) -> None:
    place.mkdir()


def stub(place: Path, _real: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    source = place.with_suffix(".c")
    source.write_text(STUB)
    subprocess.run(["gcc", "-shared", "-fPIC", f"-Wl,-soname,{CUDA}", "-o", place, source], check=True)


def seen(probe: str, path: str) -> Snapshot:
    """What a probe tells; nothing where its process dies of the library."""
    try:
        return run_child(
            probe, variables={"LD_LIBRARY_PATH": path}, more={"variables": {"LD_LIBRARY_PATH": path}}
        ).snapshot
    except AssertionError:
        return Snapshot()


def judged(first: Path, real: Path) -> Snapshot:
    """What the probes see of a machine on whose path ``first`` lies before the real driver."""
    path = f"{first}:{real}"
    parts = [seen(name, path) for name in ("driver_files", "nvml", "cuda")]
    named = Variables(source="process", values={"LD_LIBRARY_PATH": path}, complete=True)
    return merge([*parts, Snapshot(variables=named, platform=Platform(os="linux", container="none"))])


@cases("damage, name, why",
    (empty, CUDA, "it is empty"), (text, CUDA, "it is not an ELF file"), (cut, CUDA, "it is cut off"),
    (folder, CUDA, "it is a folder"), (stub, CUDA, "it is a link-time stub"), (empty, NVML, "it is empty"),
    (cut, NVML, "it is cut off"),
)  # fmt: skip
def test_the_file_and_the_variable_are_named(
    damage: Callable[[Path, Path], None], name: str, why: str, real: Path, tmp_path: Path
) -> None:
    damage(tmp_path / name, real)
    found = check_of("driver-library-unusable", judged(tmp_path, real))
    assert found.status == "fail"
    assert f"{tmp_path / name}: {why}" in found.message
    assert found.fixes[0].command == ("env", f"LD_LIBRARY_PATH={real}", "python")


def test_the_real_libraries_alone_are_no_finding(real: Path, tmp_path: Path) -> None:
    assert checks_of("driver-library-unusable", judged(tmp_path, real)) == ()


def test_following_the_fix_ends_the_finding(real: Path, tmp_path: Path) -> None:
    empty(tmp_path / CUDA, real)
    _, setting, _ = check_of("driver-library-unusable", judged(tmp_path, real)).fixes[0].command
    done = subprocess.run(
        ["python3", "-c", f"import ctypes; print(ctypes.CDLL({CUDA!r}).cuDriverGetVersion(None))"],
        env={**os.environ, "LD_LIBRARY_PATH": setting.partition("=")[2]}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "1"  # the real library answers that no place for the version was given
