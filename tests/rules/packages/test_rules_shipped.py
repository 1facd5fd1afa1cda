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
from tests.rules.machines import VENV, but, cause, check_of, checks_of, machine, open_fails, torch, venv, with_venv

SITE = f"{VENV}/lib/python3.12/site-packages"
UMATH = "numpy/_core/_multiarray_umath.so"
PIP = (f"{VENV}/bin/python", "-m", "pip", "install", "--force-reinstall", "--no-deps")


def wheel(name: str, version: str, *requires: str, **changes: Any) -> Distribution:
    path = f"{SITE}/{name}-{version}.dist-info"
    known = Distribution(source="wheel metadata", name=name, version=version, path=path, channel="pip", record=True)
    return but(known, requires=requires, **changes)


def damaged(package: str, version: str, path: str, kind: str, **said: Any) -> DamagedFile:
    source = f"file {SITE}/{package}-{version}.dist-info/RECORD"
    whole = {"path": f"{SITE}/{path}", "package": package, "version": version, "kind": kind, "source": source, **said}
    return DamagedFile(**whole)


CUPY = Framework(source="x", name="cupy-cuda12x", version="14.2.0", path=f"{SITE}/cupy")
WHEELS = (
    wheel("cupy-cuda12x", "14.2.0", "numpy>=2.0", "scipy>=1.14; extra == 'all'", "tomli; python_version < '3'"),
    wheel("numpy", "2.4.6"),
    wheel("scipy", "1.17.0"),
    wheel("tomli", "2.0"),
    wheel("setuptools", "80.0"),
)


def judged(
    *files: DamagedFile,
    wheels: tuple[Distribution, ...] = WHEELS,
    frameworks: tuple[Framework, ...] = (CUPY,),
    **changes: Any,
) -> Check:
    shipped = Shipped(source="wheel metadata", packages=("numpy",), files=12, damaged=files, complete=True)
    own: dict[str, Any] = {"shipped": shipped, "damaged": (), "distributions": wheels, "distributions_complete": True}
    listing = Listing(items=frameworks, complete=True)
    found: Environment = but(venv(), frameworks=listing, **{**own, **changes})
    return check_of("damaged-distribution", with_venv(machine(), found))


def test_all_is_as_it_was_installed() -> None:
    assert judged().title == "The records of the 5 installed packages are intact; 12 files checked by size"
    hashed = Shipped(source="wheel metadata", packages=("numpy",), files=19696, bytes=1 << 30, complete=True)
    assert judged(verified=hashed).title.endswith("19,696 files checked by hash")


def test_a_package_that_a_framework_requires_is_gone() -> None:
    check = judged(*(damaged("numpy", "2.4.6", path, "missing") for path in ("numpy/__init__.py", UMATH)))
    assert (check.status, check.title) == ("fail", "numpy 2.4.6 is damaged: 2 files are missing")
    assert check.message.startswith("numpy 2.4.6, which cupy-cuda12x requires: numpy/__init__.py is missing; ")
    assert [fix.command for fix in check.fixes] == [(*PIP, "numpy==2.4.6")]


def test_a_title_says_of_each_file_what_holds_for_it() -> None:
    gone, cut = "numpy/core/z.so", "numpy/a.so"
    files = damaged("numpy", "2.4.6", gone, "missing"), damaged("numpy", "2.4.6", cut, "size", problem="it is cut off")
    check = judged(*files)
    assert check.title == "numpy 2.4.6 is damaged: z.so is missing, 1 more differs"
    assert check.message.startswith(f"numpy 2.4.6, which cupy-cuda12x requires: {gone} is missing; {cut} is damaged")
    assert check.evidence[0].what.endswith(gone)
    assert judged(files[1]).title == "numpy 2.4.6 is damaged: a.so cannot be loaded"
    data = damaged("numpy", "2.4.6", "numpy/notes.txt", "missing")
    assert judged(files[1], data).title == "numpy 2.4.6 is damaged: a.so cannot be loaded"


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
    (damaged("numpy", "2.4.6", "numpy/bin/program", "missing"), "warn"),
    (damaged("scipy", "1.17.0", "scipy/__init__.py", "missing"), "warn"),
    (damaged("tomli", "2.0", "tomli/__init__.py", "missing"), "warn"),
    (damaged("setuptools", "80.0", "setuptools/__init__.py", "missing"), "warn"),
)
def test_what_stops_an_import_is_a_failure(file: DamagedFile, status: str) -> None:
    assert judged(file).status == status


def test_an_empty_file_is_called_so() -> None:
    empty = damaged("numpy", "2.4.6", "numpy/__init__.py", "size", problem="it is empty", found="0 bytes")
    assert judged(empty).title == "numpy 2.4.6 is damaged: __init__.py is empty"


def test_what_a_framework_requires_through_another_counts() -> None:
    wheels = (wheel("cupy-cuda12x", "14.2.0", "scipy"), wheel("scipy", "1.17.0", "numpy"), wheel("numpy", "2.4.6"))
    assert judged(damaged("numpy", "2.4.6", UMATH, "missing"), wheels=wheels).status == "fail"


def test_a_framework_that_was_imported_can_be() -> None:
    tried = but(CUPY, trial=Trial(source="trial", imported=True))
    assert judged(damaged("numpy", "2.4.6", UMATH, "missing"), frameworks=(tried,)).status == "warn"


def test_overwritten_machine_code_is_a_failure_although_a_trial_did_not_come_to_it() -> None:
    tried = but(CUPY, trial=Trial(source="trial", imported=True, ran_on_gpu=True))
    check = judged(damaged("numpy", "2.4.6", UMATH, "hash"), frameworks=(tried,))
    assert (check.status, check.title) == ("fail", "numpy 2.4.6 is damaged: _multiarray_umath.so differs")


EMPTY = "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"
STRIPPED = damaged("numpy", "2.4.6", UMATH, "size", recorded="9 bytes", found="5 bytes", stripped=True)


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


def test_a_file_that_several_packages_claim_and_that_is_none_of_theirs_is_a_note() -> None:
    files = [
        damaged(name, version, "shared/__init__.py", "hash") for name, version in (("numpy", "2.4.6"), ("tomli", "2.0"))
    ]
    assert judged(*files).status == "note"
    assert judged(files[0]).status == "warn"


def test_a_stripped_library_of_a_framework_that_cannot_be_imported_is_told() -> None:
    tried = but(CUPY, trial=Trial(source="trial", imported=False, error="crashed: SIGSEGV while importing cupy"))
    assert judged(STRIPPED, frameworks=(tried,)).status == "fail"


def test_a_library_of_another_length_was_made_so_whatever_its_hash() -> None:
    hashed = damaged("numpy", "2.4.6", UMATH, "hash", recorded="sha256=a", found="sha256=b")
    verified = Shipped(source="wheel metadata", damaged=(hashed,), complete=True)
    assert judged(damaged("numpy", "2.4.6", UMATH, "size"), verified=verified).status == "warn"


def test_what_stops_a_framework_is_installed_first_and_together() -> None:
    files = (
        damaged("scipy", "1.17.0", "scipy/__init__.py", "size"),
        damaged("numpy", "2.4.6", UMATH, "missing"),
        damaged("cupy-cuda12x", "14.2.0", "cupy/__init__.py", "missing"),
    )
    check = judged(*files)
    assert check.title == "numpy and 2 more packages are damaged"
    assert [fix.command for fix in check.fixes] == [
        (*PIP, "numpy==2.4.6", "cupy-cuda12x==14.2.0"),
        (*PIP, "scipy==1.17.0"),
    ]


def test_a_build_of_pytorch_comes_from_its_own_index_and_uv_leaves_its_cache_alone() -> None:
    lost = damaged("torch", "2.5.1+cu124", "torch/_C.so", "missing")
    check = judged(lost, wheels=(wheel("torch", "2.5.1+cu124"),), frameworks=(torch(),), manager="uv")
    assert check.fixes[0].command == (
        "uv", "pip", "install", "--python", VENV, "--reinstall", "--no-deps", "--no-cache", "torch==2.5.1+cu124",
        "--index-url", "https://download.pytorch.org/whl/cu124",
    )  # fmt: skip


def test_a_package_without_its_list_of_files_cannot_be_removed_first() -> None:
    wheels = (WHEELS[0], wheel("numpy", "2.4.6", record=False))
    assert "--ignore-installed" in judged(damaged("numpy", "2.4.6", UMATH, "missing"), wheels=wheels).fixes[0].command


# --- A library that the loader gives up at ----------------------------------------------------------------------------
CUBLAS = f"{SITE}/nvidia/cublas/lib/libcublasLt.so.12"
LOADS = (
    Load(source="elf x", name="libcublasLt.so.12", needed_by=f"{SITE}/torch/lib/libtorch_global_deps.so", path=CUBLAS,
         refused="it is cut off: 5000 of at least 13448 bytes are there"),
)  # fmt: skip


def test_a_damaged_library_of_a_wheel_is_a_failure_beside_others_that_use_the_gpu() -> None:
    pytorch = but(torch(), loads=LOADS, loads_complete=True)
    jax = Framework(
        source="x", name="jax", version="0.6.0", path=f"{SITE}/jax", cuda="12.8", loads=(), loads_complete=True
    )
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
    assert [fix.command for fix in check.fixes] == [(*PIP, "nvidia-cublas-cu12==12.4.5.8")]
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
    for said in ({"shipped": Shipped(source="wheel metadata", damaged=(file,))}, {"damaged": (by_record,)}):
        assert open_fails(with_venv(snapshot, but(found, **said))) == ["damaged-distribution"]
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
PLUGIN = Framework(
    source="file plugin", name="jax-cuda12-plugin", version="0.6.0", extends="jax", cuda="12", cpu_only=False
)
JAX = Framework(
    source="file jax",
    read={"cuda": "file plugin", "cpu_only": "file plugin"},
    name="jax",
    version="0.6.0",
    path=f"{SITE}/jax",
    cuda="12",
    cpu_only=False,
    trial=NO_CUDA,
)
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
