"""The rules about CUDA's libraries, cuDNN, NCCL, TensorRT, wheels and compilers, on constructed machines."""

from typing import Any

from envcheck.model.snapshot import DriverLibrary, Framework, Listing, Snapshot, Trial
from tests.every import cases, every
from tests.rules.libraries.machines_libraries import (
    BUNDLED,
    CASES,
    MINE,
    OLD,
    OLD_CUDNN,
    OLD_JITLINK,
    compiled_by_xla,
    copy,
    having,
    load,
    ptxas,
    pytorch,
    toolkit,
    wheels,
)
from tests.rules.machines import (
    VENV,
    but,
    check_of,
    checks_of,
    driver,
    framework,
    geforce,
    judge,
    machine,
    said,
    statuses,
    variables,
)


@every(CASES)
def test_rule(what: str, rule: str, snapshot: Snapshot, expected: tuple[str, ...]) -> None:
    assert statuses(rule, snapshot) == expected, what


FINDINGS = [(what, rule, snapshot) for what, rule, snapshot, expected in CASES if set(expected) & {"warn", "fail"}]


@every(FINDINGS)
def test_a_finding_has_evidence_a_fix_and_a_page(what: str, rule: str, snapshot: Snapshot) -> None:
    (found,) = (each for each in checks_of(rule, snapshot) if each.status in ("warn", "fail"))
    assert found.evidence, what
    assert found.fixes, what
    assert found.sources, what


def test_a_sound_environment_has_no_finding() -> None:
    found = judge(having(pytorch(), ptxas("12.4.99"), toolkits=toolkit("11.8"), libraries=(BUNDLED,)))
    assert [each.id for each in found if each.rule in MINE and each.status != "pass"] == []


@cases("line, expected",
    ("nvidia-cusolver-cu12==11.6.1.9", "warn"), ('nvidia-cusolver-cu12==11.6.1.9; platform_system == "Linux"', "warn"),
    ('nvidia-cusolver-cu12==11.6.1.9; platform_machine == "s390x"', "pass"),
    ('nvidia-cusolver-cu12==11.6.1.9; extra == "all"', "pass"), ("nvidia-cufft-cu12==11.2.1.3", "pass"),
)  # fmt: skip
def test_what_is_opened_late_is_missed_where_it_is_required(line: str, expected: str) -> None:
    late = but(pytorch(load("libcusolver.so.11", optional=True)), requires=(line,))
    check = check_of("cuda-library-missing", having(late))
    assert check.status == expected
    assert expected == "pass" or check.fixes[0].command[-1] == "nvidia-cusolver-cu12==11.6.1.9"


def test_an_extension_does_not_repeat_what_its_framework_lacks() -> None:
    gone = load("libcufft.so.11")
    extension = Framework(source="elf x", name="torchvision", version="0.20.1", extends="torch", loads=(gone,))
    found = checks_of("cuda-library-missing", having(pytorch(gone), extension))
    assert [each.status for each in found if each.status != "pass"] == ["fail"]


# --- What mends it for good ------------------------------------------------------------------------------------------
CUT = "it is cut off: 300000000 of at least 1022776208 bytes are there"


def test_one_command_brings_all_that_is_missing() -> None:
    """Not the next gap: the rules share what is missing among them."""
    snapshot = having(pytorch(load("libcudnn.so.9"), load("libcublas.so.12"), load("libnccl.so.2")))
    wanted = {"nvidia-cudnn-cu12==9.1.0.70", "nvidia-cublas-cu12==12.4.5.8", "nvidia-nccl-cu12==2.21.5"}
    for rule in ("cudnn-missing", "cuda-library-missing", "nccl-missing"):
        (check,) = checks_of(rule, snapshot)
        assert wanted <= set(check.fixes[0].command), rule
        assert "--force-reinstall" not in check.fixes[0].command


NEEDING = Framework(
    source="elf x", name="cupy-cuda13x", version="13.6.0", cuda="13", cpu_only=False, loads_complete=True,
    loads=(load("libcublasLt.so.13"), load("libcurand.so.10"), load("libnvrtc.so.13"), load("libnccl.so.2")),
)  # fmt: skip


OF_JAX = tuple(
    f'nvidia-{name}-cu12>=12.1; sys_platform == "linux" and extra == "with-cuda"' for name in ("cublas", "cuda-nvcc")
)
OF_ONNX = ('nvidia-curand~=10.0; extra == "cuda"', 'nvidia-cudnn-cu13~=9.0; extra == "cudnn"')
OF_CUPY = ('cuda-toolkit[cublas,cudart,curand]==13.*; extra == "ctk"',)


def test_a_name_without_a_number_is_in_no_wheel() -> None:
    wheel = copy(f"{VENV}/nvidia/cudnn/lib/libcudnn.so.9", "cudnn", "9.1.0")
    paddle = but(NEEDING, name="paddlepaddle-gpu", cuda="11.8", loads=(load("libcudnn.so"), load("libcublas.so")))
    for rule in ("cudnn-missing", "cuda-library-missing"):
        first, second = check_of(rule, having(paddle, libraries=(wheel,))).fixes
        assert "toolkit of CUDA 11.8" in first.text
        assert (first.command, first.who) == ((), "root")
        assert "paddlepaddle.org.cn" in second.text


def test_what_does_not_look_into_wheels_is_led_there() -> None:
    plain, lost = but(NEEDING, looks_in_wheels=True), but(NEEDING, looks_in_wheels=False)
    there = load("libcublas.so.13", unfound=("/opt/cuda/lib64/libcublas.so.13",))
    assert "search wheels" not in check_of("cuda-library-missing", having(plain)).fixes[0].text
    assert "does not search wheels" in check_of("cuda-library-missing", having(lost)).fixes[1].text
    found = check_of("library-not-found", having(but(plain, loads=(there,))))
    assert "install" in found.fixes[0].command
    found = check_of("library-not-found", having(but(lost, loads=(there,))))
    assert found.fixes[0].command[:2] == ("env", "LD_LIBRARY_PATH=/opt/cuda/lib64")


def test_what_a_wheel_laid_where_the_loader_does_not_look_is_not_installed_again() -> None:
    """As with TensorFlow 2.21.0, which has its search path lead into the wheels that its extra brings, but for one."""
    solver = f"{VENV}/nvidia/cusolver/lib/libcusolver.so.11"
    ours = copy(solver, "cusolver", "11.7.5", cuda="12.9", owner="nvidia-cusolver-cu12==11.7.5.82")
    lacking = load("libcusolver.so.11", unfound=(solver,))
    machine = having(pytorch(lacking), libraries=(ours,), distributions=wheels(nvidia_cusolver_cu12="11.7.5.82"))
    (check,) = checks_of("library-not-found", machine)
    assert [fix.command[:2] for fix in check.fixes] == [("env", f"LD_LIBRARY_PATH={VENV}/nvidia/cusolver/lib")]
    assert "do so again" in check.message
    for other in (but(ours, altered=True), but(ours, origin="toolkit"), but(ours, environment="/other")):
        (check,) = checks_of("library-not-found", having(pytorch(lacking), libraries=(other,)))
        assert "install" in check.fixes[0].command
        assert "would again" not in check.message
    toolkits = load("libcufft.so.11", unfound=("/opt/cuda/lib64/libcufft.so.11",))
    (check,) = checks_of("library-not-found", having(pytorch(toolkits, lacking), libraries=(ours,)))
    assert "/opt/cuda/lib64/libcufft.so.11 exists" in check.message
    assert "would again" not in check.message, "it is not the one of which this is said"
    both = having(pytorch(lacking, load("libcufft.so.11")), libraries=(ours,))
    (check,) = checks_of("cuda-library-missing", both)
    assert "cusolver" not in " ".join(check.fixes[0].command)
    assert "cufft" in " ".join(check.fixes[0].command)


def test_onnxruntime_is_told_of_its_call_only_where_it_has_one() -> None:
    """From 1.21 on; before, nothing but a search path leads it to wheels."""
    solver = f"{VENV}/nvidia/cublas/lib/libcublas.so.12"
    ours = copy(solver, "cublas", "12.4.5", cuda="12.4", owner="nvidia-cublas-cu12==12.4.5.8")
    lacking = (load("libcublas.so.12", unfound=(solver,)),)
    older = but(NEEDING, name="onnxruntime-gpu", version="1.20.1", cuda="12.4", loads=lacking)
    newer = but(older, version="1.21.0", preload_call="onnxruntime.preload_dlls()")
    for release, libraries, status in ((older, ours, "fail"), (newer, ours, "note"), (newer, None, "fail")):
        known = but(ours, environment="/other") if libraries is None else ours
        (check,) = checks_of("library-not-found", having(release, libraries=(known,)))
        assert check.status == status
        said = [check.title, *(fix.text for fix in check.fixes)]
        assert any("preload_dlls" in text for text in said) is (release is newer)


def test_of_an_extension_nothing_is_missed_where_what_it_extends_cannot_be_loaded() -> None:
    vision = but(NEEDING, name="torchvision", cuda=None, extends="torch", loads=(load("libcufft.so.11"),))
    assert "torchvision" in checks_of("cuda-library-missing", having(pytorch(), vision))[-1].subject.key
    broken = having(pytorch(load("libtorch_cuda.so", f"{VENV}/x.so", refused=CUT)), vision)
    assert [
        each.subject.key for each in checks_of("cuda-library-missing", broken) if "vision" in each.subject.key
    ] == []


@cases("others", ("/venv/lib/libcufft.so.11",), ())
def test_a_refused_file_that_a_variable_leads_to_is_taken_off_it(others: tuple[str, ...]) -> None:
    """What would be installed in its place is hidden by it as before; where there is none, it is installed too."""
    stray = load("libcufft.so.11", "/x/libcufft.so.11", refused=CUT, found_by="LD_LIBRARY_PATH", others=others)
    snapshot = but(having(pytorch(stray)), variables=variables(LD_LIBRARY_PATH="/x:/y"))
    fixes = check_of("library-not-found", snapshot).fixes
    assert fixes[0].command == ("env", "LD_LIBRARY_PATH=/y", "python")
    assert any("install" in fix.command for fix in fixes) is not bool(others)


BLACKWELL = machine(geforce("NVIDIA GeForce RTX 5090", "12.0", "10de:2b85")).gpus
VOLTA = machine(geforce("Tesla V100-SXM2-16GB", "7.0", "10de:1db1")).gpus
TWO_PTXAS = but(ptxas("12.4.99"), built_for={"ptxas": "12.4.99", "ptxas-blackwell": "12.6.85"})
NAMED = "/usr/local/cuda/bin/ptxas"
RAN = Trial(source="trial", imported=True, ran_on_gpu=True, proof="pointer")
THAT_RAN = having(pytorch(load("libcufft.so.11"), OLD_JITLINK, trial=RAN))
NO_CUDNN = "ImportError: libcudnn.so.9: cannot open shared object file: No such file or directory"
NOT_IMPORTED = having(pytorch(load("libcudnn.so.9"), trial=Trial(imported=False, ran_on_gpu=False, error=NO_CUDNN)))
SHADOWED = having(pytorch(OLD_CUDNN), libraries=(BUNDLED,))
TOOLKIT_11 = (
    "libcudart.so.11.0", "libcupti.so.11.8", "libnvToolsExt.so.1", "libnvJitLink.so.12", "libcusolverMg.so.11",
)  # fmt: skip
JAX, NUMBA = framework("jax", "0.12.0", cuda="12", cpu_only=False), framework("numba", "0.68.1")
PLUGIN = but(
    NEEDING, name="jax-cuda12-plugin", cuda="12", extends="jax", loads=(load("libcublas.so.12", optional=True),)
)
NUMBA_CUDA = but(NEEDING, name="numba-cuda", cuda=None, extends="numba", loads=(load("libnvvm.so.4"),))
NO_PTX = "XlaRuntimeError: UNAVAILABLE: No PTX compilation provider is available. Neither ptxas/nvlink nor nvjtlink is"
NO_COMPILER = Trial(source="trial", imported=True, ran_on_gpu=False, error=NO_PTX)
DRIVERS = DriverLibrary(
    source="file", path="/x/libcuda.so.1", soname="libcuda.so.1", found_as=("/x/libcuda.so.1",), refused=CUT,
    found_by="LD_LIBRARY_PATH",
)  # fmt: skip
PIP = f"{VENV}/bin/python -m pip install"


def with_numba(release: str, speaks: str) -> Snapshot:
    """Numba without its compilers, which an extra for either CUDA brings."""
    return having(NUMBA, but(NUMBA_CUDA, version="0.30.4"), **with_extras(release, speaks))


def with_extras(release: str, speaks: str, **wheel: str) -> dict[str, Any]:
    extras = {12: ("nvcc", "nvidia-nvjitlink-cu12<13"), 13: ("nvvm", "nvidia-nvjitlink<14,>=13")}
    lines = (
        (f"cuda-toolkit[{tool}]=={major}.*; extra == 'cu{major}'", f"{other}; extra == 'cu{major}'")
        for major, (tool, other) in extras.items()
    )
    own = but(wheels(numba_cuda="0.30.4")[0], requires=tuple(line for pair in lines for line in pair))
    return {"distributions": (own, *wheels(**wheel)), "driver": driver(release, cuda=speaks)}


def with_nvvm(version: str, release: str, speaks: str, gpus: Any) -> Snapshot:
    """Numba with the NVVM of NVIDIA's wheel."""
    found = load("libnvvm.so.4", f"{VENV}/lib/libnvvm.so.4", version, owner=f"nvidia-nvvm=={version}")
    target = but(NUMBA_CUDA, version="0.30.4", loads=(found,), loads_complete=True)
    return having(NUMBA, target, gpus=gpus, **with_extras(release, speaks, nvidia_nvvm=version))


def lacking(name: str, lines: tuple[str, ...], *missing: str) -> Snapshot:
    return having(but(NEEDING, name=name, requires=lines, loads=tuple(map(load, missing))))


@cases("rule, about, there, expected",
    ("jit-compiler-too-old", "a newer GPU than ptxas knows", having(ptxas("12.4.99"), gpus=BLACKWELL), ("warn",)),
    ("jit-compiler-too-old", "a variable names another ptxas",
     having(ptxas("12.4.99"), gpus=BLACKWELL, variables=variables(TRITON_PTXAS_PATH=NAMED)), ()),
    ("jit-compiler-too-old", "Triton reads another variable where it brings a ptxas for the newest GPUs",
     having(TWO_PTXAS, gpus=BLACKWELL, variables=variables(TRITON_PTXAS_PATH=NAMED)),
     {"fixes": {f"env TRITON_PTXAS_BLACKWELL_PATH={NAMED} python"}}),
    ("jit-compiler-too-old", "that variable names another ptxas",
     having(TWO_PTXAS, gpus=BLACKWELL, variables=variables(TRITON_PTXAS_BLACKWELL_PATH=NAMED)), ()),
    ("jit-compiler-too-old", "NVVM has dropped the GPU", with_nvvm("13.5.37", "580.65.06", "13.0", VOLTA),
     {"status": "fail", "title": "numba-cuda 0.30.4 cannot compile for GPU 0 (Tesla V100-SXM2-16GB)",
      "fixes": (f"{PIP[:-8]} uninstall --yes nvidia-nvvm", f"{PIP} numba-cuda[cu12]==0.30.4")}),
    ("jit-compiler-too-old", "the driver is older than NVVM", with_nvvm("13.5.37", "570.133.20", "12.8", BLACKWELL),
     {"status": "fail", "title": "Driver 570.133.20 is too old for what numba-cuda 0.30.4 compiles",
      "fixes": {f"{PIP} numba-cuda[cu12]==0.30.4"}}),
    ("jit-compiler-too-old", "NVVM knows the GPU", with_nvvm("13.5.37", "580.65.06", "13.0", BLACKWELL), ()),
    ("jit-compiler-too-old", "for a GPU that is newer than NVVM Numba compiles as for an older one",
     with_nvvm("12.4.131", "580.65.06", "13.0", BLACKWELL), ()),
    ("jit-compiler-missing", "CC names none",
     having(but(ptxas("12.4.99"), compiles_with={"CC": "", "Python.h": "/x"})),
     {"status": "warn", "fixes": ("env -u CC python",)}),
    ("jit-compiler-missing", "JAX is told what to install", compiled_by_xla("nvidia-cublas"),
     {"title": "jax 0.12.0 lacks nvidia-cuda-nvcc and nvidia-nvvm", "fix": "…nvidia-cuda-nvcc>=13.0.48 nvidia-nvvm"}),
    ("jit-compiler-missing", "JAX says so", compiled_by_xla("nvidia-cublas", trial=NO_COMPILER),
     {"cause": "jit-compiler-missing", "status": "fail", "evidence": [NO_PTX], "fix": {"nvidia-cuda-nvcc>=13.0.48"}}),
    ("jit-compiler-missing", "JAX ran", compiled_by_xla("nvidia-cublas", trial=RAN), ()),
    ("cuda-library-missing", "what ran lacks nothing", THAT_RAN, ("pass",)),
    ("nvjitlink-mismatch", "what ran has what it needs", THAT_RAN, ()),
    ("framework-import-fails", "by a missing library", NOT_IMPORTED, {"explained_by": f"cudnn-missing@{VENV}:torch"}),
    ("cudnn-missing", "an import says so", NOT_IMPORTED, {"decided_by": "framework-ran"}),
    ("cudnn-too-old", "by a copy that comes first", SHADOWED, {"explained_by": f"library-shadowed@{VENV}:torch"}),
    ("library-shadowed", "the variable is unset", SHADOWED,
     {"fix": "env -u LD_LIBRARY_PATH python", "text": f"…{OLD}…"}),
    ("cudnn-missing", "the wheel that the metadata asks for", having(pytorch(load("libcudnn.so.9"))),
     {"fix": f"{PIP} nvidia-cudnn-cu12==9.1.0.70"}),
    # Wheels of cuRAND or cuFFT have versions of their own: there is no nvidia-curand 13
    *(("cuda-library-missing", f"the toolkit's extras for CUDA {cuda}", having(but(NEEDING, cuda=cuda)),
       {"fix": f"{PIP} {wanted}"}) for cuda, wanted in (
        ("13", "cuda-toolkit[cublas,curand,nvrtc]==13.* nvidia-nccl-cu13==2.*"),
        ("12", "cuda-toolkit[cublas,curand,nvrtc]==12.* nvidia-nccl-cu12==2.*"),
        ("12.6", "cuda-toolkit[cublas,curand,nvrtc]==12.6.* nvidia-nccl-cu12==2.*"),
        ("9.2", "nvidia-nccl-cu9==2.*"))),
    ("cuda-library-missing", "names of the toolkit's extras",
     having(but(NEEDING, cuda="11.8", loads=tuple(map(load, TOOLKIT_11)))),
     {"fix": f"{PIP} cuda-toolkit[cudart,cupti,nvtx,nvjitlink,cusolver]==11.8.*"}),
    ("cudnn-missing", "the newest cuDNN has no libcudnn.so.8",
     having(but(NEEDING, name="ctranslate2", cuda="12", loads=(load("libcudnn.so.8"),))),
     {"fix": f"{PIP} nvidia-cudnn-cu12==8.*"}),
    # The extra brings what else belongs to it, as JAX's compiler; nothing is installed anew that is there
    ("cuda-library-missing", "JAX's extra", lacking("jax-cuda12-plugin", OF_JAX, "libcublas.so.12"),
     {"fix": f"{PIP} jax-cuda12-plugin[with-cuda]==13.6.0"}),
    ("cuda-library-missing", "ONNX Runtime's extras",
     lacking("onnxruntime-gpu", OF_ONNX, "libcurand.so.10", "libcudnn.so.9"),
     {"fix": f"{PIP} onnxruntime-gpu[cuda,cudnn]==13.6.0"}),
    ("cuda-library-missing", "CuPy's extra", lacking("cupy-cuda13x", OF_CUPY, "libcublas.so.13", "libcurand.so.10"),
     {"fix": f"{PIP} cupy-cuda13x[ctk]==13.6.0"}),
    ("cuda-library-missing", "two extras bring it",
     lacking("x", (OF_ONNX[0], OF_ONNX[0].replace("cuda", "all")), "libcurand.so.10"),
     {"fix": f"{PIP} nvidia-curand~=10.0"}),
    ("cuda-library-missing", "it is required without an extra",
     lacking("x", ("nvidia-curand~=10.0",), "libcurand.so.10"), {"fix": f"{PIP} nvidia-curand~=10.0"}),
    ("cuda-library-missing", "without its plug-in JAX computes on the CPU", having(JAX, PLUGIN), {"status": "fail"}),
    ("cuda-library-missing", "PyTorch uses the GPU beside it", having(pytorch(), JAX, PLUGIN), ("pass", "warn")),
    ("cuda-library-missing", "Numba needs its own too", having(NUMBA, NUMBA_CUDA), {"status": "fail"}),
    ("cuda-library-missing", "PyTorch itself cannot use the GPU",
     having(framework("torch", "2.5.1+cpu", cpu_only=True), but(NEEDING, name="torchvision", extends="torch")),
     {"status": "warn"}),
    ("cuda-library-missing", "Numba's extra for CUDA 13", with_numba("580.65.06", "13.0"),
     {"fix": f"{PIP} numba-cuda[cu13]==0.30.4"}),
    ("cuda-library-missing", "Numba's extra for CUDA 12", with_numba("550.54.14", "12.4"),
     {"fix": f"{PIP} numba-cuda[cu12]==0.30.4"}),
    ("cuda-library-missing", "what is listed comes again by force alone",
     having(pytorch(load("libcublas.so.12")), distributions=wheels(nvidia_cublas_cu12="12.4.5.8")),
     {"fix": {"--force-reinstall"}}),
    ("library-not-found", "a file of the framework itself is cut off",
     having(pytorch(load("libtorch_cuda.so", f"{VENV}/lib/libtorch_cuda.so", refused=CUT))),
     {"status": "fail", "title": "torch 2.5.1+cu124 cannot load libtorch_cuda.so", "message": f"…{CUT}…"}),
    ("library-not-found", "the finding about the driver's library tells of it",
     having(pytorch(load("libcuda.so.1", DRIVERS.path, refused=CUT, found_by="LD_LIBRARY_PATH", optional=False)),
            driver=driver(libraries=Listing(items=(DRIVERS,), complete=True), cuda_init=None)),
     {"explained_by": "driver-library-unusable@machine"}),
)  # fmt: skip
def test_what_rules_say(rule: str, about: str, there: Snapshot, expected: Any) -> None:
    assert said(rule, there, expected) == expected
