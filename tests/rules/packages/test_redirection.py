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
    framework,
    judge,
    machine,
    open_fails,
    said,
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


def test_what_follows_is_told_under_it() -> None:
    """An old PyTorch without code for the GPU, and an extension for the installed one."""
    old = led("PYTHONPATH", gpu_code=("sm_50",))
    vision = extension("torchvision", "0.20.1", built_for={"torch": "2.5.1"})
    found = on(but(old, version="2.1.0+cu118"), vision)
    assert cause(found) == "package-shadowed"
    open_ones = [check.rule for check in judge(found) if check.status in ("fail", "warn") and not check.explained_by]
    assert open_ones == ["package-shadowed"]
    assert check_of("package-shadowed", found).status == "fail", "what it explains fails"


LINE = Startup(source=f"file {PTH}", path=PTH, line="import sys; sys.path.insert(0, '/x')")


def imported(*, as_found: bool | None, **changes: Any) -> Framework:
    path = f"{SITE}/torch/__init__.py" if as_found else "/x/torch/__init__.py"
    trial = Trial(source="trial", imported=True, path=path, version="2.1.0", as_found=as_found)
    return torch(trial=but(trial, **changes))


def with_line(framework: Framework, **changes: Any) -> Snapshot:
    return on(framework, startup=(but(LINE, **changes),))


NO_C = Trial(
    source="trial", imported=False, error="ModuleNotFoundError: No module named 'torch._C'",
    path="/x/torch/__init__.py", as_found=False, files=(TrialFile(source="trial", path="torch/_C", role="module"),),
)  # fmt: skip


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
THERE = but(OWNED, path=f"{SITE}/torch/_C.cpython-312-x86_64-linux-gnu.so", role="module", owner="torch==2.5.1+cu124",
            state="as installed")  # fmt: skip
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


def test_a_line_that_leads_no_framework_elsewhere_accounts_for_nothing() -> None:
    cpu = torch("2.5.1+cpu", None, cpu_only=True, gpu_code=None)
    for trial in (but(NO_C, as_found=True, files=()), None):
        assert check_of("cpu-only-build", with_line(but(cpu, trial=trial))).explained_by is None


SHADOWED, CHANGED, ELSEWHERE = "package-shadowed", "search-path-changed", "imported-elsewhere"
NO_NDARRAY = but(NO_C, as_found=True, files=(), error="AttributeError: module 'numpy' has no attribute 'ndarray'")
SHADOWING = "it holds no version.py: an incomplete or shadowing torch"
ALONE = on(imported(as_found=False, ran_on_gpu=False, error="x"))


def numpy(version: str, path: str = f"{SITE}/numpy-2.2.6.dist-info", **changes: Any) -> Distribution:
    return Distribution(source="file", name="numpy", version=version, path=path, **changes)


@cases("rule, about, there, expected",
    *((SHADOWED, f"led by {by}", on(led(by)),
       {"status": "warn", "title": f"{who} puts another torch before the installed one", "text": f"…{fix}…"})
      for by, who, fix in (("PYTHONPATH", "PYTHONPATH", "/srv/old"), ("user site", "The user site", "PYTHONNOUSERSITE"),
                           (PTH, "other.pth", PTH))),
    # A folder ``numpy`` and a file ``random.py`` in somebody's project
    (SHADOWED, "a requirement without a version",
     on(torch(), distributions=(numpy("", "/project/numpy", led_by="PYTHONPATH"), numpy("2.2.6"))),
     {"status": "warn", "title": "PYTHONPATH puts another numpy before the installed one"}),
    (SHADOWED, "Python's own modules",
     on(torch(), hides_pythons_own=("/project/random.py",), site_packages=("/project", SITE)),
     {"status": "warn", "title": "PYTHONPATH puts another random before Python's own", "text": "…/project…"}),
    (SHADOWED, "Python's own modules, in the working folder", on(torch(), hides_pythons_own=("/here/random.py",)),
     {"status": "warn", "title": "The working folder puts another random before Python's own",
      "text": "…Rename /here/random.py, or start programs in another folder…"}),
    (SHADOWED, "a framework, in the working folder",
     on(torch(path=f"{SITE}/torch"), hides_pythons_own=("/here/torch.py",)),
     {"status": "fail", "title": "The working folder puts another torch before the installed one",
      "message": f"…not {SITE}/torch…"}),
    (SHADOWED, "a package that several distributions share, in the working folder",
     on(torch(), hides_pythons_own=("/here/cuda",),
        distributions=(Distribution(name="cuda-pathfinder", version="1", path=f"{SITE}/cuda_pathfinder.dist-info"),)),
     {"status": "warn", "title": "The working folder puts another cuda before the installed one"}),
    (SHADOWED, "a checkout that was not built, in the working folder",
     on(torch(path=f"{SITE}/torch"), hides_pythons_own=("/here/torch",), missing_in_copies=("/here/torch/_C.so",)),
     {"status": "fail", "message": f"…not {SITE}/torch; it lacks _C.so."}),
    (SHADOWED, "a folder of the same name",
     on(torch(path="/home/me/torch", led_by="PYTHONPATH", incomplete=True, problem=f"/home/me/torch: {SHADOWING}")),
     {"status": "fail", "message": f"…/home/me/torch: {SHADOWING}…"}),
    (SHADOWED, "a folder that nothing installed", on(torch(incomplete=True, problem=SHADOWING), distributions=()),
     {"status": "fail", "title": "The folder that `import torch` finds is not a complete package"}),
    (SHADOWED, "the installed copy", on(torch()), ()),
    (SHADOWED, "a path file that hides no other copy", on(led(PTH, instead_of=())), ()),
    (SHADOWED, "the user site that hides no other copy", on(torch(led_by="user site")), ()),
    (CHANGED, "by code, to what has another copy", with_line(torch(), folders=("/x",), shadows=("torch",)),
     {"status": "warn", "title": "Code in other.pth changes Python's search path",
      "message": "…/x, which has torch too…Files cannot tell…"}),
    (CHANGED, "by code, to what nobody knows", with_line(torch()), {"status": "warn"}),
    (CHANGED, "by code, but it was imported as found", with_line(imported(as_found=True)), {"status": "note"}),
    (CHANGED, "to what shadows nothing", with_line(torch(), folders=("/x",)), {"status": "note"}),
    (CHANGED, "to what shadows nothing, and it was imported as found",
     with_line(imported(as_found=True), folders=("/x",)), {"status": "note"}),
    (CHANGED, "no such line", on(torch(), startup=()), ()),
    (CHANGED, "to another copy of what a framework requires, which fails",
     with_line(torch(trial=NO_NDARRAY), folders=("/x",), shadows=("numpy",)), {"cause": CHANGED}),
    (CHANGED, "to no copy of what a framework requires, which fails",
     with_line(torch(trial=NO_NDARRAY), folders=("/x",)), {"cause": "framework-import-fails"}),
    (ELSEWHERE, "what was imported is the installed copy", on(imported(as_found=True)),
     {"status": "pass", "evidence": [f"{SITE}/torch/__init__.py (2.1.0)"]}),
    (ELSEWHERE, "who led to another copy", with_line(imported(as_found=False)),
     {"status": "warn", "explained_by": f"{CHANGED}@{VENV}", "message": f"…{PTH}…",
      "evidence": ("/x/torch/__init__.py (2.1.0)", f"{SITE}/torch (2.5.1+cu124)")}),
    (ELSEWHERE, "another copy", on(imported(as_found=False)), {"status": "warn"}),
    (ELSEWHERE, "another copy that does not work", ALONE, {"status": "fail", "cause": ELSEWHERE}),
    (ELSEWHERE, "nobody knows", on(imported(as_found=None)), ()),
    # It outranks the redirection as the finding, and its fix takes the redirection away
    ("numpy-abi-mismatch", "what leads to a NumPy of the wrong major",
     on(framework("cupy-cuda12x", "14.2.0", requires=("numpy>=2.0",)), distributions=(
        numpy("1.26.4", "/legacy/numpy-1.26.4.dist-info", led_by="PYTHONPATH"), numpy("2.2.6"))),
     {"status": "fail", "message": "…but 1.26.4 is imported from /legacy (by PYTHONPATH)…"}),
)  # fmt: skip
def test_what_rules_say(rule: str, about: str, there: Snapshot, expected: Any) -> None:
    assert said(rule, there, expected) == expected


@cases("by", "PYTHONPATH", "user site", PTH)
def test_no_fix_touches_the_installed_copy(by: str) -> None:
    assert not any("install" in fix.command for fix in check_of("package-shadowed", on(led(by))).fixes)
