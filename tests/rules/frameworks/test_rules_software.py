"""The rules about frameworks and environments, judged by the real matrix."""

from typing import Any

from envcheck.model.snapshot import Driver, Framework, Gpu, Listing, Platform, Snapshot
from tests.every import cases
from tests.rules.machines import (
    UBUNTU,
    VENV,
    but,
    check_of,
    driver,
    geforce,
    gpus,
    h200,
    kernel,
    machine,
    on_the_bus,
    said,
    torch,
    venv,
    with_venv,
    without_gpu,
)
from tests.rules.packages.packages_here import dist

V100 = h200(name="Tesla V100-SXM2-32GB", compute_capability="7.0", pci_device_id="10de:1db5")
GTX_1080_TI = geforce("NVIDIA GeForce GTX 1080 Ti", "6.1", "10de:1b06")
RTX_5060_TI = geforce("NVIDIA GeForce RTX 5060 Ti", "12.0", "10de:2d04")
CU128 = ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "compute_120")
PIP = f"{VENV}/bin/python -m pip"
CUPY = Framework(source="file", name="cupy-cuda11x", version="13.6.0", cuda="11", path="/s/cupy", cpu_only=False)


def on(release: str, framework: Framework, *found: object, **changes: object) -> Snapshot:
    """A machine with this driver and framework."""
    snapshot = machine(*found, driver=driver(release, cuda=None), kernel=kernel(release=release))  # type: ignore[arg-type]
    return but(with_venv(snapshot, venv(framework)), **changes)


CPU_BUILD = torch("2.5.1+cpu", None)
CU130 = torch("2.11.0+cu130", "13.0", gpu_code=("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"))
PTX_ONLY = torch("2.4.0+cu124", "12.4", gpu_code=("sm_80", "compute_90"))
CLANGS_PTX = but(torch("2.19.1", "12.5", gpu_code=("sm_89", "compute_90")), name="tensorflow")  # of CUDA 12.3

CASES: list[tuple[str, str, Snapshot, tuple[str, ...]]] = [
    ("driver-too-old", "CUDA 13 on 570", on("570.86.10", CU130), ("fail",)),
    ("driver-too-old", "CUDA 12 on 470", on("470.103.01", torch()), ("fail",)),
    ("driver-too-old", "CUDA 12.4 on 535, one major", on("535.183.01", torch()), ("pass",)),
    ("driver-too-old", "CUDA 10.2 on 435", on("435.21", torch("1.7.1", "10.2")), ("fail",)),
    ("driver-too-old", "a driver newer than the data", on("999.10", torch()), ("pass",)),
    ("driver-too-old", "a CUDA newer than the data, on a driver that speaks it",
     on("999.10", torch("9.9.0", "99.1"), driver__cuda="99.1"), ("pass",)),
    ("driver-too-old", "a CUDA newer than the data, on a driver that nobody knows",
     on("998.10", torch("9.9.0", "99.1")), ("unknown",)),
    ("driver-too-old", "the framework says that it works", on("570.86.10", but(CU130, gpu_available=True)), ("pass",)),
    ("driver-too-old", "PTX of a newer toolkit", on("535.183.01", PTX_ONLY), ("fail",)),
    ("driver-too-old", "PTX on a driver that can compile it", on("550.54.14", PTX_ONLY), ("pass",)),
    ("driver-too-old", "PTX that is older than its toolkit", on("550.54.14", CLANGS_PTX), ("pass",)),
    ("driver-too-old", "PTX that is newer than the driver", on("535.183.01", CLANGS_PTX), ("fail",)),
    ("driver-too-old", "a CPU build", with_venv(machine(), venv(CPU_BUILD)), ()),
    ("driver-too-old", "a ROCm build",
     with_venv(machine(), venv(torch("2.5.1+rocm6.2", None, cpu_only=False, hip="6.2"))), ()),
    ("driver-too-old", "CUDA version not known",
     with_venv(machine(), venv(torch(version="0.1.0", cuda=None, cpu_only=None))), ("skipped",)),
    ("driver-too-old", "a Jetson", on("35.4", torch(), platform=but(UBUNTU, tegra_release="36.4.0")), ()),
    ("driver-too-old", "driver not known", machine(driver=None, kernel=None), ("skipped",)),
    ("driver-too-old", "by the kernel module", machine(driver=None), ("pass",)),
    ("driver-too-old", "unreadable", machine(driver=driver("newest", cuda=None)), ("unknown",)),
    ("driver-older-than-toolkit", "older, one major", on("535.183.01", torch()), ("note",)),
    ("driver-older-than-toolkit", "as new", on("550.54.14", torch()), ()),
    ("driver-older-than-toolkit", "too old", on("470.103.01", torch()), ()),
    ("driver-older-than-toolkit", "driver not known", machine(driver=None), ()),
    ("cpu-only-build", "beside a GPU", with_venv(machine(), venv(CPU_BUILD)), ("fail",)),
    ("cpu-only-build", "beside a GPU on the bus", with_venv(machine(on_the_bus(h200())), venv(CPU_BUILD)), ("fail",)),
    ("cpu-only-build", "for ROCm", with_venv(machine(), venv(torch("2.5.1+rocm6.2", None, cpu_only=False, hip="6.2"))),
     ("fail",)),
    ("cpu-only-build", "a CUDA build", machine(), ("pass",)),
    ("cpu-only-build", "no GPU", with_venv(without_gpu(), venv(CPU_BUILD)), ("note",)),
    ("cpu-only-build", "a GPU kept for a guest", with_venv(machine(on_the_bus(h200(), "vfio-pci")), venv(CPU_BUILD)),
     ("note",)),
    ("cpu-only-build", "not known", with_venv(machine(), venv(torch("0.1.0", None, cpu_only=None))), ("skipped",)),
    ("gpu-code-missing", "H100 code for an H200", machine(), ("pass",)),
    ("gpu-code-missing", "Hopper with a cu117 build",
     on("535.183.01", torch("2.0.1+cu117", "11.7", gpu_code=("sm_80", "sm_86"))), ("fail",)),
    ("gpu-code-missing", "Pascal with a cu128 build",
     on("570.86.10", torch("2.7.0+cu128", "12.8", gpu_code=CU128), GTX_1080_TI), ("fail",)),
    ("gpu-code-missing", "Blackwell with a cu124 build", on("570.86.10", torch(), RTX_5060_TI), ("fail",)),
    ("gpu-code-missing", "a higher minor of the same major",
     on("570.86.10", torch(), geforce("NVIDIA L4", "8.9", "10de:27b8")), ("pass",)),
    ("gpu-code-missing", "PTX for a newer GPU",
     on("570.86.10", torch("2.7.0+cu128", "12.8", gpu_code=("sm_80", "compute_90")), RTX_5060_TI), ("pass",)),
    ("gpu-code-missing", "one of two GPUs",
     on("570.86.10", torch("2.7.0+cu128", "12.8", gpu_code=CU128), h200(0),
       but(GTX_1080_TI, pci_bus_id="0000:99:00.0", uuid="GPU-9", index=1, cuda_ordinal=1)), ("warn",)),
    ("gpu-code-missing", "a GPU that CUDA does not enumerate",
     on("570.86.10", torch("2.7.0+cu128", "12.8", gpu_code=CU128), h200(0),
       but(GTX_1080_TI, pci_bus_id="0000:99:00.0", uuid="GPU-9", index=1, cuda_ordinal=None)), ("pass",)),
    ("gpu-code-missing", "by the matrix, where the file does not tell",
     on("535.183.01", torch("2.0.1+cu117", "11.7", gpu_code=None)), ("fail",)),
    ("gpu-code-missing", "what compiles its code, with a CUDA that dropped the GPU",
     on("580.65.06", but(CUPY, name="cupy-cuda13x", cuda="13"), V100), ("fail",)),
    ("gpu-code-missing", "with a CUDA from before the GPU", on("570.86.10", CUPY, RTX_5060_TI), ("fail",)),
    ("gpu-code-missing", "no GPU", with_venv(without_gpu(), venv(torch())), ()),
    ("gpu-code-missing", "a CPU build", with_venv(machine(), venv(CPU_BUILD)), ()),
    ("gpu-code-missing", "code not known", on("550.54.14", torch("2.5.1+custom", "12.0", gpu_code=None)), ("skipped",)),
    ("gpu-code-missing", "capability not known",
     with_venv(machine(h200(name="NVIDIA New", compute_capability=None, pci_device_id=None)), venv(torch())),
     ("unknown",)),
    ("python-unsupported", "too new", with_venv(machine(), venv(torch("2.0.1+cu118", "11.8"), python="3.13.1")),
     ("warn",)),
    ("python-unsupported", "fits", machine(), ("pass",)),
    ("python-unsupported", "it works all the same",
     with_venv(machine(), venv(torch("2.0.1+cu118", "11.8", gpu_available=True), python="3.13.1")), ("pass",)),
    ("python-unsupported", "a release that nobody knows", with_venv(machine(), venv(torch("99.0.0", "12.4"))), ()),
    ("python-unsupported", "another framework", with_venv(machine(), venv(Framework(name="jax", version="0.4.30"))),
     ("pass",)),
    ("python-unsupported", "Python not known", with_venv(machine(), venv(torch(), python=None)), ("skipped",)),
    ("environment-broken", "broken",
     with_venv(machine(), venv(problem="its base interpreter /usr/bin/python3.9 is gone")), ("fail",)),
    ("environment-broken", "whole", machine(), ("pass",)),
    ("environment-broken", "another one is broken",
     with_venv(machine(), venv(torch()), venv(key="/b", judged=False, problem="gone")), ("pass",)),
    ("environment-broken", "nobody looked", machine(environments=None), ()),
    ("environment-moved", "moved", with_venv(machine(), venv(torch(), moved_from="/home/me/old/.venv")), ("warn",)),
    ("environment-moved", "where it was made", machine(), ()),
    ("environment-moved", "no Python either",
     with_venv(machine(), venv(moved_from="/home/me/old/.venv", problem="its base interpreter is gone")), ()),
    ("environment-moved", "nobody looked", machine(environments=None), ()),
    ("no-framework", "none", with_venv(machine(), venv()), ("note",)),
    ("no-framework", "one", machine(), ("pass",)),
    ("no-framework", "the list is not complete",
     with_venv(machine(), venv(frameworks=Listing(items=(), complete=False))), ("skipped",)),
    ("no-framework", "a broken environment", with_venv(machine(), venv(problem="gone")), ()),
]  # fmt: skip


@cases(
    "changes, title, fix",
    ({"why": "--python", "problem": "it does not exist"}, "--python does not lead to a Python environment",
     "Name with --python an interpreter (FOLDER/bin/python), the folder of an environment, or a program on PATH"),
    ({"why": "VIRTUAL_ENV", "problem": "it does not exist"}, "VIRTUAL_ENV does not lead to a Python environment",
     "Deactivate the missing environment, or create it again"),
    ({"why": "PATH", "problem": "pyenv selects 3.9.9 (PYENV_VERSION), which is not installed"},
     "PATH does not lead to a Python environment", "Judge another interpreter"),
    ({"prefix": VENV, "problem": "its base interpreter /usr/bin/python3.9 is gone"},
     "The Python environment is broken or cannot be examined",
     "Create the environment again on this system, and install what it needs"),
    ({"prefix": VENV, "manager": "conda", "problem": "it is a conda environment without Python"},
     "The Python environment is broken or cannot be examined", "Install Python into the environment"),
)  # fmt: skip
def test_what_is_wrong_with_a_path_or_an_environment(changes: dict[str, str], title: str, fix: str) -> None:
    nothing = venv(key="/home/ada/nowhere", prefix=None, executable=None, manager=None)
    found = check_of("environment-broken", with_venv(machine(), but(nothing, **changes)))
    assert (found.title, found.fixes[0].text) == (title, fix)
    assert changes["problem"] in found.message
    assert all("nowhere" not in word for fix in found.fixes for word in fix.command)


WSL = Platform(source="procfs", os="linux", container="none", wsl=True, machine="x86_64")
OLD_GPU = but(GTX_1080_TI, pci_bus_id="0000:99:00.0", uuid="GPU-9", index=1, cuda_ordinal=1)
A10 = Gpu(source="pasted text", label="pasted-0", index=0, name="NVIDIA A10")
PASTED = but(on("535.183.01", torch()), driver=Driver(source="pasted text", release="535.183.01"), gpus=gpus(A10))
ANSWERED = with_venv(PASTED, venv(torch(source="pasted text", gpu_available=True)))
OTHER = venv(torch(), key="/opt/ml", prefix="/opt/ml", executable="/opt/ml/bin/python", judged=False)
TOO_OLD, NO_CODE = "driver-too-old", "gpu-code-missing"


@cases("rule, about, there, expected",
    *CASES,
    (NO_CODE, "the GPUs without are named",
     on("570.86.10", torch("2.7.0+cu128", "12.8", gpu_code=CU128), h200(0), OLD_GPU),
     {"title": "torch 2.7.0+cu128 has no code for GPU 1 (NVIDIA GeForce GTX 1080 Ti)",
      "message": "…Without code: GPU 1 (NVIDIA GeForce GTX 1080 Ti)…"}),
    (NO_CODE, "what the driver compiles",
     on("570.86.10", torch("2.7.0+cu128", "12.8", gpu_code=("sm_80", "compute_90")), RTX_5060_TI),
     {"message": "…only PTX (compute_90) for the driver to compile…"}),
    (NO_CODE, "a file decided", on("570.86.10", torch(gpu_code=("sm_80",))), {"decided_by": "declared"}),
    (NO_CODE, "a row decided", on("535.183.01", torch("2.0.1+cu117", "11.7", gpu_code=None)),
     {"decided_by": "inferred", "sources": ...}),
    (NO_CODE, "a Volta keeps its own in builds that have it", on("550.54.14", torch(), V100), ("pass",)),
    (NO_CODE, "a Volta loses its own", but(on("580.65.06", CU130, V100), gpus=gpus(V100)), ("fail",)),
    (TOO_OLD, "the framework decided", on("570.86.10", but(CU130, gpu_available=True)),
     {"decided_by": "framework-ran"}),
    # That a pasted list holds a GPU is declared; only what the framework itself answered counts as having run
    ("gpu-unsupported-by-driver", "a text is no answer of the driver", PASTED,
     {"status": "pass", "decided_by": "declared"}),
    ("gpu-unsupported-by-driver", "the driver answers", machine(), {"decided_by": "driver-answered"}),
    (TOO_OLD, "a text is no answer of a framework", PASTED, {"decided_by": "inferred"}),
    (TOO_OLD, "what a framework answers in a text", ANSWERED, {"decided_by": "framework-ran"}),
    (TOO_OLD, "the rows that decided", on("570.86.10", CU130),
     {"title": "Driver 570.86.10 is too old for torch 2.11.0+cu130", "message": "…580…", "sources": ...}),
    (TOO_OLD, "Windows' numbers count inside WSL", on("551.88", torch(), platform=WSL), ("pass",)),
    (TOO_OLD, "Windows' numbers, too old", on("526.47", torch(), platform=WSL), ("fail",)),
    (TOO_OLD, "such a number of Linux", on("526.47", torch(), platform=UBUNTU), ("pass",)),
    ("cpu-only-build", "its environment is shown", with_venv(machine(), venv(CPU_BUILD)),
     {"title": "PyTorch cannot use the GPU: CPU-only build", "evidence": {f"{VENV} (VIRTUAL_ENV, Python 3.12.3)"}}),
    ("cpu-only-build", "the judged environment alone is judged",
     with_venv(machine(), venv(torch()), venv(CPU_BUILD, key="/other", judged=False)), ("pass",)),
    ("no-framework", "another environment with one is named", with_venv(machine(), venv(), OTHER),
     {"message": "…/opt/ml has torch 2.5.1+cu124…", "fix": "envcheck check --python /opt/ml/bin/python"}),
    ("no-framework", "there is no other", with_venv(machine(), venv()), {"fixes": ()}),
    ("gpu-code-missing", "another package of CuPy is for that GPU",
     with_venv(on("570.86.10", CUPY, RTX_5060_TI), but(venv(CUPY), distributions=(dist("cupy-cuda11x", "13.6.0"),))),
     {"fixes": (f"{PIP} uninstall --yes cupy-cuda11x", f"{PIP} install cupy-cuda12x==13.6.0")}),
    ("environment-broken", "says what is wrong", with_venv(machine(), venv(problem="its base interpreter is gone")),
     {"message": "…its base interpreter is gone…"}),
    ("environment-broken", "a Python without the right to run is not replaced",
     with_venv(machine(), venv(problem=f"{VENV}/bin/python3 is not executable", manager="venv")),
     {"fix": f"chmod -R a+x {VENV}/bin"}),
)  # fmt: skip
def test_what_rules_say(rule: str, about: str, there: Snapshot, expected: Any) -> None:
    assert said(rule, there, expected) == expected


def test_sources_tell_the_day_on_which_they_were_read() -> None:
    found = check_of(TOO_OLD, on("570.86.10", CU130))
    assert all(source.address and source.read for source in found.sources)
