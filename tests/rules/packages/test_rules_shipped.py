"""Packages of which files are not those that were installed: what that costs whom, and what is installed again."""

from typing import Any

from envcheck.model.checks import Check
from envcheck.model.snapshot import (
    Damaged,
    DamagedFile,
    Distribution,
    Environment,
    Framework,
    Library,
    Listing,
    Load,
    Shipped,
    Trial,
)
from tests.every import cases, every
from tests.rules.machines import (
    VENV,
    but,
    cause,
    check_of,
    checks_of,
    framework,
    machine,
    open_fails,
    said,
    torch,
    venv,
    with_venv,
)

SITE = f"{VENV}/lib/python3.12/site-packages"
UMATH = "numpy/_core/_multiarray_umath.so"
PIP = f"{VENV}/bin/python -m pip install --force-reinstall --no-deps"


def wheel(name: str, version: str, *requires: str, **changes: Any) -> Distribution:
    path = f"{SITE}/{name}-{version}.dist-info"
    known = Distribution(source="wheel metadata", name=name, version=version, path=path, channel="pip", record=True)
    return but(known, requires=requires, **changes)


def damaged(package: str, version: str, path: str, kind: str, **more: Any) -> DamagedFile:
    source = f"file {SITE}/{package}-{version}.dist-info/RECORD"
    whole = {"path": f"{SITE}/{path}", "package": package, "version": version, "kind": kind, "source": source, **more}
    return DamagedFile(**whole)


CUPY = framework("cupy-cuda12x", "14.2.0", path=f"{SITE}/cupy")
WHEELS = (
    wheel("cupy-cuda12x", "14.2.0", "numpy>=2.0", "scipy>=1.14; extra == 'all'", "tomli; python_version < '3'"),
    wheel("numpy", "2.4.6"), wheel("scipy", "1.17.0"), wheel("tomli", "2.0"), wheel("setuptools", "80.0"),
)  # fmt: skip


def holding(
    *files: DamagedFile, wheels: tuple[Distribution, ...] = WHEELS, frameworks: tuple[Framework, ...] = (CUPY,),
    **changes: Any,
) -> Environment:  # fmt: skip
    shipped = Shipped(source="wheel metadata", packages=("numpy",), files=12, damaged=files, complete=True)
    own: dict[str, Any] = {"shipped": shipped, "damaged": (), "distributions": wheels, "distributions_complete": True}
    return but(venv(), frameworks=Listing(items=frameworks, complete=True), **{**own, **changes})


def judged(*files: DamagedFile) -> Check:
    return check_of("damaged-distribution", with_venv(machine(), holding(*files)))


def imported(**trial: Any) -> tuple[Framework, ...]:
    return (but(CUPY, trial=Trial(source="trial", **{"imported": True, **trial})),)


GONE, INIT = damaged("numpy", "2.4.6", UMATH, "missing"), damaged("numpy", "2.4.6", "numpy/__init__.py", "missing")
CUT = damaged("numpy", "2.4.6", "numpy/a.so", "size", problem="it is cut off")
NOT_THERE = damaged("numpy", "2.4.6", "numpy/core/z.so", "missing")
EMPTY_INIT = damaged("numpy", "2.4.6", "numpy/__init__.py", "size", problem="it is empty", found="0 bytes")
CHANGED = damaged("numpy", "2.4.6", UMATH, "hash")
STRIPPED = damaged("numpy", "2.4.6", UMATH, "size", recorded="9 bytes", found="5 bytes", stripped=True)
CLAIMED = [damaged(*each, "shared/__init__.py", "hash") for each in (("numpy", "2.4.6"), ("tomli", "2.0"))]
SEVERAL = (
    damaged("scipy", "1.17.0", "scipy/__init__.py", "size"), GONE,
    damaged("cupy-cuda12x", "14.2.0", "cupy/__init__.py", "missing"),
)  # fmt: skip
THROUGH = (wheel("cupy-cuda12x", "14.2.0", "scipy"), wheel("scipy", "1.17.0", "numpy"), wheel("numpy", "2.4.6"))
HASHED = Shipped(source="wheel metadata", packages=("numpy",), files=19696, bytes=1 << 30, complete=True)
OTHER_HASH = Shipped(source="wheel metadata", complete=True, damaged=(
    damaged("numpy", "2.4.6", UMATH, "hash", recorded="sha256=a", found="sha256=b"),))  # fmt: skip
IS_DAMAGED = "numpy 2.4.6 is damaged"


@cases("about, there, expected",
    ("all is as it was installed", holding(),
     {"title": "The records of the 5 installed packages are intact; 12 files checked by size"}),
    ("all is so by hash", holding(verified=HASHED), {"title": "…19,696 files checked by hash"}),
    ("a package that a framework requires is gone", holding(INIT, GONE),
     {"status": "fail", "title": f"{IS_DAMAGED}: 2 files are missing", "fixes": (f"{PIP} numpy==2.4.6",),
      "message": "numpy 2.4.6, which cupy-cuda12x requires: numpy/__init__.py is missing; …"}),
    ("a title says of each file what holds for it", holding(NOT_THERE, CUT),
     {"title": f"{IS_DAMAGED}: z.so is missing, 1 more differs", "what": ["…numpy/core/z.so"],
      "message": "numpy 2.4.6, which cupy-cuda12x requires: numpy/core/z.so is missing; numpy/a.so is damaged…"}),
    ("a file that is cut off", holding(CUT), {"title": f"{IS_DAMAGED}: a.so cannot be loaded"}),
    ("beside data that are gone", holding(CUT, damaged("numpy", "2.4.6", "numpy/notes.txt", "missing")),
     {"title": f"{IS_DAMAGED}: a.so cannot be loaded"}),
    ("an empty file is called so", holding(EMPTY_INIT), {"title": f"{IS_DAMAGED}: __init__.py is empty"}),
    ("what a framework requires through another counts", holding(GONE, wheels=THROUGH), ("fail",)),
    ("a framework that was imported can be", holding(GONE, frameworks=imported()), ("warn",)),
    ("what it imports later is lost", holding(INIT, frameworks=imported(ran_on_gpu=True)), ("fail",)),
    ("overwritten machine code, to which a trial did not come",
     holding(CHANGED, frameworks=imported(ran_on_gpu=True)),
     {"status": "fail", "title": f"{IS_DAMAGED}: _multiarray_umath.so differs"}),
    ("a file that several packages claim, and that is none of theirs", holding(*CLAIMED), ("note",)),
    ("a file that one of them claims", holding(CLAIMED[0]), ("warn",)),
    ("a stripped library of a framework that cannot be imported",
     holding(STRIPPED, frameworks=imported(imported=False, error="crashed: SIGSEGV while importing cupy")), ("fail",)),
    ("a library of another length was made so, whatever its hash",
     holding(damaged("numpy", "2.4.6", UMATH, "size"), verified=OTHER_HASH), ("warn",)),
    ("what stops a framework is installed first and together", holding(*SEVERAL),
     {"title": "numpy and 2 more packages are damaged",
      "fixes": (f"{PIP} numpy==2.4.6 cupy-cuda12x==14.2.0", f"{PIP} scipy==1.17.0")}),
    ("a build of PyTorch comes from its own index, and uv leaves its cache alone",
     holding(damaged("torch", "2.5.1+cu124", "torch/_C.so", "missing"), wheels=(wheel("torch", "2.5.1+cu124"),),
             frameworks=(torch(),), manager="uv"),
     {"fix": f"uv pip install --python {VENV} --reinstall --no-deps --no-cache torch==2.5.1+cu124 "
             "--index-url https://download.pytorch.org/whl/cu124"}),
    ("a package without its list of files cannot be removed first",
     holding(GONE, wheels=(WHEELS[0], wheel("numpy", "2.4.6", record=False))), {"fix": {"--ignore-installed"}}),
)  # fmt: skip
def test_shipped_files(about: str, there: Environment, expected: Any) -> None:
    assert said("damaged-distribution", there, expected) == expected


@every(
    (damaged("numpy", "2.4.6", UMATH, "size", problem="it is cut off: 5 of at least 9 bytes are there"), "fail"),
    (damaged("numpy", "2.4.6", UMATH, "content", problem="it is not an ELF file"), "fail"),
    (damaged("numpy", "2.4.6", UMATH, "hash"), "fail"),
    (damaged("numpy", "2.4.6", UMATH, "size"), "warn"),
    (damaged("numpy", "2.4.6", "numpy/__init__.py", "size"), "warn"),
    (damaged("numpy", "2.4.6", "numpy/__init__.py", "hash"), "warn"),
    (damaged("numpy", "2.4.6", "numpy/__init__.py", "size", problem="it is empty"), "fail"),
    (damaged("numpy", "2.4.6", "numpy/_core/umath.py", "missing"), "fail"),
    (damaged("numpy", "2.4.6", "numpy/_core/umath.py", "missing", aside=True), "warn"),
    (damaged("numpy", "2.4.6", "numpy/bin/program", "missing"), "fail"),
    (damaged("numpy", "2.4.6", "numpy/bin/program", "missing", aside=True), "warn"),
    (damaged("numpy", "2.4.6", "numpy/bin/program", "size"), "warn"),
    (damaged("numpy", "2.4.6", "numpy/lib/libdevice.10.bc", "missing"), "fail"),
    (damaged("scipy", "1.17.0", "scipy/__init__.py", "missing"), "warn"),
    (damaged("tomli", "2.0", "tomli/__init__.py", "missing"), "warn"),
    (damaged("setuptools", "80.0", "setuptools/__init__.py", "missing"), "warn"),
)
def test_what_stops_an_import_is_a_failure(file: DamagedFile, status: str) -> None:
    assert judged(file).status == status


EMPTY = "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"


@every(
    STRIPPED,
    damaged("numpy", "2.4.6", "numpy/py.typed", "hash"),
    damaged("numpy", "2.4.6", "numpy/config.json", "size"),
    damaged("numpy", "2.4.6", "numpy/version.py", "hash"),
    damaged("numpy", "2.4.6", "numpy/ns/__init__.py", "hash", recorded=EMPTY),
    damaged("numpy", "2.4.6", "numpy/ns/__init__.py", "size", recorded="0 bytes"),
    damaged("setuptools", "80.0", "_distutils_hack/__init__.py", "hash"),
    damaged("setuptools", "80.0", "distutils-precedence.pth", "hash"),
)
def test_what_images_change_innocently_is_a_note(file: DamagedFile) -> None:
    check = judged(file)
    assert (check.status, check.fixes) == ("note", ())
    worse = judged(file, damaged("scipy", "1.17.0", "scipy/__init__.py", "hash"))
    assert (worse.status, worse.title) == ("warn", "scipy 1.17.0 was changed after installation: __init__.py differs")


# --- A library that the loader gives up at ----------------------------------------------------------------------------
CUBLAS = f"{SITE}/nvidia/cublas/lib/libcublasLt.so.12"
LOADS = (
    Load(source="elf x", name="libcublasLt.so.12", needed_by=f"{SITE}/torch/lib/libtorch_global_deps.so", path=CUBLAS,
         refused="it is cut off: 5000 of at least 13448 bytes are there"),
)  # fmt: skip


def test_a_damaged_library_of_a_wheel_is_a_failure_beside_others_that_use_the_gpu() -> None:
    pytorch = but(torch(), loads=LOADS, loads_complete=True)
    jax = framework("jax", "0.6.0", cuda="12.8", loads=(), loads_complete=True)
    file = damaged("nvidia-cublas-cu12", "12.4.5.8", CUBLAS[len(SITE) + 1 :], "size", problem=LOADS[0].refused)
    found = but(
        venv(),
        damaged=(),
        distributions=(wheel("torch", "2.5.1"), wheel("nvidia-cublas-cu12", "12.4.5.8")),
        shipped=Shipped(source="wheel metadata", damaged=(file,)),
        frameworks=Listing(items=(pytorch, jax), complete=True),
    )
    (check,) = (each for each in checks_of("library-not-found", with_venv(machine(), found)) if each.status != "pass")
    assert (check.subject.key, check.status) == (f"{VENV}:torch", "fail")
    assert "of nvidia-cublas-cu12 12.4.5.8 cannot be loaded: it is cut off" in check.message
    assert [fix.command for fix in check.fixes] == [tuple(f"{PIP} nvidia-cublas-cu12==12.4.5.8".split())]
    assert open_fails(with_venv(machine(), found)) == ["damaged-distribution"]
    assert check.explained_by == f"damaged-distribution@{VENV}"


LOST = "files that its RECORD lists are gone: libcudnn.so.9"


@cases("copy", "missing", "/usr/local/cuda/lib64/libcudnn.so.9", "/usr/lib/libcudnn.so.8")
def test_a_library_that_is_gone_from_its_wheel_is_told_with_the_wheel(copy: str) -> None:
    """By whatever finding: nowhere else, in a toolkit where the loader does not look, or of another major."""
    lost = Load(
        source="elf x",
        name="libcudnn.so.9",
        needed_by=f"{SITE}/torch/lib/libtorch_cuda.so",
        unfound=(copy,) if copy.endswith(".9") else (),
    )
    file = damaged("nvidia-cudnn-cu12", "9.1.0.70", "nvidia/cudnn/lib/libcudnn.so.9", "missing")
    wheels = (wheel("torch", "2.5.1", "nvidia-cudnn-cu12"), wheel("nvidia-cudnn-cu12", "9.1.0.70"))
    found = but(venv(but(torch(), loads=(lost,), loads_complete=True)), distributions=wheels, damaged=())
    snapshot = machine(libraries=Listing(items=(Library(source="x", path=copy, family="cudnn"),), complete=True))
    if copy == "missing":
        snapshot = machine()
    by_record = Damaged(source="x", path=wheels[1].path or "", problem=LOST)
    for state in ({"shipped": Shipped(source="wheel metadata", damaged=(file,))}, {"damaged": (by_record,)}):
        assert open_fails(with_venv(snapshot, but(found, **state))) == ["damaged-distribution"]
    whole = with_venv(snapshot, found)
    assert open_fails(whole)
    assert "damaged-distribution" not in open_fails(whole)


def test_a_library_that_no_damaged_package_brings_is_told_apart() -> None:
    """SymPy's damage is not why there is no cuDNN."""
    lost = Load(source="elf x", name="libcudnn.so.9", needed_by=f"{SITE}/torch/lib/libtorch_cuda.so")
    file = damaged("sympy", "1.13.1", "sympy/__init__.py", "missing")
    found = but(
        venv(but(torch(), loads=(lost,), loads_complete=True)),
        distributions=(wheel("torch", "2.5.1", "sympy"), wheel("sympy", "1.13.1")),
        damaged=(),
        shipped=Shipped(source="wheel metadata", damaged=(file,)),
    )
    assert sorted(open_fails(with_venv(machine(), found))) == ["cudnn-missing", "damaged-distribution"]


# --- What belongs to a framework without being required by it ---------------------------------------------------------
NO_CUDA = Trial(
    source="trial", imported=True, ran_on_gpu=False, error="RuntimeError: Unknown backend cuda. Available: cpu"
)
FROM_PLUGIN = "file plugin"
PLUGIN = framework(
    "jax-cuda12-plugin", "0.6.0", source=FROM_PLUGIN, extends="jax", cuda="12", cpu_only=False, path=None
)
OF_PLUGIN = {"cuda": FROM_PLUGIN, "cpu_only": FROM_PLUGIN}
JAX = framework("jax", "0.6.0", cuda="12", cpu_only=False, trial=NO_CUDA, read=OF_PLUGIN)
OF_JAX = (
    wheel("jax", "0.6.0", 'jax-cuda12-plugin[with-cuda]==0.6.0; extra == "cuda12"'),
    wheel("jax-cuda12-plugin", "0.6.0", "jax-cuda12-pjrt==0.6.0", 'nvidia-cudnn-cu12>=9.1; extra == "with-cuda"'),
    wheel("jax-cuda12-pjrt", "0.6.0"),
    wheel("nvidia-cudnn-cu12", "9.1.0.70"),
)


@cases(
    "package, version, path",
    ("jax-cuda12-pjrt", "0.6.0", "jax_plugins/xla_cuda12/xla_cuda_plugin.so"),
    ("jax-cuda12-plugin", "0.6.0", "jax_cuda12_plugin/_solver.so"),
    ("nvidia-cudnn-cu12", "9.1.0.70", "nvidia/cudnn/lib/libcudnn.so.9"),
)
def test_damage_of_a_plug_in_is_why_its_framework_has_no_gpu(package: str, version: str, path: str) -> None:
    file = damaged(package, version, path, "missing")
    found = but(
        venv(JAX, PLUGIN), distributions=OF_JAX, damaged=(), shipped=Shipped(source="wheel metadata", damaged=(file,))
    )
    assert open_fails(with_venv(machine(), found)) == ["damaged-distribution"]


def test_a_plug_in_whose_requirement_is_gone_is_why_its_framework_has_no_gpu() -> None:
    found = but(
        venv(JAX, but(PLUGIN, path=f"{SITE}/jax_cuda12_plugin")), distributions=OF_JAX[:2], distributions_complete=True
    )
    assert cause(with_venv(machine(), found)) == "jax-plugin-mismatch"


def test_damage_of_an_extension_is_none_of_what_it_extends() -> None:
    vision = Framework(source="file vision", name="torchvision", version="0.20.1", extends="torch")
    refused = but(NO_CUDA, error="RuntimeError: no")
    file = damaged("torchvision", "0.20.1", "torchvision/_C.so", "missing")
    found = but(
        venv(torch(trial=refused), vision),
        distributions=(wheel("torch", "2.5.1"), wheel("torchvision", "0.20.1", "torch")),
        damaged=(),
        shipped=Shipped(source="wheel metadata", damaged=(file,)),
    )
    assert "framework-cannot-use-gpu" in open_fails(with_venv(machine(), found))


def test_every_damaged_package_is_installed_again_however_many_they_are() -> None:
    names = [f"part{number:02}" for number in range(15)]
    wheels = (wheel("cupy-cuda12x", "14.2.0", *names), *(wheel(name, "1.0") for name in names))
    lost = (damaged(name, "1.0", f"{name}/__init__.py", "missing") for name in names)
    check = check_of("damaged-distribution", with_venv(machine(), holding(*lost, wheels=wheels)))
    assert check.fixes[0].command[-15:] == tuple(f"{name}==1.0" for name in names)
