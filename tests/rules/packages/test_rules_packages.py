"""Packages that get in each other's way, or want another NumPy, GPU or system: on machines put together by hand."""

from typing import Any

from envcheck.compat.wheels import published
from envcheck.knowledge.load import load_matrix
from envcheck.model.snapshot import Distribution, Environment, Framework, Snapshot, Trial, TrialFile
from tests.every import cases
from tests.rules.machines import (
    UBUNTU,
    VENV,
    bad,
    but,
    check_of,
    checks_of,
    framework,
    geforce,
    machine,
    said,
    statuses,
    torch,
    venv,
    with_venv,
)
from tests.rules.packages.packages_here import NOT_IMPORTED, RAN, SITE, dist, extension, having, load, on, only, status

ORT = "onnxruntime-cpu-and-gpu"
CUPY = "cupy-multiple-packages"
BUILDS = "builds-over-each-other"
JAX = "jax-plugin-mismatch"
NUMPY = "numpy-abi-mismatch"
GLIBC = "glibc-too-old"
LIBSTDCXX = "libstdcxx-too-old"
FEATURE = "gpu-feature-unsupported"
REQUIREMENT = "requirement-broken"
UNRECORDED = "package-unrecorded"
MIXED = only(("cupy-cuda11x", "13.3.0"), ("cupy-cuda12x", "13.3.0"))
NUMBA_ALONE = framework("numba", "0.68.0", requires=("llvmlite<0.51,>=0.50",))
ALONE = torch(path=f"{SITE}/torch")
CASES: list[tuple[str, str, Snapshot, tuple[str, ...]]] = [
    (ORT, "two distributions in a list", on(only(("onnxruntime", "1.23.2"), ("onnxruntime-gpu", "1.23.2"))), ("fail",)),
    (CUPY, "for two versions of CUDA", on(MIXED), ("warn",)),
    (BUILDS, "TensorFlow's two", on(only(("tensorflow", "2.18.0"), ("tensorflow-cpu", "2.18.0"))), ("warn",)),
    (REQUIREMENT, "llvmlite is missing", on(having(NUMBA_ALONE)), ("warn",)),
    ("package-requirement-broken", "of no framework", on(having(distributions=(
        dist("transformers", "4.46.3", requires=("huggingface-hub<1.0",)), dist("huggingface-hub", "1.0.1"),
    ))), ("warn",)),
    (UNRECORDED, "another package", on(having(unrecorded=(f"{SITE}/sympy",), distributions=(dist("a", "1"),))),
     ("note",)),
    (UNRECORDED, "no record at all", on(having(unrecorded=(f"{SITE}/sympy",), distributions=())), ("unknown",)),
    (UNRECORDED, "a framework", on(having(ALONE, unrecorded=(f"{SITE}/torch",))), ("unknown",)),
    (UNRECORDED, "one that ran", on(having(but(ALONE, trial=RAN), unrecorded=(f"{SITE}/torch",))), ("note",)),
    (UNRECORDED, "all recorded", on(having(unrecorded=())), ()),
    (UNRECORDED, "nobody looked", on(having()), ()),
    ("python-not-admitted", "a copy", on(having(distributions=(dist("six", "1", requires_python="<3"),))), ("warn",)),
]  # fmt: skip


# --- ONNX Runtime -------------------------------------------------------------------------------------------------
BOTH = (dist("onnxruntime", "1.23.2"), dist("onnxruntime-gpu", "1.23.2"), dist("onnxruntime-extensions", "0.14.0"))


def ort(name: str, *, cpu_only: bool, **changes: Any) -> Framework:
    providers = ("CPU",) if cpu_only else ("CUDA", "CPU")
    known = framework(name, "1.23.2", path=f"{SITE}/onnxruntime", cpu_only=cpu_only, providers=providers)
    return but(known, **changes)


@cases(
    "framework, expected",
    (ort("onnxruntime", cpu_only=True), "fail"),
    (ort("onnxruntime-gpu", cpu_only=False), "warn"),
    (ort("onnxruntime-gpu", cpu_only=False, trial=RAN), "note"),
)
def test_whose_files_are_there_decides(framework: Framework, expected: str) -> None:
    check = check_of(ORT, on(but(having(torch(), framework), distributions=BOTH)))
    assert check.status == expected
    assert [each.value for each in check.evidence[:2]] == ["1.23.2", "1.23.2"]
    remove, install = check.fixes
    assert remove.command == (f"{VENV}/bin/python", "-m", "pip", "uninstall", "--yes", "onnxruntime", "onnxruntime-gpu")
    assert any("onnxruntime-gpu" in word for word in install.command)


def test_it_accounts_for_the_cpu_build() -> None:
    both = on(but(having(torch(), ort("onnxruntime", cpu_only=True)), distributions=BOTH))
    found = [check for check in checks_of("cpu-only-build", both) if check.subject.key.endswith(":onnxruntime")]
    assert [check.explained_by for check in found if check.status in ("warn", "fail")] == [f"{ORT}@{VENV}"]


@cases("names", ("onnxruntime",), ("onnxruntime-gpu",), ("onnxruntime", "onnxruntime-directml"), ())
def test_one_package_or_none_for_cuda_is_no_conflict(names: tuple[str, ...]) -> None:
    assert status(ORT, only(*((name, "1.23.2") for name in names))) is None


# --- others -------------------------------------------------------------------------------------------------------
@cases("names, kept",
    (("tensorflow", "tensorflow-cpu"), "tensorflow"), (("faiss-cpu", "faiss-gpu-cu12"), "faiss-gpu-cu12"),
    (("cudf-cu12", "cudf-cu13"), "cudf-cu12"), (("spconv-cu118", "spconv-cu126"), "spconv-cu126"),
    (("paddlepaddle", "paddlepaddle-gpu"), "paddlepaddle-gpu"),
)  # fmt: skip
def test_two_builds_in_one_folder(names: tuple[str, ...], kept: str) -> None:
    """Kept is the one for CUDA, for the newest that the driver runs."""
    there = only(*((name, "3.0") for name in names))
    check = check_of(BUILDS, but(on(there), driver__cuda="12.8", driver__release="570.124.06"))
    assert (check.status, check.fixes[0].command[-2:], check.fixes[1].command[-1]) == ("warn", names, f"{kept}==3.0")


@cases("changes, expected", ({"cpu_only": True}, "fail"), ({}, "warn"), ({"trial": RAN}, "note"))
def test_whose_files_of_two_builds_are_there(changes: dict[str, Any], expected: str) -> None:
    tensorflow = framework("tensorflow", "2.18.0", **changes)
    both = (dist("tensorflow", "2.18.0"), dist("tensorflow-cpu", "2.18.0"))
    snapshot = on(but(having(torch(), tensorflow), distributions=both))
    assert check_of(BUILDS, snapshot).status == expected
    if expected == "fail":
        cpu = [check for check in checks_of("cpu-only-build", snapshot) if check.status in ("warn", "fail")]
        assert [check.explained_by for check in cpu] == [f"{BUILDS}@{VENV}"]


@cases(
    "found",
    (dist("tensorflow", "2.18.0"),),
    (dist("tensorflow", "2.18.0"), dist("tensorboard", "2.18.0")),
    (dist("tensorflow", "2.11.0", requires=("tensorflow-intel==2.11.0",)), dist("tensorflow-intel", "2.11.0")),
    (dist("tensorflow", "2.2.0", channel="conda"), dist("tensorflow-gpu", "2.2.0")),
    (dist("opencv-python", "4.10"), dist("opencv-python-headless", "4.10")),
    (dist("tensorflow-cpu", "2.18.0"), dist("tensorflow-intel", "2.18.0")),
)
def test_no_two_builds_of_which_one_is_for_cuda(found: tuple[Distribution, ...]) -> None:
    assert status(BUILDS, having(distributions=found)) is None


# --- JAX ----------------------------------------------------------------------------------------------------------
SOUND = (("jax", "0.9.2"), ("jaxlib", "0.9.2"), ("jax-cuda12-plugin", "0.9.2"), ("jax-cuda12-pjrt", "0.9.2"))


def test_parts_of_one_release_of_jax() -> None:
    assert bad(on(only(*SOUND))) == []
    known = having(distributions=tuple(dist(name, version, requires=()) for name, version in SOUND))
    assert status(JAX, known) == "pass"


PLUGINS = tuple(
    dist(f"jax-cuda{major}-{half}", "0.9.2", requires=wheels if half == "plugin" else ())
    for major, wheels in (
        ("12", ('nvidia-cudnn-cu12>=9.8; extra == "with-cuda"', 'nvidia-cusparse-cu12; extra == "with-cuda"')),
        ("13", ('nvidia-cudnn-cu13>=9.8; extra == "with-cuda"', 'nvidia-cusparse>=12; extra == "with-cuda"')),
    )
    for half in ("plugin", "pjrt")
)
WHEELS = tuple(
    dist(f"nvidia-{name}", version)
    for name, version in (
        ("cudnn-cu12", "9.10.2"), ("cudnn-cu13", "9.12.0"), ("cusparse-cu12", "12.5.10"), ("cusparse", "12.9.4"),
        ("curand-cu12", "10.3.10"),
    )
)  # fmt: skip


@cases("driver, kept", ("580.95.05", "13"), ("550.54.14", "12"))
def test_of_two_plugins_one_stays_with_the_libraries_that_the_other_takes_along(driver: str, kept: str) -> None:
    """``pip install jax[cuda12]``, then ``jax[cuda13]``: both bring a cuDNN into one folder."""
    jax = (dist("jax", "0.9.2"), dist("jaxlib", "0.9.2"), *PLUGINS, *WHEELS)
    frameworks = (framework(each.name, "0.9.2", extends="jax", requires=each.requires or ()) for each in PLUGINS[::2])
    found = but(on(venv(*frameworks, distributions=jax)), driver__release=driver, driver__cuda=None)
    check = check_of(JAX, found)
    gone = {"13": ("12", "nvidia-cusparse-cu12"), "12": ("13", "nvidia-cusparse")}[kept]
    removed = {
        f"jax-cuda{gone[0]}-plugin", f"jax-cuda{gone[0]}-pjrt", gone[1], "nvidia-cudnn-cu12", "nvidia-cudnn-cu13",
    }  # fmt: skip
    assert set(check.fixes[0].command[5:]) == removed
    again = {"13": "nvidia-cudnn-cu13==9.12.0", "12": "nvidia-cudnn-cu12==9.10.2"}[kept]
    assert check.fixes[1].command[-2:] == (f"jax[cuda{kept}]==0.9.2", again)
    clash = check_of("nvidia-wheel-conflict", found)
    assert clash.explained_by == check.id


def test_the_plugin_stays_whose_libraries_another_framework_needs() -> None:
    wanted = torch(requires=("nvidia-cudnn-cu12==9.10.2",), version="2.8.0+cu126")
    jax = (dist("jax", "0.9.2"), dist("jaxlib", "0.9.2"), *PLUGINS, *WHEELS)
    check = check_of(JAX, but(on(having(wanted, distributions=jax)), driver__release="580.95.05", driver__cuda=None))
    assert check.fixes[-1].command[-2:] == ("jax[cuda12]==0.9.2", "nvidia-cudnn-cu12==9.10.2")


def test_beside_a_torch_for_another_cuda_jax_gets_the_plugin_for_it() -> None:
    wanted = torch(requires=("nvidia-cudnn-cu13==9.12.0",), version="2.11.0+cu130", cuda="13.0")
    lines = tuple(f'jax-cuda{major}-plugin; extra == "cuda{major}"' for major in ("12", "13"))
    jax = framework("jax", "0.9.2", cuda="12", requires=lines)
    listed = (dist("jax", "0.9.2", requires=lines), dist("jaxlib", "0.9.2"), *PLUGINS[:2], *WHEELS)
    there = but(on(having(wanted, jax, distributions=listed)), driver__release="580.95.05", driver__cuda=None)
    fixes = check_of("nvidia-wheel-conflict", there).fixes
    assert fixes[-1].command[-2:] == ("jax[cuda13]==0.9.2", "nvidia-cudnn-cu13==9.12.0")
    assert {"jax-cuda12-plugin", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13"} <= {*fixes[0].command}


@cases("version, expected", ("99.1.0", None), ("99.2.0", "warn"))
def test_a_release_that_nobody_knows_is_compared_with_its_own_version_alone(version: str, expected: str | None) -> None:
    parts = (("jaxlib", "99.1.0"), ("jax-cuda12-plugin", version), ("jax-cuda12-pjrt", version))
    assert status(JAX, only(*parts)) == expected


@cases("major", "12", "13")
@cases("half, gone", ("plugin", "pjrt"), ("pjrt", "plugin"))
def test_half_a_plugin_names_the_other_half(major: str, half: str, gone: str) -> None:
    there, other = f"jax-cuda{major}-{half}", f"jax-cuda{major}-{gone}"
    pins = (f"jax-cuda{major}-pjrt==0.12.0",) if half == "plugin" else ()
    parts = (dist("jax", "0.12.0"), dist("jaxlib", "0.12.0"), dist(there, "0.12.0", requires=pins))
    jax = framework("jax", "0.12.0", cuda=major)
    folder = f"{SITE}/jax_cuda{major}_plugin" if half == "plugin" else None
    own = framework(f"jax-cuda{major}-plugin", extends="jax", path=folder, incomplete=not folder)
    check = check_of(JAX, on(venv(jax, own, distributions=parts)))
    assert (check.status, check.title) == ("fail", f"JAX cannot use the GPU: {other} is missing")
    assert [fix.command[-1] for fix in check.fixes] == [f"{other}==0.12.0"]
    condas = tuple(but(part, channel="conda") for part in parts)
    some = venv(jax, own, distributions=parts, distributions_complete=False)
    assert [status(JAX, each) for each in (some, venv(jax, own, distributions=condas))] == ["pass", "pass"]


# --- NumPy --------------------------------------------------------------------------------------------------------
@cases("package, numpy, expected",
    (("tensorflow", "2.15.0"), "2.0.1", "fail"), (("tensorflow", "2.15.0"), "1.26.4", None),
    (("torch", "2.2.0"), "2.0.1", "warn"), (("torch", "2.5.1"), "2.1.0", None),
    (("numba", "0.60.0"), "2.1.0", "fail"), (("some-package", "1.0"), "2.1.0", None),
)  # fmt: skip
def test_numpy_by_what_is_known_of_releases(package: tuple[str, str], numpy: str, expected: str | None) -> None:
    assert status(NUMPY, only(package, ("numpy", numpy))) == expected


@cases(
    "owner, upgraded",
    ("numba-cuda==0.20.1", True),
    (f"cuda-core=={published(load_matrix(()), 'cuda-core')[-1]}", False),
)
def test_an_error_about_numpy_blames_the_package_that_asked_for_what_is_gone(owner: str, *, upgraded: bool) -> None:
    """Not the one that was tried; its newest release is not installed once more."""
    place, numpy = f"{SITE}/numba_cuda/np/arrayobj.py", f"{SITE}/numpy/__init__.py"
    named = {place: owner, numpy: "numpy==2.5.2"}
    files = tuple(TrialFile(source="trial", path=each, role="frame", owner=named[each]) for each in (numpy, place))
    failing = Trial(
        imported=True, ran_on_gpu=False, error="AttributeError: module 'numpy' has no attribute 'cast'", files=files
    )
    numba = framework("numba", "0.68.0", trial=failing)
    listed = [dist(*each.split("==")) for each in (owner, "numba==0.68.0", "numpy==2.5.2")]
    check = check_of(NUMPY, on(having(numba, distributions=tuple(listed))))
    assert check.title == f"{owner.replace('==', ' ')} does not work with NumPy 2.5.2"
    wanted = [command[-1] for fix in check.fixes if (command := fix.command)]
    assert wanted == [*([owner.partition("==")[0]] if upgraded else []), "numpy<2"]


# --- the system's libraries ---------------------------------------------------------------------------------------
def loading(*loads: Any, **changes: Any) -> Environment:
    return having(but(torch(), loads=loads, loads_complete=True, **changes))


# --- what a GPU lacks ---------------------------------------------------------------------------------------------
V100 = geforce("Tesla V100-SXM2-16GB", "7.0", "10de:1db1")


def with_gpu(environment: Environment, gpu: Any) -> Snapshot:
    return with_venv(machine(gpu, platform=UBUNTU), environment)


@cases("package, expected",
    (("flash-attn", "2.6.3"), "warn"), (("xformers", "0.0.35"), "warn"), (("xformers", "0.0.28.post3"), "pass"),
    (("transformer-engine", "2.10"), "fail"),
)  # fmt: skip
def test_a_gpu_that_is_too_old_for_a_package(package: tuple[str, str], expected: str) -> None:
    assert check_of(FEATURE, with_gpu(only(package), V100)).status == expected


def test_two_plugins_account_for_what_either_of_them_lacks() -> None:
    parts = {name: dist(name, "0.7.2") for name in ("jax", "jaxlib", "jax-cuda12-plugin", "jax-cuda13-plugin")}
    jax = framework("jax", "0.7.2", cuda="12", cpu_only=False)
    lacking = (load("libcudnn.so.9", path=None, found_by=None, optional=True),)
    known: dict[str, Any] = {"extends": "jax", "cpu_only": False, "loads": lacking, "loads_complete": True}
    plugins = [framework(f"jax-cuda{major}-plugin", "0.7.2", cuda=f"{major}.0", **known) for major in (12, 13)]
    snapshot = on(but(venv(jax, *plugins), distributions=tuple(parts.values())))
    (cause,) = checks_of(JAX, snapshot)
    assert {each.explained_by for each in checks_of("cudnn-missing", snapshot)} == {cause.id}
    assert statuses("cuda-major-mismatch", snapshot) == ()


# --- Two packages of ONNX Runtime in two folders ----------------------------------------------------------------------
BEFORE = "/srv/libraries"
APART = (
    dist("onnxruntime", "1.22.0", path=f"{BEFORE}/onnxruntime-1.22.0.dist-info"),
    dist("onnxruntime-gpu", "1.22.0", path=f"{SITE}/onnxruntime_gpu-1.22.0.dist-info"),
)


def test_a_provider_that_another_package_left_is_not_called_its_own() -> None:
    left = ort("onnxruntime", cpu_only=True, providers=("CUDA", "TensorRT", "CPU"))
    (check,) = checks_of("cpu-only-build", on(having(left)))
    assert "only: CUDA" not in check.message
    assert "another package" in check.message


CUPY_12 = framework("cupy-cuda12x", "13.3.0", path=f"{SITE}/cupy", cuda="12")
OLD_METADATA = dist("jax", "0.9.2", requires=("jaxlib<=0.9.2,>=0.9.2",))
NEW_NUMBA = framework("numba", "99.0", requires=("numpy<2.6,>=1.22",))
OLD_GLIBC = load("libm.so.6", lacks=("GLIBC_2.27", "GLIBC_2.29"), offers="GLIBC_2.17", needed_by="/x/libcurand.so.10")
LACKING = load(lacks=("GLIBC_2.38",))
OLD_CXX = load(
    "libstdc++.so.6", lacks=("GLIBCXX_3.4.30",), offers="GLIBCXX_3.4.25", path="/opt/gcc/lib64/libstdc++.so.6.0.25"
)
OF_THE_PATH = ort(
    "onnxruntime", cpu_only=True, path=f"{BEFORE}/onnxruntime",
    problem=f"PYTHONPATH puts {BEFORE}/onnxruntime before {SITE}/onnxruntime",
)  # fmt: skip


# --- one question, one answer -----------------------------------------------------------------------------------------
@cases("rule, about, there, expected",
    *CASES,
    (CUPY, "which is kept", MIXED,
     {"status": "warn", "fixes": ["…uninstall --yes cupy-cuda11x cupy-cuda12x", "…cupy-cuda12x==13.3.0"]}),
    (CUPY, "two that cannot be imported", but(MIXED, frameworks=having(but(CUPY_12, trial=NOT_IMPORTED)).frameworks),
     ("fail",)),
    (CUPY, "two that work", but(MIXED, frameworks=having(but(CUPY_12, trial=RAN)).frameworks), ("note",)),
    (CUPY, "one", only(("cupy-cuda12x", "13.3.0")), ()),
    (CUPY, "conda's parts of it", only(("cupy", "13.3.0"), ("cupy-core", "13.3.0")), ()),
    (JAX, "a plug-in of another jaxlib",
     only(("jax", "0.9.0.1"), ("jaxlib", "0.9.0.1"), ("jax-cuda12-plugin", "0.9.2")),
     {"status": "fail", "message": "…jax-cuda12-plugin 0.9.2 needs jaxlib==0.9.2, and this is 0.9.0.1…",
      "fix": "…jax[cuda12]==0.9.0.1", "sources": ...}),
    (JAX, "an extra that pins another jaxlib than its plug-in's",
     only(("jax", "0.4.35"), ("jaxlib", "0.4.34"), ("jax-cuda12-plugin", "0.4.35"), ("jax-cuda12-pjrt", "0.4.35")),
     {"status": "fail", "fixes": ["…jax[cuda12]==0.4.35", "…jaxlib==0.4.35"]}),
    (JAX, "metadata comes before what is known",
     having(distributions=(OLD_METADATA, dist("jaxlib", "0.9.0", requires=()))),
     {"status": "fail", "evidence": ["jaxlib<=0.9.2,>=0.9.2"]}),
    (JAX, "an older jax, which requires no jaxlib by itself", only(("jax", "0.4.24"), ("jaxlib", "0.4.30")),
     {"status": "fail", "fix": "…jax==0.4.24 jaxlib>=0.4.19,<=0.4.24"}),
    (JAX, "half a plug-in beside a whole one", only(*SOUND, ("jax-cuda13-pjrt", "0.9.2")),
     {"title": "Two CUDA plug-ins of JAX are installed", "fix": "…jax-cuda13-pjrt"}),
    (JAX, "alone raises no question", only(("jax", "0.9.2")), ()),
    (JAX, "PJRT without metadata is not called missing",
     venv(framework("jax-cuda12-plugin", extends="jax", binaries=(f"{SITE}/jax_plugins/xla_cuda12/plugin.so",)),
          distributions=tuple(dist(name, "0.12.0") for name in ("jax", "jaxlib", "jax-cuda12-plugin"))), ()),
    (NUMPY, "by metadata, admitted", having(NEW_NUMBA, distributions=(dist("numpy", "2.5.2"),)), ("pass",)),
    (NUMPY, "by metadata, admitted, which rows know better",
     having(framework("mxnet", "1.9.1", requires=("numpy<2,>1.16",)), distributions=(dist("numpy", "1.26.4"),)),
     {"status": "warn", "fix": "…numpy>1.16,<1.24"}),
    (NUMPY, "by metadata, too new", having(NEW_NUMBA, distributions=(dist("numpy", "2.6.0"),)),
     {"status": "fail", "evidence": ["…", "numpy<2.6,>=1.22"], "fix": "…numpy>=1.22,<2.6"}),
    (NUMPY, "is not there", only(("tensorflow", "2.15.0")), ()),
    (NUMPY, "what ran outweighs what its metadata asks for",
     having(framework("cupy-cuda12x", "99.0", requires=("numpy<2",), trial=RAN),
            distributions=(dist("numpy", "2.1.0"),)), ("note",)),
    (GLIBC, "new enough", loading(load(version="2.39")), ("pass",)),
    (LIBSTDCXX, "new enough", loading(load("libstdc++.so.6", version="6.0.33")), ("pass",)),
    (GLIBC, "too old", loading(OLD_GLIBC),
     {"status": "fail", "title": "torch 2.5.1+cu124 needs GLIBC_2.29, newer than this system's glibc",
      "what": ["…/x/libcurand.so.10…"], "evidence": ["…", "…", "GLIBC_2.17"]}),
    (LIBSTDCXX, "another library is too old", loading(OLD_GLIBC), ()),
    (GLIBC, "the C++ library is too old", loading(OLD_CXX), ()),
    (LIBSTDCXX, "too old, by a variable", loading(but(OLD_CXX, found_by="LD_LIBRARY_PATH")),
     {"status": "fail", "message": f"…{OLD_CXX.path}…", "text": "…from LD_LIBRARY_PATH…"}),
    (LIBSTDCXX, "too old, the system's", loading(but(OLD_CXX, found_by="cache")),
     {"status": "fail", "message": f"…{OLD_CXX.path}…", "text": "…Install a build of the package…"}),
    (GLIBC, "optional", loading(but(LACKING, optional=True)), ("note",)),
    (GLIBC, "imported all the same", loading(LACKING, trial=RAN), ("note",)),
    (GLIBC, "nobody searched", having(but(torch(), loads=None)), ()),
    (LIBSTDCXX, "nobody searched", having(but(torch(), loads=None)), ()),
    (GLIBC, "nothing is loaded", having(but(torch(), loads=())), ()),
    (LIBSTDCXX, "nothing is loaded", having(but(torch(), loads=())), ()),
    ("framework-import-fails", "a glibc accounts for it", loading(LACKING, trial=NOT_IMPORTED),
     {"explained_by": f"{GLIBC}@{VENV}:torch"}),
    (FEATURE, "a GPU that it supports", only(("flash-attn", "2.6.3")), ("pass",)),
    (FEATURE, "a release that nobody knows", with_gpu(only(("flash-attn", "99.0")), V100), ()),
    (FEATURE, "no such package", with_gpu(only(("numpy", "2.1.0")), V100), ()),
    (FEATURE, "a GPU that nobody knows",
     with_gpu(only(("flash-attn", "2.6.3")), but(V100, compute_capability=None, name=None, pci_device_id=None)), ()),
    (FEATURE, "it ran",
     with_gpu(having(torch(), extension("flash-attn", "2.6.3", trial=but(RAN, gpu=V100.pci_bus_id))), V100), ("pass",)),
    (ORT, "a GPU package that comes first is in nobody's way",
     but(venv(ort("onnxruntime-gpu", cpu_only=False, path=f"{BEFORE}/onnxruntime")), distributions=APART), ()),
    (ORT, "a CPU package that PYTHONPATH puts first", but(venv(OF_THE_PATH), distributions=APART),
     {"status": "fail", "title": "The CPU package of ONNX Runtime is found before the GPU package",
      "fixes": ("env -u PYTHONPATH …",), "text": f"…{BEFORE}…"}),
)  # fmt: skip
def test_what_rules_say(rule: str, about: str, there: Snapshot | Environment, expected: Any) -> None:
    assert said(rule, there, expected) == expected
