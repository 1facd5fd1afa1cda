"""Which finding is told first where several frameworks of one environment fail, and which explains which."""

import pytest

from envcheck.knowledge.load import load_matrix
from envcheck.model.snapshot import DamagedFile, Framework, Library, Listing, Load, Shipped, Snapshot, Trial
from envcheck.pipeline.session import Request
from envcheck.pipeline.session import judge as report_on
from envcheck.rules.api import Facts
from envcheck.rules.engine.evaluate import framework_importance
from tests.every import cases
from tests.rules.machines import (
    VENV,
    but,
    cause,
    check_of,
    checks_of,
    judge,
    machine,
    not_loaded,
    torch,
    venv,
    with_venv,
)
from tests.rules.packages.packages_here import dist, load

NUMPY_ERROR = "ImportError: Numba needs NumPy 2.3 or less. Got NumPy 2.4. (in a kernel compiled at run time)"
IMPORT_FAILS = Trial(source="trial", imported=False, error="ImportError: /x/libfoo.so.1: undefined symbol: bar")


def numba(**changes: object) -> Framework:
    return but(
        Framework(source="file", name="numba-cuda", version="0.20.0", extends="numba", cpu_only=False), **changes
    )


def beside_numba(*frameworks: Framework, snapshot: Snapshot | None = None) -> Snapshot:
    """Numba-cuda, which NumPy is too new for, beside other frameworks."""
    failing = Trial(source="trial", imported=True, ran_on_gpu=False, error=NUMPY_ERROR)
    environment = venv(*frameworks, numba(trial=failing))
    installed = (*(environment.distributions or ()), dist("numpy", "2.4.0"))
    return with_venv(snapshot or machine(), but(environment, distributions=installed))


def test_a_compilers_numpy_message_is_never_told_before_the_failure_of_pytorch() -> None:
    found = beside_numba(torch(trial=IMPORT_FAILS))
    assert cause(found) == "framework-import-fails"
    fails = next(check for check in checks_of("framework-import-fails", found) if check.id.endswith(":torch"))
    assert fails.explained_by is None, "Numba's NumPy does not explain PyTorch"
    (mismatch,) = checks_of("numpy-abi-mismatch", found)
    assert mismatch.frameworks == ("numba-cuda",)
    assert mismatch.fixes[0].command, "a step that can be copied"


def test_alone_it_is_the_cause_of_what_it_stops() -> None:
    found = beside_numba(torch())
    assert cause(found) == "numpy-abi-mismatch"
    symptom = next(check for check in checks_of("framework-cannot-use-gpu", found) if "numba" in check.id)
    assert symptom.explained_by == f"numpy-abi-mismatch@{VENV}"


def test_the_machine_comes_before_its_software() -> None:
    assert cause(beside_numba(torch(trial=IMPORT_FAILS), snapshot=not_loaded())) == "driver-not-loaded"


@cases("failing, helper", ("torch", "cupy-cuda12x"), ("jax", "numba"), ("vllm", "cupy-cuda12x"), ("cupy", "numba"))
def test_what_people_came_for_is_told_before_its_helpers(failing: str, helper: str) -> None:
    names = sorted((failing, helper), reverse=failing < helper)
    found = with_venv(
        machine(), venv(*(Framework(source="file", name=name, version="0.0.1", trial=IMPORT_FAILS) for name in names))
    )
    assert report_on(found, Request()).primary_check == f"framework-import-fails@{VENV}:{failing}"


def test_a_cause_is_no_milder_than_what_it_explains() -> None:
    """The import of a compiler fails: what its error names is a warning in itself, and the reason of a failure."""
    refused = numba(trial=Trial(source="trial", imported=False, error=NUMPY_ERROR))
    environment = venv(torch(), refused)
    found = but(environment, distributions=(*(environment.distributions or ()), dist("numpy", "2.4.0")))
    report = report_on(with_venv(machine(), found), Request())
    lead = report.check(report.primary_check)
    assert lead is not None
    assert (report.verdict, report.exit_code, lead.rule, lead.status) == ("fail", 1, "numpy-abi-mismatch", "fail")


def test_an_overlay_comes_before_the_libraries_that_its_mixed_files_miss() -> None:
    missing = load("libcublas.so.11", path=None, found_by=None, needed_by="/x/cupy_backends/cuda/libs/cublas.so")
    cupy = Framework(source="file", name="cupy-cuda11x", version="13.4.1", path="/x/cupy", cuda="11", loads=(missing,))
    both = (dist("cupy-cuda11x", "13.4.1"), dist("cupy-cuda12x", "13.4.1"))
    found = with_venv(machine(), but(venv(cupy), distributions=both))
    assert "cuda-library-missing" in {check.rule for check in checks_of("cuda-library-missing", found)}
    assert cause(found) == "cupy-multiple-packages"
    assert checks_of("cuda-library-missing", found)[0].explained_by == f"cupy-multiple-packages@{VENV}"


def test_what_a_framework_requires_is_told_before_what_other_packages_do() -> None:
    needs = ("typing-extensions>=4.10.0",)
    pytorch = torch(requires=needs)
    others = dist("torch", "2.5.1", requires=needs), dist("anyio", "4.15.1", requires=("typing-extensions>=4.16",))
    installed = (*others, dist("typing-extensions", "4.4.0"))
    environment = but(venv(pytorch), distributions=installed, distributions_complete=True, damaged=())
    found = with_venv(machine(), environment)
    assert {"requirement-broken", "package-requirement-broken"} <= {
        each.rule for each in judge(found) if each.status == "warn"
    }
    assert cause(found) == "requirement-broken"


OF_THE_OTHER = {
    "cuda-major-mismatch": load("libcublas.so.11", path=None, found_by=None),
    "library-not-found": load("libcublas.so.12", path=None, found_by=None, unfound=("/opt/x/libcublas.so.12",)),
    "cudnn-missing": load("libcudnn.so.8", path=None, found_by=None),
    "nccl-missing": load("libnccl.so.2", path=None, found_by=None),
}


@cases("names", ("cupy-cuda11x", "cupy-cuda12x"), ("onnxruntime", "onnxruntime-gpu"))
@pytest.mark.parametrize("missing", OF_THE_OTHER)
def test_an_overlay_accounts_for_all_that_its_mixed_files_miss(missing: str, names: tuple[str, str]) -> None:
    """Also for the damage that overwriting did to one of them; not for that of another package."""
    mixed = Framework(
        source="file", name=names[0], version="13.4.1", path="/x/a", cuda="11", loads=(OF_THE_OTHER[missing],)
    )
    both = tuple(dist(name, "13.4.1", path=f"/x/{name}.dist-info", requires=()) for name in names)
    installed = (*both, dist("scipy", "1.17.0", path="/x/scipy.dist-info"))
    cublas = Library(source="x", path="/opt/x/libcublas.so.12", soname="libcublas.so.12", family="cublas", cuda="12")
    snapshot = machine(libraries=Listing(items=(cublas,), complete=True))

    def having_damaged(name: str) -> Snapshot:
        file = DamagedFile(
            source=f"file /x/{name}.dist-info/RECORD", path="/x/a/core.so", package=name, version="1", kind="missing"
        )
        shipped = Shipped(source="wheel metadata", damaged=(file,))
        return with_venv(snapshot, but(venv(mixed), distributions=installed, damaged=(), shipped=shipped))

    overlay = "cupy-multiple-packages" if "cupy" in names[0] else "onnxruntime-cpu-and-gpu"
    found = having_damaged(names[1])
    assert missing in {check.rule for check in judge(found) if check.status in ("fail", "warn")}
    assert {check.rule for check in judge(found) if check.status in ("fail", "warn") and not check.explained_by} == {
        overlay
    }
    assert check_of("damaged-distribution", having_damaged("scipy")).explained_by is None


def test_after_a_doubled_cupy_the_loader_is_led_to_the_wheels() -> None:
    both = (dist("cupy-cuda11x", "13.4.1"), dist("cupy-cuda12x", "13.4.1"))
    for looks, wheels, steps in ((False, True, 1), (False, False, 0), (True, True, 0)):
        cupy = Framework(source="file", name="cupy-cuda11x", version="13.4.1", path="/x/cupy", looks_in_wheels=looks)
        installed = (*both, dist("nvidia-cublas-cu12", "12.4.5.8")) if wheels else both
        fixes = check_of("cupy-multiple-packages", with_venv(machine(), but(venv(cupy), distributions=installed))).fixes
        led = [fix for fix in fixes if "LD_LIBRARY_PATH" in fix.text]
        assert len(led) == steps
        assert all(fix.continues and "cupy-cuda12x" in fix.text for fix in led)


def test_the_roles_of_the_matrix() -> None:
    known = load_matrix()
    facts = Facts(Snapshot(), known)
    of = {name: Framework(source="file", name=name) for name in ("torch", "cupy-cuda12x", "numba", "unheard-of")}
    assert [facts.importance(each) for each in of.values()] == [0, 1, 2, 2]
    assert [facts.is_main_framework(each) for each in of.values()] == [True, True, False, False]
    serving = Framework(source="file", name="vllm", extends="torch")
    assert (facts.importance(serving), facts.is_main_framework(serving)) == (0, False)
    extension = Framework(source="file", name="torchvision", extends="torch")
    assert (facts.importance(extension), facts.is_main_framework(extension)) == (2, False)
    assert framework_importance(Facts(Snapshot(), known)) == {}


def test_words_about_a_library_confirm_the_finding_that_names_its_file() -> None:
    lacking = Load(
        source="elf x", name="libstdc++.so.6", needed_by=f"{VENV}/lib/python3.12/site-packages/jax_cuda13_plugin/x.so",
        path="/opt/gcc-4.9/libstdc++.so.6", found_by="LD_LIBRARY_PATH", lacks=("GLIBCXX_3.4.22",),
        offers="GLIBCXX_3.4.20",
    )  # fmt: skip
    failing = Trial(
        source="trial",
        imported=False,
        error="ImportError: /opt/gcc-4.9/libstdc++.so.6: version `GLIBCXX_3.4.22' not found (required by /v/jaxlib.so)",
    )
    jax = Framework(source="file", name="jax", version="0.11.2", path=f"{VENV}/jax", trial=failing)
    part = Framework(
        source="file", name="jax-cuda13-plugin", version="0.11.2", extends="jax", cpu_only=False, loads=(lacking,)
    )
    found = with_venv(machine(), venv(jax, part))
    assert cause(found) == "libstdcxx-too-old"
    (check,) = (each for each in checks_of("libstdcxx-too-old", found) if each.status == "fail")
    assert "/opt/gcc-4.9" in check.message
    assert check.evidence[0].what == "error from jax"
    symptom = next(each for each in checks_of("framework-import-fails", found) if each.id.endswith(":jax"))
    assert symptom.explained_by == check.id


def test_of_frameworks_alike_the_first_in_the_matrix_leads() -> None:
    alike = [Framework(source="file", name=name, version="1.0", trial=IMPORT_FAILS) for name in ("onnxruntime", "jax")]
    keys = list(
        framework_importance(Facts(with_venv(machine(), venv(*alike, torch(trial=IMPORT_FAILS))), load_matrix()))
    )
    assert keys == [f"{VENV}:torch", f"{VENV}:jax", f"{VENV}:onnxruntime"]
