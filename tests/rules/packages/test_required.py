"""What packages require, and the Pythons that they admit: what is missing, not admitted, or why a framework fails."""

from typing import Any

from envcheck.model.snapshot import Distribution, Environment, Framework, Snapshot, Trial, TrialFile
from tests.every import cases, tabled
from tests.rules.machines import VENV, but, cause, check_of, checks_of, framework, said, torch, venv, with_venv
from tests.rules.packages.packages_here import SITE, dist, extension, having, load, on, status

REQUIREMENT, PYTHON = "requirement-broken", "python-not-admitted"
NUMBA = framework(
    "numba", "0.68.0", requires=("llvmlite<0.51,>=0.50.0dev0", "numpy<2.6,>=1.22", 'cuda-core; extra == "cu13"')
)
NUMBA_CUDA = framework(
    "numba-cuda", "0.19.1", extends="numba",
    requires=('cuda-bindings==12.9.*; extra == "cu12"', 'cuda-bindings==13.*; extra == "cu13"'),
    needs_one_of=(("cuda-bindings==12.9.*", "cuda-core==0.3.*"), ("cuda-bindings==13.*", "cuda-core==0.3.*")),
)  # fmt: skip


@tabled
def test_of_alternative_extras_one_suffices(bindings: str | None, core: str | None, said: str | None) -> None:
    there = [("cuda-bindings", bindings), ("cuda-core", core), ("llvmlite", "0.50.0")]
    distributions = tuple(dist(name, version) for name, version in there if version)
    numba_cuda = dist("numba-cuda", "0.19.1", requires=NUMBA_CUDA.requires)
    check = check_of(REQUIREMENT, on(having(NUMBA_CUDA, distributions=(*distributions, numba_cuda))))
    assert check.status == ("pass" if said is None else "warn")
    assert said is None or said in check.message
    assert said is None or check.fixes[0].command[-1] == "numba-cuda[cu12]==0.19.1"


@cases(
    "version, nvcc, expected",
    ("0.4.35", "12.9.86", "fail"),
    ("0.4.35", "12.8.93", "pass"),
    ("0.4.36", "12.9.86", "pass"),
)
def test_what_the_code_of_jax_needs_and_its_metadata_does_not_tell(version: str, nvcc: str, expected: str) -> None:
    own = dist("jax", version, requires=("opt-einsum",))
    there = having(
        framework("jax", version, requires=own.requires or ()),
        distributions=(own, dist("nvidia-cuda-nvcc-cu12", nvcc), dist("opt-einsum", "3.4.0")),
    )
    check = check_of(REQUIREMENT, on(there))
    assert check.status == expected
    assert expected == "pass" or check.fixes[0].command[-1] == "nvidia-cuda-nvcc-cu12<12.9"


# --- Python -------------------------------------------------------------------------------------------------------
@tabled
def test_a_python_that_a_release_has_no_wheels_for(name: str, version: str, python: str, expected: str | None) -> None:
    judged = having(framework(name, version, cpu_only=False), python=python)
    assert status("python-unsupported", judged) == expected


@tabled
def test_a_python_that_metadata_does_not_admit(
    framework: str | None, required: str | None, python: str, expected: str | None
) -> None:
    packages = (dist("torch", "2.9.1", requires_python=framework), dist("sympy", "1.13", requires_python=required))
    environment = but(venv(torch("2.9.1+cu128"), python=python), distributions=packages)
    assert status("python-not-admitted", environment) == expected
    of_conda = tuple(but(each, installer="conda") for each in packages)
    assert status("python-not-admitted", but(environment, distributions=of_conda)) == (expected and "pass")


# --- What is required and not there -----------------------------------------------------------------------------------
LINES = (
    "filelock", "typing-extensions>=4.10.0", 'setuptools; python_version >= "3.12"', 'pywin32; sys_platform == "win32"',
    'optree>=0.13.0; extra == "optree"', "nvidia-cudnn-cu12==9.10.2.21", "triton==3.5.1",
)  # fmt: skip


def torch_requiring(*there: str, **changes: Any) -> Environment:
    """PyTorch with what its metadata requires, and distributions of these names."""
    packages = (dist("torch", "2.9.1", requires=LINES), *(dist(name, "4.15.0") for name in there))
    return but(venv(torch("2.9.1+cu128", **changes)), distributions=packages)


PINNING = ("sympy==1.13.1", "jinja2", 'numpy<2; extra == "old"', 'mpmath>=9; sys_platform == "win32"')


def requiring(*others: Distribution, **changes: Any) -> Environment:
    """PyTorch that pins SymPy, which has bounds of its own."""
    own = (dist("torch", "2.9.1", requires=PINNING), dist("jinja2", "3.1", requires=("markupsafe>=2.0",)))
    return but(venv(torch("2.9.1+cu128"), **changes), distributions=(*own, *others))


@tabled
def test_a_release_that_is_not_admitted_is_named(sympy: str, mpmath: str, markupsafe: str, said: str | None) -> None:
    there = (dist("sympy", sympy, requires=("mpmath<1.4",)), dist("mpmath", mpmath), dist("markupsafe", markupsafe))
    check = check_of(REQUIREMENT, on(requiring(*there)))
    assert check.status == ("warn" if said else "pass")
    assert said is None or (said in check.message and check.fixes[-1].command[-1] == said.partition(",")[0].split()[0])
    assert status(REQUIREMENT, requiring(*[but(each, channel="conda") for each in there])) is None


USER = "/home/ada/.local/lib/python3.12/site-packages"
LACKS = f"ImportError: cannot import name 'deprecated' from 'typing_extensions' ({USER}/typing_extensions.py)"
OF_USER = TrialFile(
    source="trial", path=f"{USER}/typing_extensions.py", role="error", owner="typing-extensions==4.1.0",
    state="as installed",
)  # fmt: skip
RAISED = but(OF_USER, role="frame", line=7)
INNER = but(RAISED, path=f"{SITE}/mpmath/libmp.py", owner="mpmath==1.3.0")


def of_the_user_site(*others: Framework, error: str, files: tuple[TrialFile, ...] = (), **trial: Any) -> Snapshot:
    """An old copy of what PyTorch requires in the user site, which its virtual environment sees."""
    failing = Trial(**{"imported": False, "error": error, "files": files, **trial})
    old = dist("typing-extensions", "4.1.0", path=f"{USER}/typing_extensions-4.1.0.dist-info", led_by="user site")
    found = but(torch_requiring("filelock", "triton", trial=failing), base_prefix="/usr", site_packages=(SITE, USER))
    listing = but(found.frameworks, items=(*found.frameworks.items, *others)) if found.frameworks else None
    return on(but(found, distributions=(*(found.distributions or ()), old), frameworks=listing))


@cases(
    "error, files",
    (LACKS, (OF_USER,)),
    ("TypeError: 'type' object is not subscriptable", (RAISED,)),
    ("ImportError: typing_extensions>=4.10.0 is required, but found typing_extensions==4.1.0", ()),
)
def test_an_error_that_names_what_is_required_makes_it_the_cause(error: str, files: tuple[TrialFile, ...]) -> None:
    found = of_the_user_site(error=error, files=files)
    check = check_of(REQUIREMENT, found)
    assert (check.status, check.decided_by, check.evidence[0].value) == ("fail", "framework-ran", error)
    assert check_of("framework-import-fails", found).explained_by == check.id
    assert cause(found) == REQUIREMENT
    assert check.fixes[0].command == (f"{VENV}/bin/python", "-m", "pip", "install", "typing-extensions>=4.10.0")


@cases(
    "error, files",
    ("ImportError: libfoo.so.1: cannot open shared object file", ()),
    ("ImportError: cannot import name 'x' from 'torch.typing_extensions_of_old'", ()),
    ("TypeError: unhashable type", (INNER, RAISED)),
)
def test_an_error_about_something_else_has_another_cause(error: str, files: tuple[TrialFile, ...]) -> None:
    found = of_the_user_site(error=error, files=files)
    check = check_of(REQUIREMENT, found)
    assert (check.status, check.decided_by) == ("warn", "declared")
    assert check_of("framework-import-fails", found).explained_by is None


def test_what_stops_another_framework_too_accounts_for_that() -> None:
    """JAX's own metadata does not ask for the package, which one of its parts imports all the same."""
    jax = framework("jax", "0.8.0", trial=Trial(imported=False, error=LACKS))
    found = of_the_user_site(jax, error=LACKS, files=(OF_USER,))
    (environment,) = found.environments.items if found.environments else ()
    turned = but(environment, frameworks__items=environment.frameworks.items[::-1]) if environment.frameworks else None
    found = with_venv(found, turned or environment)
    check = check_of(REQUIREMENT, found)
    assert {each.explained_by for each in checks_of("framework-import-fails", found)} == {check.id}
    assert [each.what for each in check.evidence[:2]] == ["error from torch", "error from jax"]


def of_python(bounds: str, python: str) -> Environment:
    """PyTorch by metadata that admits these Pythons, in one of them."""
    packages = (dist("torch", "2.9.1", requires_python=bounds),)
    return venv(torch("2.9.1+cu128"), python=python, distributions=packages)


def of_python_315(*names: str) -> Environment:
    """Of SymPy nobody knows which release is for which Python; JAX 0.11.1 is the first for Python 3.15."""
    packages = tuple(dist(name, "0.11.0", requires_python="<3.15") for name in names)
    return venv(framework("jax", "0.11.0"), python="3.15.0", distributions=packages)


ALONE_VISION = but(
    venv(extension("torchvision", "0.24.1+cu128", loads=(load("libcudart.so.12", path=None),))),
    distributions=(dist("torchvision", "0.24.1", requires=("torch==2.9.1", "numpy")),),
)
FROM_PATH = dist("sympy", "1.12", path="/x/sympy", led_by="PYTHONPATH")
ON_CPU = of_the_user_site(error=LACKS, files=(OF_USER,), imported=True, ran_on_gpu=False)


@cases("rule, about, there, expected",
    (REQUIREMENT, "not admitted", having(NUMBA, distributions=(dist("llvmlite", "0.45.0"),)),
     {"status": "warn", "message": "…0.45.0 is installed…", "fix": "…install llvmlite…"}),
    (REQUIREMENT, "not installed", having(NUMBA),
     {"status": "warn", "message": "…which is not installed…", "fix": "…install llvmlite…"}),
    (REQUIREMENT, "met", having(NUMBA, distributions=(dist("llvmlite", "0.50.0"),)), ("pass",)),
    (REQUIREMENT, "a list that is not complete", having(NUMBA, distributions_complete=False), ()),
    (REQUIREMENT, "a marker that is not known decides nothing",
     having(but(NUMBA, requires=('llvmlite>=99; platform_release == "x"', 'cuda-core>=99; sys_platform == "win32"')),
            distributions=(dist("llvmlite", "0.50.0"),)), ("pass",)),
    (REQUIREMENT, "nothing is missed among conda's packages",
     having(NUMBA, distributions=(dist("python", "3.12", channel="conda"),)), ("pass",)),
    (REQUIREMENT, "nor where conda has a package beside others",
     but(torch_requiring(), distributions=(dist("torch", "2.9.1", requires=LINES),
                                           dist("filelock", "3.1", channel="conda"))), ()),
    (REQUIREMENT, "of PyTorch, not installed", torch_requiring("filelock", "pytorch-triton"),
     {"status": "warn", "message": "torch 2.9.1+cu128 requires typing-extensions>=4.10.0, which is not installed.",
      "fix": "…install typing-extensions>=4.10.0"}),
    (REQUIREMENT, "extras, other systems and what most do without are not missed",
     torch_requiring("filelock", "typing-extensions", "triton"), ("pass",)),
    (REQUIREMENT, "what was seen to be imported misses nothing that matters",
     torch_requiring("triton", trial=Trial(imported=True)), ("note",)),
    (REQUIREMENT, "one build stands in for another", but(venv(torch("2.9.1")), distributions=(
        dist("torch", "2.9.1", requires=("onnxruntime>=1.20", "opencv-python>=4.8", "tensorflow>=2")),
        *(dist(name, "4.15.0") for name in ("onnxruntime-gpu", "opencv-contrib-python-headless", "tensorflow-cpu")),
    )), ("pass",)),
    (REQUIREMENT, "the copy that is imported counts", requiring(FROM_PATH, dist("sympy", "1.13.1")),
     {"status": "warn", "message": "…1.12 is imported from /x (by PYTHONPATH)…"}),
    (REQUIREMENT, "it only stops work on the GPU", ON_CPU, {"status": "fail", "cause": REQUIREMENT}),
    (REQUIREMENT, "an extension without what it extends", ALONE_VISION,
     {"status": "fail", "fix": "…torch==2.9.1 numpy"}),
    ("cuda-library-missing", "an extension without what it extends", ALONE_VISION, ()),
    (PYTHON, "for a newer one", of_python(">=3.10", "3.9.18"),
     {"fixes": ("…pip uninstall --yes torch", "…pip install torch")}),
    (PYTHON, "for an older one", of_python("<3.14", "3.14.1"), {"fixes": ("…pip install torch>=2.10.0", "Create …")}),
    (PYTHON, "for an older one, no release is known for this", of_python("<3.14", "3.99.0"), {"fixes": ("Create …",)}),
    (PYTHON, "an upgrade helps every package", of_python_315("jax"), {"fixes": ("…install jax>=0.11.1", "Create …")}),
    (PYTHON, "an upgrade helps one of two", of_python_315("jax", "sympy"), {"fixes": ("Create …",)}),
)  # fmt: skip
def test_what_rules_say(rule: str, about: str, there: Snapshot | Environment, expected: Any) -> None:
    assert said(rule, there, expected) == expected
