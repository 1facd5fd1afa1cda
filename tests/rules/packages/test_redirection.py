"""Redirection: another copy is imported than the installed one, and what follows from it is told under it."""

from typing import Any

import pytest

from envcheck.model.snapshot import Distribution, Framework, Snapshot, Startup, Trial, TrialFile
from tests.every import cases
from tests.rules.machines import (
    VENV,
    but,
    cause,
    check_of,
    checks_of,
    judge,
    machine,
    open_fails,
    torch,
    venv,
    with_venv,
)
from tests.rules.packages.packages_here import extension

SITE = f"{VENV}/lib/python3.12/site-packages"
USER = "/home/ada/.local/lib/python3.12/site-packages"
PTH = f"{SITE}/other.pth"


def led(by: str, folder: str = "/srv/old", **changes: Any) -> Framework:
    return but(torch(path=f"{folder}/torch", led_by=by, instead_of=(f"{SITE}/torch",)), **changes)


def on(*frameworks: Framework, **changes: Any) -> Snapshot:
    return with_venv(machine(), but(venv(*frameworks), **changes))


@cases(
    "by, title, fix",
    ("PYTHONPATH", "PYTHONPATH puts another torch before the installed one", "/srv/old"),
    ("user site", "The user site puts another torch before the installed one", "PYTHONNOUSERSITE"),
    (PTH, "other.pth puts another torch before the installed one", PTH),
)
def test_what_leads_elsewhere_is_named_and_taken_away(by: str, title: str, fix: str) -> None:
    check = check_of("package-shadowed", on(led(by)))
    assert (check.status, check.title) == ("warn", title)
    assert fix in check.fixes[0].text
    assert not any("install" in fix.command for fix in check.fixes), "the installed copy is not to be touched"


def test_a_requirement_without_a_version_and_pythons_own_modules_are_redirected_too() -> None:
    """A folder ``numpy`` and a file ``random.py`` in somebody's project."""
    stray = Distribution(source="file", name="numpy", version="", path="/project/numpy", led_by="PYTHONPATH")
    there = Distribution(source="file", name="numpy", version="2.2.6", path=f"{SITE}/numpy-2.2.6.dist-info")
    check = check_of("package-shadowed", on(torch(), distributions=(stray, there)))
    assert (check.status, check.title) == ("warn", "PYTHONPATH puts another numpy before the installed one")
    check = check_of("package-shadowed", on(torch(), hides_pythons_own=("/project/random.py",)))
    assert (check.status, check.title) == ("warn", "PYTHONPATH puts another random before Python's own")
    assert "/project" in check.fixes[0].text


def test_what_follows_is_told_under_it() -> None:
    """An old PyTorch without code for the GPU, and an extension for the installed one."""
    old = led("PYTHONPATH", gpu_code=("sm_50",))
    vision = extension("torchvision", "0.20.1", built_for={"torch": "2.5.1"})
    found = on(but(old, version="2.1.0+cu118"), vision)
    assert cause(found) == "package-shadowed"
    open_ones = [check.rule for check in judge(found) if check.status in ("fail", "warn") and not check.explained_by]
    assert open_ones == ["package-shadowed"]
    assert check_of("package-shadowed", found).status == "fail", "what it explains fails"


def test_a_folder_of_the_same_name_is_a_failure() -> None:
    problem = "/home/me/torch holds no version.py: an incomplete or shadowing torch"
    stray = torch(path="/home/me/torch", led_by="PYTHONPATH", incomplete=True, problem=problem)
    check = check_of("package-shadowed", on(stray))
    assert check.status == "fail"
    assert problem in check.message


def test_a_folder_that_nothing_installed_is_a_failure() -> None:
    left = torch(incomplete=True, problem="it holds no version.py: an incomplete or shadowing torch")
    check = check_of("package-shadowed", on(left, distributions=()))
    assert (check.status, check.title) == ("fail", "The folder that `import torch` finds is not a complete package")


@cases("framework", torch(), led(PTH, instead_of=()), torch(led_by="user site"))
def test_a_copy_that_hides_no_other_is_no_finding(framework: Framework) -> None:
    assert checks_of("package-shadowed", on(framework)) == ()


LINE = Startup(source=f"file {PTH}", path=PTH, line="import sys; sys.path.insert(0, '/x')")


def imported(*, as_found: bool | None, **changes: Any) -> Framework:
    path = f"{SITE}/torch/__init__.py" if as_found else "/x/torch/__init__.py"
    trial = Trial(source="trial", imported=True, path=path, version="2.1.0", as_found=as_found)
    return torch(trial=but(trial, **changes))


def with_line(framework: Framework, **changes: Any) -> Snapshot:
    return on(framework, startup=(but(LINE, **changes),))


def test_code_that_changes_the_search_path_is_a_warning() -> None:
    check = check_of("search-path-changed", with_line(torch(), folders=("/x",), shadows=("torch",)))
    assert (check.status, check.title) == ("warn", "Code in other.pth changes Python's search path")
    assert "Files cannot tell" in check.message
    assert "/x, which has torch too" in check.message


@cases("framework, folders", (imported(as_found=True), ()), (torch(), ("/x",)), (imported(as_found=True), ("/x",)))
def test_it_is_a_note_where_it_shadows_nothing(framework: Framework, folders: tuple[str, ...]) -> None:
    assert check_of("search-path-changed", with_line(framework, folders=folders)).status == "note"


def test_an_environment_without_such_lines_is_not_asked() -> None:
    assert checks_of("search-path-changed", on(torch(), startup=())) == ()


def test_what_was_imported_is_reported_with_version_and_path() -> None:
    check = check_of("imported-elsewhere", on(imported(as_found=True)))
    assert (check.status, check.evidence[0].value) == ("pass", f"{SITE}/torch/__init__.py (2.1.0)")


def test_another_copy_than_the_expected_one_is_a_finding_with_who_led_there() -> None:
    check = check_of("imported-elsewhere", with_line(imported(as_found=False)))
    assert (check.status, check.explained_by) == ("warn", f"search-path-changed@{VENV}")
    assert PTH in check.message
    assert [part.value for part in check.evidence] == ["/x/torch/__init__.py (2.1.0)", f"{SITE}/torch (2.5.1+cu124)"]
    alone = on(imported(as_found=False, ran_on_gpu=False, error="x"))
    assert check_of("imported-elsewhere", alone).status == "fail"
    assert cause(alone) == "imported-elsewhere"
    assert checks_of("imported-elsewhere", on(imported(as_found=None))) == ()


NO_C = Trial(
    source="trial",
    imported=False,
    error="ModuleNotFoundError: No module named 'torch._C'",
    path="/x/torch/__init__.py",
    as_found=False,
    files=(TrialFile(source="trial", path="torch/_C", role="module"),),
)


@cases(
    "found, led",
    (on(torch(trial=NO_C), startup=(but(LINE, folders=("/x",), shadows=("torch",)),)), "search-path-changed"),
    (on(torch(trial=NO_C), startup=(LINE,)), "search-path-changed"),
    (on(torch(trial=NO_C)), "imported-elsewhere"),
    (on(led("PYTHONPATH", trial=but(NO_C, as_found=None))), "package-shadowed"),
)
def test_what_a_trial_of_the_other_copy_misses_follows_from_what_leads_there(found: Snapshot, led: str) -> None:
    assert cause(found) == led
    assert check_of("file-stops-framework", found).explained_by is not None
    assert open_fails(found) == [led]


CODE = {"startup": (but(LINE, folders=("/x",), shadows=("torch",)),)}
WAYS: list[tuple[str, Framework, dict[str, Any], str]] = [
    ("PYTHONPATH", led("PYTHONPATH", trial=NO_C), {}, "package-shadowed"),
    ("user site", led("user site", trial=NO_C), {}, "package-shadowed"),
    ("a path in a .pth file", led(PTH, trial=NO_C), {}, "package-shadowed"),
    ("code in a .pth file", torch(trial=NO_C), CODE, "search-path-changed"),
    ("code that names nothing", torch(trial=NO_C), {"startup": (LINE,)}, "search-path-changed"),
    ("sitecustomize", torch(trial=NO_C), {}, "imported-elsewhere"),
]
"""All that can lead to another PyTorch: the way, the framework as it is then met, and the rule that tells of it."""
OWNED = TrialFile(
    source="trial", path="/srv/old/torch/lib/libtorch.so", role="error", owner="torch==2.1.0", state="differs"
)
THERE = TrialFile(
    source="trial",
    path=f"{SITE}/torch/_C.cpython-312-x86_64-linux-gnu.so",
    role="module",
    owner="torch==2.5.1+cu124",
    state="as installed",
)
FILES = {"a module that it lacks": NO_C.files, "a damaged file of its own": (OWNED,)}


@pytest.mark.parametrize("files", FILES.values(), ids=FILES)
@pytest.mark.parametrize(("way", "framework", "changes", "rule"), WAYS, ids=[way for way, *_ in WAYS])
def test_no_fix_touches_the_copy_that_is_not_imported(
    way: str, framework: Framework, changes: dict[str, Any], rule: str, files: tuple[TrialFile, ...]
) -> None:
    """Extensions fail with the copy that is imported, and so does a package that only imports it."""
    failing = but(NO_C, as_found=True, files=files)
    base = but(framework, trial__files=files)
    vision = extension("torchvision", "0.20.1", trial=failing)
    needs_it = Framework(source="file", name="needs-torch", version="1.0", trial=but(failing, files=NO_C.files))
    found = on(base, vision, needs_it, **changes)
    assert cause(found) == rule, way
    assert open_fails(found) == [rule]
    stopped = check_of("file-stops-framework", found)
    assert stopped.explained_by is not None
    for check in (stopped, next(each for each in judge(found) if each.rule == rule)):
        assert not [fix for fix in check.fixes if "install" in fix.command], check.id


@pytest.mark.parametrize(("way", "framework", "changes", "rule"), WAYS, ids=[way for way, *_ in WAYS])
def test_what_the_installed_copy_has_is_not_called_missing(
    way: str, framework: Framework, changes: dict[str, Any], rule: str
) -> None:
    failing = but(NO_C, as_found=True, files=(THERE,))
    needs_it = Framework(source="file", name="needs-torch", version="1.0", trial=failing)
    found = on(but(framework, trial__files=(THERE,)), needs_it, **changes)
    assert checks_of("file-stops-framework", found) == ()
    assert (cause(found), open_fails(found)) == (rule, [rule]), way


def test_a_damaged_package_beside_another_copy_keeps_its_fix() -> None:
    damaged = TrialFile(source="trial", path=f"{SITE}/jax/core.py", role="error", owner="jax==0.6.0", state="gone")
    jax = Framework(source="file", name="jax", version="0.6.0", path=f"{SITE}/jax")
    found = on(torch(trial=NO_C), but(jax, trial=but(NO_C, as_found=True, files=(damaged,))), startup=(LINE,))
    check = check_of("file-stops-framework", found)
    assert (check.frameworks, check.explained_by) == (("jax",), None)
    assert "jax==0.6.0" in check.fixes[0].command
    assert sorted(open_fails(found)) == ["file-stops-framework", "search-path-changed"]


def test_a_copy_of_what_a_framework_requires_accounts_for_its_failed_import() -> None:
    trial = but(NO_C, as_found=True, files=(), error="AttributeError: module 'numpy' has no attribute 'ndarray'")
    assert cause(with_line(torch(trial=trial), folders=("/x",), shadows=("numpy",))) == "search-path-changed"
    assert cause(with_line(torch(trial=trial), folders=("/x",))) == "framework-import-fails"


def test_a_line_that_leads_no_framework_elsewhere_accounts_for_nothing() -> None:
    cpu = torch("2.5.1+cpu", None, cpu_only=True, gpu_code=None)
    for trial in (but(NO_C, as_found=True, files=()), None):
        assert check_of("cpu-only-build", with_line(but(cpu, trial=trial))).explained_by is None


CASES: list[tuple[str, str, Snapshot, str]] = [
    ("package-shadowed", "PYTHONPATH", on(led("PYTHONPATH")), "warn"),
    ("search-path-changed", "a line of code", with_line(torch()), "warn"),
    ("imported-elsewhere", "sitecustomize", on(imported(as_found=False)), "warn"),
]


@pytest.mark.parametrize(("rule", "case", "snapshot", "status"), CASES, ids=lambda value: str(value)[:40])
def test_cases(rule: str, case: str, snapshot: Snapshot, status: str) -> None:
    assert check_of(rule, snapshot).status == status, case


def test_a_numpy_of_the_wrong_major_says_what_leads_to_it() -> None:
    """It outranks the redirection as the finding, and its fix takes the redirection away."""
    cupy = Framework(
        source="file", name="cupy-cuda12x", version="14.2.0", path=f"{SITE}/cupy", requires=("numpy>=2.0",)
    )
    led = Distribution(
        source="file", name="numpy", version="1.26.4", path="/legacy/numpy-1.26.4.dist-info", led_by="PYTHONPATH"
    )
    own = Distribution(source="file", name="numpy", version="2.2.6", path=f"{SITE}/numpy-2.2.6.dist-info")
    check = check_of("numpy-abi-mismatch", on(cupy, distributions=(led, own)))
    assert check.status == "fail"
    assert "but 1.26.4 is imported from /legacy (by PYTHONPATH)" in check.message
