"""The rules about CUDA's libraries, cuDNN, NCCL, TensorRT, wheels and compilers, on constructed machines."""

import msgspec

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
    cause,
    check_of,
    checks_of,
    driver,
    geforce,
    judge,
    machine,
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


def test_a_newer_gpu_than_ptxas_knows() -> None:
    blackwell = geforce("NVIDIA GeForce RTX 5090", "12.0", "10de:2b85")
    snapshot = but(having(ptxas("12.4.99")), gpus=machine(blackwell).gpus)
    assert statuses("jit-compiler-too-old", snapshot) == ("warn",)
    named = but(snapshot, variables=variables(TRITON_PTXAS_PATH="/usr/local/cuda/bin/ptxas"))
    assert statuses("jit-compiler-too-old", named) == ()


def test_triton_reads_another_variable_where_it_brings_a_ptxas_for_the_newest_gpus() -> None:
    both = but(ptxas("12.4.99"), built_for={"ptxas": "12.4.99", "ptxas-blackwell": "12.6.85"})
    blackwell = geforce("NVIDIA GeForce RTX 5090", "12.0", "10de:2b85")
    snapshot = but(having(both), gpus=machine(blackwell).gpus)
    named = but(snapshot, variables=variables(TRITON_PTXAS_PATH="/usr/local/cuda/bin/ptxas"))
    commands = [fix.command for fix in check_of("jit-compiler-too-old", named).fixes]
    assert ("env", "TRITON_PTXAS_BLACKWELL_PATH=/usr/local/cuda/bin/ptxas", "python") in commands
    named = but(snapshot, variables=variables(TRITON_PTXAS_BLACKWELL_PATH="/usr/local/cuda/bin/ptxas"))
    assert statuses("jit-compiler-too-old", named) == ()


def test_a_compiler_that_cc_names_in_vain_is_unset() -> None:
    check = check_of("jit-compiler-missing", having(but(ptxas("12.4.99"), compiles_with={"CC": "", "Python.h": "/x"})))
    assert (check.status, [fix.command for fix in check.fixes]) == ("warn", [("env", "-u", "CC", "python")])


def test_what_ran_on_the_gpu_lacks_nothing() -> None:
    ran = Trial(imported=True, ran_on_gpu=True)
    snapshot = having(pytorch(load("libcufft.so.11"), OLD_JITLINK, trial=ran))
    assert statuses("cuda-library-missing", snapshot) == ("pass",)
    assert statuses("nvjitlink-mismatch", snapshot) == ()


def test_a_missing_library_accounts_for_an_import_that_fails() -> None:
    error = "ImportError: libcudnn.so.9: cannot open shared object file: No such file or directory"
    snapshot = having(pytorch(load("libcudnn.so.9"), trial=Trial(imported=False, ran_on_gpu=False, error=error)))
    failed, missing = check_of("framework-import-fails", snapshot), check_of("cudnn-missing", snapshot)
    assert failed.explained_by == missing.id
    assert missing.decided_by == "framework-ran"


def test_a_shadowing_copy_accounts_for_what_it_breaks() -> None:
    snapshot = having(pytorch(OLD_CUDNN), libraries=(BUNDLED,))
    shadowed = check_of("library-shadowed", snapshot)
    assert check_of("cudnn-too-old", snapshot).explained_by == shadowed.id
    assert shadowed.fixes[0].command == ("env", "-u", "LD_LIBRARY_PATH", "python")
    assert OLD in shadowed.fixes[0].text


def test_the_wheel_that_the_metadata_asks_for_is_named() -> None:
    fix = check_of("cudnn-missing", having(pytorch(load("libcudnn.so.9")))).fixes[0]
    assert fix.command == (f"{VENV}/bin/python", "-m", "pip", "install", "nvidia-cudnn-cu12==9.1.0.70")


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


@cases(
    "cuda, wanted",
    ("13", ("cuda-toolkit[cublas,curand,nvrtc]==13.*", "nvidia-nccl-cu13==2.*")),
    ("12", ("cuda-toolkit[cublas,curand,nvrtc]==12.*", "nvidia-nccl-cu12==2.*")),
    ("12.6", ("cuda-toolkit[cublas,curand,nvrtc]==12.6.*", "nvidia-nccl-cu12==2.*")),
    ("9.2", ("nvidia-nccl-cu9==2.*",)),
)
def test_wheels_of_the_toolkit_are_asked_for_by_its_distribution(cuda: str, wanted: tuple[str, ...]) -> None:
    """Those of cuRAND or cuFFT have versions of their own: there is no nvidia-curand 13."""
    (check,) = checks_of("cuda-library-missing", having(but(NEEDING, cuda=cuda)))
    assert check.fixes[0].command[4:] == wanted


def test_the_extras_of_the_toolkit_have_names_of_their_own() -> None:
    names = ("libcudart.so.11.0", "libcupti.so.11.8", "libnvToolsExt.so.1", "libnvJitLink.so.12", "libcusolverMg.so.11")
    lacking = but(NEEDING, cuda="11.8", loads=tuple(map(load, names)))
    (check,) = checks_of("cuda-library-missing", having(lacking))
    assert check.fixes[0].command[4:] == ("cuda-toolkit[cudart,cupti,nvtx,nvjitlink,cusolver]==11.8.*",)


def test_a_library_apart_from_the_toolkit_is_of_the_major_in_its_name() -> None:
    """The newest cuDNN has no libcudnn.so.8."""
    old = but(NEEDING, name="ctranslate2", cuda="12", loads=(load("libcudnn.so.8"),))
    (check,) = checks_of("cudnn-missing", having(old))
    assert check.fixes[0].command[4:] == ("nvidia-cudnn-cu12==8.*",)


OF_JAX = tuple(
    f'nvidia-{name}-cu12>=12.1; sys_platform == "linux" and extra == "with-cuda"' for name in ("cublas", "cuda-nvcc")
)
OF_ONNX = ('nvidia-curand~=10.0; extra == "cuda"', 'nvidia-cudnn-cu13~=9.0; extra == "cudnn"')
OF_CUPY = ('cuda-toolkit[cublas,cudart,curand]==13.*; extra == "ctk"',)


@cases(
    "name, lines, missing, wanted",
    ("jax-cuda12-plugin", OF_JAX, ("libcublas.so.12",), ("jax-cuda12-plugin[with-cuda]==13.6.0",)),
    ("onnxruntime-gpu", OF_ONNX, ("libcurand.so.10", "libcudnn.so.9"), ("onnxruntime-gpu[cuda,cudnn]==13.6.0",)),
    ("cupy-cuda13x", OF_CUPY, ("libcublas.so.13", "libcurand.so.10"), ("cupy-cuda13x[ctk]==13.6.0",)),
    ("x", (OF_ONNX[0], OF_ONNX[0].replace("cuda", "all")), ("libcurand.so.10",), ("nvidia-curand~=10.0",)),
    ("x", ("nvidia-curand~=10.0",), ("libcurand.so.10",), ("nvidia-curand~=10.0",)),
)
def test_the_extra_of_the_framework_brings_what_it_lacks(
    name: str, lines: tuple[str, ...], missing: tuple[str, ...], wanted: tuple[str, ...]
) -> None:
    """And what else belongs to it: JAX needs a compiler too. Nothing is installed anew that is there."""
    framework = but(NEEDING, name=name, requires=lines, loads=tuple(map(load, missing)))
    (check,) = checks_of("cuda-library-missing", having(framework))
    assert check.fixes[0].command[4:] == wanted


def test_a_plugin_without_which_its_framework_has_no_gpu_weighs_as_much_as_a_framework() -> None:
    """JAX computes on the CPU then, with no error raised."""
    jax = Framework(source="file x", name="jax", version="0.12.0", cuda="12", cpu_only=False)
    lost = load("libcublas.so.12", optional=True)
    plugin = but(NEEDING, name="jax-cuda12-plugin", cuda="12", extends="jax", loads=(lost,))
    assert check_of("cuda-library-missing", having(jax, plugin)).status == "fail"
    found = checks_of("cuda-library-missing", having(pytorch(), jax, plugin))
    assert {check.status for check in found} == {"pass", "warn"}, "PyTorch uses the GPU beside it"
    numba = Framework(source="file x", name="numba", version="0.68.1")
    target = but(NEEDING, name="numba-cuda", cuda=None, extends="numba", loads=(load("libnvvm.so.4"),))
    assert check_of("cuda-library-missing", having(numba, target)).status == "fail"
    cpu = Framework(source="file x", name="torch", version="2.5.1+cpu", cpu_only=True)
    vision = but(NEEDING, name="torchvision", extends="torch")
    assert check_of("cuda-library-missing", having(cpu, vision)).status == "warn", "PyTorch itself cannot use it"


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


@cases("release, speaks, extra", ("580.65.06", "13.0", "cu13"), ("550.54.14", "12.4", "cu12"))
def test_numba_gets_its_compilers_by_the_extra_that_the_driver_runs(release: str, speaks: str, extra: str) -> None:
    lines = tuple(f"cuda-bindings=={major}.*; extra == 'cu{major}'" for major in (12, 13))
    own = but(wheels(numba_cuda="0.30.4")[0], requires=lines)
    numba = Framework(source="file x", name="numba", version="0.68.1")
    target = but(
        NEEDING, name="numba-cuda", version="0.30.4", cuda=None, extends="numba", loads=(load("libnvvm.so.4"),)
    )
    snapshot = having(numba, target, distributions=(own,), driver=driver(release, cuda=speaks))
    assert checks_of("cuda-library-missing", snapshot)[-1].fixes[0].command[4:] == (f"numba-cuda[{extra}]==0.30.4",)


def test_what_is_listed_and_whose_file_is_gone_is_installed_again() -> None:
    """Else the installer finds nothing to do."""
    (check,) = checks_of(
        "cuda-library-missing",
        having(pytorch(load("libcublas.so.12")), distributions=wheels(nvidia_cublas_cu12="12.4.5.8")),
    )
    assert "--force-reinstall" in check.fixes[0].command


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
    older = Framework(
        source="elf", name="onnxruntime-gpu", version="1.20.1", cuda="12.4", cpu_only=False,
        loads=(load("libcublas.so.12", unfound=(solver,)),), loads_complete=True,
    )  # fmt: skip
    newer = but(older, version="1.21.0", preload_call="onnxruntime.preload_dlls()")
    for framework, libraries, status in ((older, ours, "fail"), (newer, ours, "note"), (newer, None, "fail")):
        known = but(ours, environment="/other") if libraries is None else ours
        (check,) = checks_of("library-not-found", having(framework, libraries=(known,)))
        assert check.status == status
        said = [check.title, *(fix.text for fix in check.fixes)]
        assert any("preload_dlls" in text for text in said) is (framework is newer)


def test_a_file_of_the_framework_itself_that_is_cut_off() -> None:
    own = load("libtorch_cuda.so", f"{VENV}/lib/libtorch_cuda.so", refused=CUT)
    (check,) = checks_of("library-not-found", having(pytorch(own)))
    assert (check.status, check.title) == ("fail", "torch 2.5.1+cu124 cannot load libtorch_cuda.so")
    assert CUT in check.message


def test_of_an_extension_nothing_is_missed_where_what_it_extends_cannot_be_loaded() -> None:
    vision = Framework(
        source="elf", name="torchvision", version="0.20.1", extends="torch", cpu_only=False,
        loads=(load("libcufft.so.11"),), loads_complete=True,
    )  # fmt: skip
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


def test_the_finding_about_the_driver_library_tells_what_a_framework_cannot_load() -> None:
    path = "/x/libcuda.so.1"
    stray = load("libcuda.so.1", path, refused=CUT, found_by="LD_LIBRARY_PATH", optional=False)
    found = DriverLibrary(source="file", path=path, soname="libcuda.so.1", found_as=(path,), refused=CUT)
    listing = Listing(items=(msgspec.structs.replace(found, found_by="LD_LIBRARY_PATH"),), complete=True)
    snapshot = but(having(pytorch(stray)), driver=driver(libraries=listing, cuda_init=None))
    cause = check_of("driver-library-unusable", snapshot)
    assert check_of("library-not-found", snapshot).explained_by == cause.id


def test_jax_without_its_compilers_is_told_what_to_install() -> None:
    check = check_of("jit-compiler-missing", compiled_by_xla("nvidia-cublas"))
    assert check.title == "jax 0.12.0 lacks nvidia-cuda-nvcc and nvidia-nvvm"
    assert check.fixes[0].command[-2:] == ("nvidia-cuda-nvcc>=13.0.48", "nvidia-nvvm")


def test_what_jax_says_of_it_confirms_it() -> None:
    error = (
        "XlaRuntimeError: UNAVAILABLE: No PTX compilation provider is available. Neither ptxas/nvlink nor nvjtlink is"
    )
    found = compiled_by_xla("nvidia-cublas", trial=Trial(source="trial", imported=True, ran_on_gpu=False, error=error))
    check = check_of("jit-compiler-missing", found)
    assert (cause(found), check.status, check.evidence[0].value) == ("jit-compiler-missing", "fail", error)
    assert "nvidia-cuda-nvcc>=13.0.48" in check.fixes[0].command


def test_what_ran_on_the_gpu_has_its_compilers() -> None:
    ran = Trial(source="trial", imported=True, ran_on_gpu=True, proof="pointer")
    assert checks_of("jit-compiler-missing", compiled_by_xla("nvidia-cublas", trial=ran)) == ()
