"""Fixes that are offered: each is simulated, so that following it ends in a working environment."""

from typing import Any

import pytest

from envcheck.enrich.complete import complete, join_loads
from envcheck.importers import read_text
from envcheck.knowledge.load import load_matrix
from envcheck.model.checks import Changes, Check, Fix, ways, ways_in_order
from envcheck.model.snapshot import (
    DamagedFile,
    Distribution,
    Environment,
    Framework,
    Library,
    Listing,
    Load,
    Shipped,
    Snapshot,
)
from envcheck.pipeline import judging
from envcheck.pipeline.request import Request
from envcheck.pipeline.session import judge
from envcheck.pipeline.timing import Timing
from envcheck.rules.api import Facts
from envcheck.rules.catalog import all_rules
from envcheck.rules.engine import offered as offered_fixes
from envcheck.rules.engine.evaluate import evaluate
from envcheck.rules.engine.offered import offer
from envcheck.rules.engine.resolve import newest_admitted, requirements_broken
from envcheck.rules.engine.simulate import simulate
from envcheck.rules.fixes.remedies import Remedy
from tests.every import cases, every
from tests.rules.machines import (
    ALL,
    VENV,
    agreed,
    but,
    check_of,
    framework,
    machine,
    torch,
    venv,
    with_venv,
    without_gpu,
)
from tests.rules.packages.packages_here import SITE, dist, extension, having, on

H100 = "580.65.06"
CUDNN_8 = ("nvidia-cudnn-cu12<9.0,>=8.9.4.19 ; extra == 'and-cuda'",)
CUDNN_9 = ("nvidia-cudnn-cu12 (==9.1.0.70) ; platform_system == 'Linux'",)


def offered(snapshot: Snapshot) -> dict[str, Check]:
    """What fails or warns, with the fixes that are offered, by the name of its rule."""
    facts = Facts(join_loads(complete(snapshot, load_matrix())), load_matrix())
    found = offer(evaluate(facts, all_rules(), ALL), facts, all_rules(), lambda _facts: ())
    return {check.rule: check for check in found if check.status in ("fail", "warn")}


def loads_are_known(snapshot: Snapshot, fixes: tuple[Fix, ...]) -> Snapshot:
    steps = [fix.changes for fix in ways(fixes)[0] if fix.changes]
    return simulate(join_loads(complete(snapshot, load_matrix())), steps, load_matrix()).snapshot


def commands(check: Check) -> list[str]:
    return [" ".join(fix.command) for fix in check.fixes]


def cudnn(path: str | None, major: int, **changes: Any) -> Load:
    name = f"libcudnn.so.{major}"
    known = Load(source="elf", name=name, needed_by=f"{SITE}/x.so", path=path, found_by="rpath" if path else None)
    return but(known, **changes)


def two_majors_of_cudnn() -> Snapshot:
    """PyTorch with its cuDNN 9, and a TensorFlow that wants cuDNN 8 in the same folder."""
    library = Library(
        source="elf", path=f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9", family="cudnn", soname="libcudnn.so.9",
        declared="9.1.0.70", owner="nvidia-cudnn-cu12==9.1.0.70", origin="wheel", environment=VENV,
    )  # fmt: skip
    pytorch = torch(requires=CUDNN_9, cudnn="9.1.0", loads=(cudnn(library.path, 9),), loads_complete=True)
    loading: dict[str, Any] = {"loads": (cudnn(None, 8),), "loads_complete": True, "looks_in_wheels": True}
    tensorflow = framework("tensorflow", "2.17.0", cuda="12.3", cpu_only=False, requires=CUDNN_8, **loading)
    there = (
        dist("nvidia-cudnn-cu12", "9.1.0.70"),
        dist("tensorflow", "2.17.0", requires=CUDNN_8),
        dist("torch", "2.5.1+cu124", requires=CUDNN_9),
    )
    environment = having(pytorch, tensorflow)
    return but(on(but(environment, distributions=there)), libraries=Listing(items=(library,), complete=True))


# --- what would break something else ------------------------------------------------------------------------------
def test_two_frameworks_that_want_different_majors_of_cudnn_get_two_environments() -> None:
    check = offered(two_majors_of_cudnn())["cudnn-major-mismatch"]
    assert check.subject.key.endswith(":tensorflow")
    told = commands(check)
    assert not any("nvidia-cudnn-cu12" in command for command in told), "it would take cuDNN 9 from PyTorch"
    create, fill, remove = ways(check.fixes)[0]
    assert create.command[-3:] == ("-m", "venv", f"{VENV}-tensorflow")
    assert fill.command[-1] == "tensorflow[and-cuda]==2.17.0"
    assert remove.command[-1] == "tensorflow"
    assert "torch" in create.text


def test_a_newer_release_that_shares_the_cudnn_is_the_other_way() -> None:
    check = offered(two_majors_of_cudnn())["cudnn-major-mismatch"]
    assert len(ways(check.fixes)) > 1
    newer = ways(check.fixes)[1][0]
    assert newer.command[-1].startswith("tensorflow[and-cuda]")
    after = complete(loads_are_known(two_majors_of_cudnn(), (newer,)), load_matrix())
    checks = evaluate(Facts(after, load_matrix()), all_rules(), ALL)
    assert not [each.id for each in checks if each.rule == "cudnn-major-mismatch"]


def numpy_between(*asking: tuple[str, str, str], there: str = "2.3.0") -> Environment:
    """Packages that each ask for a NumPy: name, version, bounds."""
    frameworks = tuple(framework(name, version, requires=(f"numpy{bounds}",)) for name, version, bounds in asking)
    listed = (dist(each.name, each.version or "", requires=each.requires) for each in frameworks)
    return having(*frameworks, distributions=(*listed, dist("numpy", there)))


def test_a_package_is_upgraded_where_no_numpy_serves_all() -> None:
    snapshot = on(numpy_between(("numba", "0.60.0", "<2.1,>=1.22"), ("jax", "0.7.2", ">=2.2")))
    check = offered(snapshot)["numpy-abi-mismatch"]
    assert not any(word.startswith("numpy") for fix in check.fixes for word in fix.command), "no release is within both"
    assert check.fixes[0].command[-1].startswith("numba")
    assert "numpy-abi-mismatch" not in offered(loads_are_known(snapshot, check.fixes))


def test_a_numpy_for_all_but_one_comes_with_another_release_of_that() -> None:
    """No NumPy suits ml-dtypes 0.3.2 and jax, and the installed one is too new for numba."""
    asking = ("ml-dtypes", "0.3.2", "<2"), ("jax", "0.7.2", ">=2.1"), ("numba", "0.61.2", "<2.3,>=1.24")
    check = offered(on(numpy_between(*asking)))["numpy-abi-mismatch"]
    own, other = check.fixes[0].command[-2:]
    assert own == "numpy>=2.1,<2.3"
    assert other.startswith("ml-dtypes>=")


def test_what_changes_with_it_is_the_risk() -> None:
    asking = framework("numba", "0.60.0", requires=("numpy<2.1",))
    listed = (dist("numba", "0.60.0", requires=("numpy<2.1",)), dist("numpy", "2.3.0"), dist("llvmlite", "0.43.0"))
    check = offered(on(having(asking, distributions=listed)))["numpy-abi-mismatch"]
    assert "changes llvmlite 0.43.0 to" in next(fix for fix in check.fixes if fix.command[-1].startswith("numba")).risk


@cases(
    "lines, command",
    (("b>=2",), ("b>=2",)),
    (("zzc<2",), ()),  # the one package that takes it leaves the other without
    ((), ("ldconfig",)),  # what changes no package is the row's word
)
def test_what_a_row_says_is_tried_as_all_others_are(
    monkeypatch: pytest.MonkeyPatch, lines: tuple[str, ...], command: tuple[str, ...]
) -> None:
    old, new = (dist(name, "1", requires=(f"zzc{bounds}",)) for name, bounds in (("a", "<2"), ("b", ">=2")))
    fix = Fix("As a row says", command=lines or command, changes=Changes(installs=lines) if lines else None)
    monkeypatch.setattr(offered_fixes, "remedy_of", lambda *_: Remedy((fix,), (), "", ""))
    check = offered(on(having(distributions=(old, dist("zzc", "1"), new))))["package-requirement-broken"]
    assert [each.command for each in check.fixes if each.command] == ([command] if command else [])


def test_what_no_simulation_is_left_for_is_said_to_be_unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = on(numpy_between(("numba", "0.60.0", "<2.1,>=1.22")))
    assert not any("whether this ends" in fix.risk for fix in offered(snapshot)["numpy-abi-mismatch"].fixes)
    monkeypatch.setattr(offered_fixes, "_MOST", 0)
    fixes = offered(snapshot)["numpy-abi-mismatch"].fixes
    assert all("not checked: whether this ends the finding" in fix.risk for fix in fixes if fix.changes)
    assert fixes[0].command[-1] == "numpy>=1.22,<2.1"


# --- what a framework requires, in place ---
ITS_PINS = ("nvidia-cudnn-cu12==9.10.2.21", "nvidia-cusparse-cu12==12.5.8.93", "nvidia-nvjitlink-cu12==12.8.93")


def installed_in_part(*others: Distribution, requires: tuple[str, ...] = ITS_PINS, **changes: Any) -> Snapshot:
    """PyTorch without cuDNN and cuSPARSE, beside a libnvJitLink that is older than cuSPARSE needs."""
    of_torch: dict[str, Any] = {"source": "elf", "needed_by": f"{SITE}/torch/lib/libtorch_cuda.so"}
    older = Load(
        **of_torch, name="libnvJitLink.so.12", path=f"{SITE}/nvidia/nvjitlink/lib/libnvJitLink.so.12", found_by="rpath",
        version="12.1.105", owner="nvidia-nvjitlink-cu12==12.1.105",
    )  # fmt: skip
    missing = (Load(**of_torch, name="libcusparse.so.12"), cudnn(None, 9))
    pytorch = torch(
        version="2.9.1", cuda="12.8", cudnn="9.10.2", requires=requires, loads=(*missing, older), loads_complete=True
    )
    there = (dist("nvidia-nvjitlink-cu12", "12.1.105"), dist("torch", "2.9.1", requires=requires), *others)
    return on(but(having(but(pytorch, looks_in_wheels=True)), **{"distributions": there, **changes}))


def test_all_that_a_framework_requires_comes_before_a_separate_environment() -> None:
    check = offered(installed_in_part())["cudnn-missing"]
    (way,) = ways(check.fixes)
    assert [fix.command for fix in way] == [(f"{VENV}/bin/python", "-m", "pip", "install", "torch==2.9.1")]
    assert (
        "changes nvidia-nvjitlink-cu12 12.1.105 to 12.8.93; adds nvidia-cudnn-cu12, nvidia-cusparse-cu12" in way[0].risk
    )
    after = offered(loads_are_known(installed_in_part(), way))
    assert not {"cudnn-missing", "cuda-library-missing", "nvjitlink-mismatch", "nvidia-wheel-conflict"} & after.keys()


def test_a_framework_that_pins_nothing_newer_is_not_completed_in_vain() -> None:
    check = offered(installed_in_part(requires=(*ITS_PINS[:2], "nvidia-nvjitlink-cu12")))["cudnn-missing"]
    assert not [fix for fix in check.fixes if fix.command[-1:] == ("torch==2.9.1",) and "there" not in fix.text]


def test_pip_completes_what_is_installed_and_admitted_but_not_without_its_requirements() -> None:
    whole = join_loads(complete(installed_in_part(), load_matrix()))
    for alone, moved in ((False, True), (True, False)):
        found = simulate(whole, [Changes(installs=("torch==2.9.1",), alone=alone)], load_matrix())
        assert (("nvidia-nvjitlink-cu12", "12.1.105", "12.8.93") in found.moved) is moved


# --- pins ---------------------------------------------------------------------------------------------------------
def lacking_cudnn(**changes: Any) -> Snapshot:
    pytorch = torch(requires=CUDNN_9, loads=(cudnn(None, 9),), loads_complete=True, looks_in_wheels=True)
    listed = (dist("torch", "2.5.1+cu124", requires=CUDNN_9), dist("nvidia-cublas-cu12", "12.4.5.8"))
    return on(but(having(pytorch), **{"distributions": listed, **changes}))


@every(
    ("", ""), (">=1.2", ""), ("<2", "1.999"), (">=1.2,<2.3", "2.2.999"), ("==1.4.*", "1.4.999"), ("==1.4.2", "1.4.2"),
    ("~=1.4.2", "1.4.999"), ("<2,>=2.1", None), ("==2.5.1+cu124", "2.5.1+cu124"), ("<=1.5,!=1.5", "1.4.999"),
    ("<=1.5,<1.7", "1.5"), (">=2.0,<2.0.post1", "2.0"), (">=2.0.post1,<2.0.post3", "2.0.post2"), ("===1.0", "1.0"),
    (">=2.0rc1,<2.0rc3", "2.0rc2"), (">2.0,<2.0.1", "2.0.0.999"), (">2.0,<2.0.post1", None), ("==1.0,==2.0", None),
    ("===1.0,>1", None), ("<1!2", "1!1.999"), ("<0", None), ("==" + "9" * 5000, ""),
)  # fmt: skip
def test_the_newest_release_that_bounds_can_mean(bounds: str, newest: str | None) -> None:
    assert newest_admitted(bounds) == newest


_PLAYING = {"torch", "triton", "zza", "zzb", "zzc"}
PAIR = (dist("zza", "2.0"), dist("zzb", "1.0", requires=("zza==2.0",)))


@cases(
    "there, lines, refused",
    (PAIR, ("zza==1.0", "zzb==1.0"), "zza==1.0,==2.0"),
    (PAIR, ("zzb==1.0", "zza<2"), "zza<2,==2.0"),
    (PAIR, ("zza==1.0", "zzb"), ""),  # another release of zzb may take it
    (PAIR, ("zza==1.0",), ""),  # pip only warns of what is installed besides
    ((), ("zzc<2", "zzc>=2"), "zzc>=2,<2"),
    ((), ("zzc>=2.0,<2.0.post1",), ""),
    ((dist("torch", "2.4.1"), dist("triton", "3.0.0")), ("torch==2.5.1", "triton==3.0.0"), "triton==3.0.0,==3.1.0"),
)
def test_what_no_release_meets_is_not_installed(
    there: tuple[Distribution, ...], lines: tuple[str, ...], refused: str
) -> None:
    found = simulate(on(having(distributions=there)), [Changes(installs=lines)], load_matrix())
    assert found.impossible == ((refused,) if refused else ())
    assert not refused or installed_in(found.snapshot) == {each.name: each.version for each in there}


@cases(
    "there, lines, now",
    (dist("torch", "2.6.0a0+nv24.12"), ("torch>=2.6",), ""),  # pip does not take a vendor's pre-release for the release
    (dist("torch", "2.6.0a0+nv24.12"), ("torch>=2.5",), "2.6.0a0+nv24.12"),
    (dist("torch", "2.4.1+cu121"), ("torch==2.*",), "2.4.1+cu121"),
    (dist("torch", "2.4.1+cu121"), ("torch==2.4.1",), "2.4.1+cu121"),
    (dist("torch", "2.4.1+cu121"), ("torch>=2.4", "torch<2.6,!=2.4.1"), "2.5.999"),
)
def test_what_is_admitted_stays(there: Distribution, lines: tuple[str, ...], now: str) -> None:
    found = simulate(on(having(distributions=(there,))), [Changes(installs=lines)], load_matrix())
    assert installed_in(found.snapshot) == {"torch": now}


@every(("torch==2.*", "2.999"), ("torch==2.4.1", "2.4.1+cu121"))
def test_after_it_was_removed_a_pin_alone_brings_the_same_release(line: str, now: str) -> None:
    there = on(having(distributions=(dist("torch", "2.4.1+cu121"),)))
    found = simulate(there, [Changes(removes=("torch",), installs=(line,))], load_matrix())
    assert installed_in(found.snapshot) == {"torch": now}


def test_an_older_torch_brings_the_triton_of_its_series() -> None:
    """PyTorch 2.14 and newer ask for a series of Triton, older ones for one release."""
    there = (dist("torch", "2.15.0+cu132"), dist("triton", "3.9.0"))
    found = simulate(on(having(distributions=there)), [Changes(installs=("torch==2.14.1+cu126",))], load_matrix())
    assert installed_in(found.snapshot) == {"torch": "2.14.1+cu126", "triton": "3.8.0"}


def installed_in(snapshot: Snapshot) -> dict[str, str]:
    assert snapshot.environments is not None
    (environment,) = snapshot.environments.items
    return {each.name: each.version for each in environment.distributions or () if each.name in _PLAYING}


# --- following a fix ends what it is for, with the right installer ------------------------------------------------
def by_conda(**changes: Any) -> Snapshot:
    pytorch = torch(cuda="12.4", loads=(cudnn(None, 9),), loads_complete=True)
    listed = (
        Distribution(name="pytorch", version="2.5.1", channel="conda", installer="conda"),
        dist("torch", "2.5.1", installer="conda"),
    )
    known = {"manager": "conda", "prefix": "/opt/conda/envs/ml", "distributions": listed}
    return on(but(having(pytorch), **{**known, **changes}))


# --- simulating ---------------------------------------------------------------------------------------------------
def test_what_is_installed_and_admitted_stays() -> None:
    snapshot = on(having(distributions=(dist("numpy", "1.26.4"), dist("x", "1.0", requires=("numpy>=1.20",)))))
    after = simulate(snapshot, [Changes(installs=("x==1.0",), again=True)], load_matrix()).snapshot
    assert after.environments
    (environment,) = (each for each in after.environments.items if each.judged)
    assert {each.name: each.version for each in environment.distributions or ()}["numpy"] == "1.26.4"


def test_requirements_that_stand_ins_meet_are_no_fault() -> None:
    listed = (dist("onnxruntime-gpu", "1.20.1"), dist("x", "1.0", requires=("onnxruntime", "y>=2 ; extra == 'z'")))
    assert requirements_broken(Facts(on(having(distributions=listed)), load_matrix())) == frozenset()
    gone = but(having(distributions=listed), distributions=listed[1:])
    assert requirements_broken(Facts(on(gone), load_matrix())) == {("x", "onnxruntime")}


def test_an_environment_without_findings_is_not_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envcheck.rules.engine.offered.offer", lambda *_: pytest.fail("it was simulated"))
    report = judging.judge(
        on(having(distributions=(dist("numpy", "2.3.0"),))), Request(), lambda _: None, timing=Timing()
    )
    assert not [check for check in report.checks if check.status == "fail" and check.scope == "env"]


# --- environments that lost their Python, or are filled by a lock file --------------------------------------------
def lost(**changes: Any) -> Snapshot:
    """An environment whose Python is gone."""
    known: dict[str, Any] = {
        "problem": "its base interpreter /gone/bin/python3.12 is gone",
        "distributions": (dist("torch", "2.5.1+cu124"), dist("numpy", "2.1.0"), dist("pip", "24.0")),
    }
    return on(but(having(torch()), **{**known, **changes}))


PIP = f"{VENV}/bin/python -m pip"
LISTED_CUDNN = (dist("torch", "2.5.1+cu124", requires=CUDNN_9), dist("nvidia-cudnn-cu12", "9.1.0.70"))
BY_PIP = dist("torch", "2.5.1+cu124", installer="pip")
OF_CONDA = Distribution(name="python", version="3.12", channel="conda")
CUPY_11 = framework("cupy-cuda11x", "13.3.0", cuda="11.2")
CPU_ORT = framework("onnxruntime", "1.20.1", cpu_only=True)
LINES = ("torch", "packaging>=20")
NO_BINARY = framework("flash-attn", "2.7.4", extends="torch", binaries=(), requires=LINES, loads=())
NEWER_SYMPY = (dist("torch", "2.5.1+cu124", requires=("sympy>=1.13.3",)), dist("sympy", "1.12"))
RELINKED = (f"rm -f -- … {VENV}/bin/python3.12", f"python3.12 -m venv --upgrade {VENV}")
MADE, INDEX = f"python3.12 -m venv --clear {VENV}", "--extra-index-url https://download.pytorch.org/whl/cu124"
MANY = tuple(dist(f"package-{number}", "1.0") for number in range(200))
HOSTILE = (dist("torch", "2.5.1; rm -rf ~"), dist("--index-url", "1"), dist("numpy", "2.1.0"))


@cases("rule, about, there, expected",
    ("cudnn-missing", "by its pin of the old form, and nothing else moves", lacking_cudnn(),
     {"fix": f"{PIP} install nvidia-cudnn-cu12==9.1.0.70", "risk": "", "ended": True}),
    ("cudnn-missing", "a listed wheel that lost its library comes again, alone",
     lacking_cudnn(distributions=LISTED_CUDNN),
     {"fix": f"{PIP} install --force-reinstall --no-deps nvidia-cudnn-cu12==9.1.0.70"}),
    ("cudnn-missing", "so by uv", lacking_cudnn(distributions=LISTED_CUDNN, manager="uv"),
     {"fix": f"uv pip install --python {VENV} --reinstall-package nvidia-cudnn-cu12 nvidia-cudnn-cu12==9.1.0.70"}),
    ("cudnn-missing", "by conda for what conda installed", by_conda(),
     {"fix": "conda install --prefix /opt/conda/envs/ml --channel conda-forge cudnn=9"}),
    ("cudnn-missing", "by pixi into its project", by_conda(prefix="/home/ada/p/.pixi/envs/default"),
     {"fix": "pixi add --manifest-path /home/ada/p cudnn=9"}),
    ("cudnn-missing", "by pip for what pip installed beside conda's",
     by_conda(distributions=(BY_PIP, dist("pip", "24.0"), OF_CONDA)), {"fix": "… -m pip install …"}),
    ("cudnn-missing", "pip comes first where there is none",
     lacking_cudnn(distributions=(but(BY_PIP, requires=CUDNN_9),)),
     {"ways": [("…-m ensurepip", "…nvidia-cudnn-cu12==9.1.0.70")]}),
    ("extension-binary-missing", "what is left missing is the next step",
     on(but(having(torch(), NO_BINARY),
            distributions=(dist("torch", "2.5.1+cu124"), dist("flash-attn", "2.7.4", requires=LINES)))),
     {"ways": ((f"{PIP} install … --no-deps …", f"{PIP} install packaging>=20"),)}),
    ("cupy-multiple-packages", "all are removed, and one that the driver runs is installed",
     on(having(CUPY_11, distributions=(dist("cupy-cuda11x", "13.3.0"), dist("cupy-cuda12x", "13.3.0")))),
     {"ways": [("…cupy-cuda11x cupy-cuda12x", "…cupy-cuda12x==13.3.0")], "ended": True}),
    ("onnxruntime-cpu-and-gpu", "it keeps its release",
     on(having(CPU_ORT, distributions=(dist("onnxruntime", "1.20.1"), dist("onnxruntime-gpu", "1.20.1")))),
     {"ways": [({"onnxruntime", "onnxruntime-gpu"}, "…onnxruntime-gpu==1.20.1")], "ended": True}),
    ("numpy-abi-mismatch", "a NumPy that all of them admit",
     on(numpy_between(("numba", "0.60.0", "<2.1,>=1.22"), ("cupy-cuda12x", "13.3.0", "<2.0,>=1.24"))),
     {"fix": "…numpy>=1.24,<2.0", "ended": True}),
    ("environment-broken", "it is linked to another Python, or built again", lost(),
     {"ways": (RELINKED, (MADE, f"{PIP} install torch==2.5.1+cu124 numpy==2.1.0 {INDEX}"), ...)}),
    ("environment-broken", "so by uv", lost(manager="uv"),
     {"ways": ((f"uv venv --allow-existing --python 3.12 {VENV}",),
               ("uv venv --clear …", f"uv pip install --python {VENV} …"), ...)}),
    ("environment-broken", "a long list is cut to the frameworks", lost(distributions=(*MANY, BY_PIP)),
     {"ways": (RELINKED, (MADE, f"{PIP} install torch==2.5.1+cu124 {INDEX}"), ...)}),
    ("environment-broken", "no hostile name or version reaches a command", lost(distributions=HOSTILE),
     {"ways": (RELINKED, (MADE, f"{PIP} install numpy==2.1.0"), ...)}),
    ("requirement-broken", "of a requirement without an upper bound only the index knows which release comes",
     on(but(having(torch()), distributions=NEWER_SYMPY)), {"fix": "…install sympy>=1.13.3"}),
)  # fmt: skip
def test_a_fix_is_offered(rule: str, about: str, there: Snapshot, expected: dict[str, Any]) -> None:
    check = offered(there)[rule]
    ended = rule not in offered(loads_are_known(there, check.fixes)) if "ended" in expected else None
    assert agreed(check, expected, ended=ended, risk=check.fixes[0].risk) == expected


@cases("name, add", ("uv.lock", "uv add"), ("poetry.lock", "poetry add"), ("pdm.lock", "pdm add"))
def test_a_lock_file_that_undoes_it_is_the_risk(name: str, add: str) -> None:
    check = offered(lacking_cudnn(lock_file=f"/home/ada/p/{name}"))["cudnn-missing"]
    assert name in check.fixes[0].risk
    assert add in check.fixes[0].risk


@cases(
    "folder, led_by, behind, commands_expected",
    ("/x", "PYTHONPATH", "2.2.6", ["env -u PYTHONPATH python"]),
    ("/x", "PYTHONPATH", "1.22", ["env -u PYTHONPATH python", "install"]),
    ("/x", "PYTHONPATH", None, ["env -u PYTHONPATH python", "install"]),
    (f"{SITE}/deps", f"{SITE}/deps.pth", "2.2.6", ["install"]),
)
def test_what_comes_before_the_installed_copy_is_left_out_first(
    folder: str, led_by: str, behind: str | None, commands_expected: list[str]
) -> None:
    """An old NumPy on PYTHONPATH: installing another changes nothing there. After the site folder, it does."""
    cupy = framework("cupy-cuda12x", "13.3.0", requires=("numpy<2.3,>=2.0",))
    first = dist("numpy", "1.26.4", path=f"{folder}/numpy-1.26.4.dist-info", led_by=led_by)
    rest = (dist("numpy", behind, path=f"{SITE}/numpy-{behind}.dist-info"),) if behind else ()
    found = having(cupy, distributions=(first, *rest), site_packages=("/x", SITE, f"{SITE}/deps"))
    told = [" ".join(fix.command) for fix in ways(offered(on(found))["numpy-abi-mismatch"].fixes)[0]]
    assert len(told) == len(commands_expected)
    assert all(part in command for part, command in zip(commands_expected, told, strict=True))


def test_what_is_damaged_in_such_a_copy_is_not_installed_over_the_one_behind() -> None:
    file = DamagedFile(source="file /x/numpy-2.1.3.dist-info/RECORD", path="/x/numpy/_core.so", package="numpy",
                       version="2.1.3", kind="foreign", problem="is built for Python 3.10, not 3.12")  # fmt: skip
    copies = dist("numpy", "2.1.3", path="/x/numpy-2.1.3.dist-info", led_by="PYTHONPATH"), dist("numpy", "2.2.6")
    found = having(torch(), distributions=copies, site_packages=("/x", SITE))
    shipped = Shipped(source="wheel metadata", packages=("numpy",), files=12, damaged=(file,), complete=True)
    told = offered(on(but(found, shipped=shipped, damaged=())))["damaged-distribution"]
    assert [fix.command for fix in told.fixes] == [("env", "-u", "PYTHONPATH", "python")]


@pytest.mark.parametrize("lost", ["torch", "nvidia-cudnn-cu12"])
def test_what_a_framework_or_its_library_has_lost_is_installed_again(lost: str) -> None:
    """What torchvision would find in PyTorch was not seen while that could not be loaded: it speaks against no fix."""
    file, version = {"torch": ("torch/lib/libc10.so", "2.5.1"),
                     "nvidia-cudnn-cu12": ("nvidia/cudnn/lib/libcudnn.so.9", "9.1.0.70")}[lost]  # fmt: skip
    folder = f"{SITE}/{lost.replace('-', '_')}-{version}.dist-info"
    gone = lost == "torch"
    damaged = DamagedFile(source=f"file {folder}/RECORD", path=f"{SITE}/{file}", package=lost, version=version,
                          kind="missing" if gone else "size", problem=None if gone else "no regular file")  # fmt: skip
    refused = cudnn(damaged.path, 9, refused="it is no regular file")
    c10 = Load(source="elf", name="libc10.so", needed_by=f"{SITE}/torch/lib/libtorch_python.so")
    broken = torch(requires=CUDNN_9, loads=(c10,) if gone else (refused,), loads_complete=True, incomplete=gone)
    beside = Load(source="elf", name="libtorch.so", needed_by=f"{SITE}/torchvision/_C.so",
                  unfound=(f"{SITE}/torch/lib/libtorch.so",))  # fmt: skip
    vision = extension("torchvision", "0.20.1", loads=(beside,), loads_complete=True)
    listed = (
        dist("torch", "2.5.1", requires=CUDNN_9),
        dist("torchvision", "0.20.1"),
        dist("nvidia-cudnn-cu12", "9.1.0.70"),
    )
    found = having(
        broken, vision, damaged=(), distributions=tuple(
            but(each, path=f"{SITE}/{each.name.replace('-', '_')}-{each.version}.dist-info") for each in listed
        ),
        shipped=Shipped(source="wheel metadata", packages=(lost,), files=9, damaged=(damaged,), complete=True),
    )  # fmt: skip
    told = offered(on(found))
    cause = told["damaged-distribution"]
    assert told["library-not-found"].explained_by == cause.id
    for check in (cause, told["library-not-found"]):
        assert "--force-reinstall" in check.fixes[0].command
        assert check.fixes[0].command[-1] == f"{lost}=={version}"
        assert not any("apt-file" in fix.text for fix in check.fixes)


def test_what_one_fix_installs_the_next_may_remove() -> None:
    found = having(torch(), distributions=(dist("jax", "0.7.2"),))
    steps = (Changes(installs=("jax==0.8.0",)), Changes(removes=("jax",)))
    after = simulate(on(found), steps, load_matrix()).snapshot.environments
    assert after is not None
    assert "jax" not in {each.name for each in after.items[0].distributions or ()}


def test_another_build_of_the_same_version_is_another_one() -> None:
    cpu = but(torch("2.9.1+cpu"), cpu_only=True, cuda=None, gpu_code=())
    told = commands(offered(on(but(having(cpu), distributions=(dist("torch", "2.9.1+cpu"),))))["cpu-only-build"])
    assert any("torch==2.9.1+cu" in command for command in told)


ORT_REQUIRES = (
    'nvidia-curand~=10.0; extra == "cuda"',
    'nvidia-cuda-runtime~=13.0; extra == "cuda"',
    'nvidia-cudnn-cu13~=9.0; extra == "cudnn"',
)


@cases("snapshot", machine(driver__release="580.95.05", driver__cuda="13.0"), without_gpu())
def test_an_image_that_is_built_without_a_gpu_gets_the_fix_of_its_target(snapshot: Snapshot) -> None:
    """cuBLAS comes with cuDNN's wheel, which is opened only where there is a GPU."""
    needed = ("libcublasLt.so.13", "libcublas.so.13", "libcurand.so.10")
    loads = tuple(Load(source="elf x", name=name, needed_by=f"{SITE}/x.so") for name in needed)
    late = Load(source="elf x", name="libcudnn.so.9", needed_by=f"{SITE}/x.so", optional=True)
    loading: dict[str, Any] = {"loads": (*loads, late), "loads_complete": True, "path": f"{SITE}/onnxruntime"}
    onnx = framework("onnxruntime-gpu", "1.31.1", cuda="13.0", cpu_only=False, requires=ORT_REQUIRES, **loading)
    environment = but(having(onnx), distributions=(dist("onnxruntime-gpu", "1.31.1", requires=ORT_REQUIRES),))
    check = offered(with_venv(snapshot, environment))["cuda-library-missing"]
    assert [fix.command[-1] for fix in check.fixes if fix.command] == ["onnxruntime-gpu[cuda,cudnn]==1.31.1"]


@cases("numpy, offered_again", ("1.26.4", 0), ("2.1.2", 1))
def test_what_is_there_already_is_no_fix_of_an_error_line(numpy: str, offered_again: int) -> None:
    text = f"RuntimeError: Numpy is not available\nnumpy=={numpy}"
    report = judge(read_text(text), Request())
    (found,) = [check for check in report.checks if check.rule == "numpy-abi-mismatch" and check.status == "fail"]
    assert commands(found).count("python -m pip install numpy<2") == offered_again
    assert found.fixes


# --- what a text shows --------------------------------------------------------------------------------------------
@cases(
    "text, command",
    (
        (
            "jaxlib._jax.XlaRuntimeError: INVALID_ARGUMENT: Mismatched PJRT plugin PJRT API version (0.67) "
            "and framework PJRT API version 0.70)\njax==0.6.2\njaxlib==0.6.2\njax-cuda12-plugin==0.5.1"
        ),
        "install jax[cuda12]==0.6.2",
    ),
    (
        (
            "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory\nvllm 0.3.3\n"
            "torch 2.1.2+cu118"
        ),
        "install torch==2.1.2+cu121 torchvision --index-url https://download.pytorch.org/whl/cu121",
    ),
    (
        (
            "        System Info\n==============================\nOS : Ubuntu 24.04.3 LTS (aarch64)\n"
            "PyTorch version              : 2.9.1+cpu\nCUDA used to build PyTorch   : None\n"
            "Nvidia driver version        : 580.95.05\n[pip3] torch==2.9.1+cpu\n"
        ),
        "install --force-reinstall --no-deps torch==2.9.1 --index-url https://download.pytorch.org/whl/cu130",
    ),
    (
        "RuntimeError: the `pynvml` package is not NVML's official binding\nvllm 0.6.4",
        "uninstall --yes pynvml",
    ),
)
def test_a_list_without_requirements_is_simulated_by_rows(text: str, command: str) -> None:
    checks = judge(read_text(text), Request()).checks
    assert command in {" ".join(fix.command[3:]) for check in checks for fix in check.fixes}


def test_an_older_driver_leads_to_the_plugin_of_jax_that_it_runs() -> None:
    lines = ('jax-cuda12-plugin[with-cuda]; extra == "cuda12"', 'jax-cuda13-plugin[with-cuda]; extra == "cuda13"')
    plugin = ('nvidia-cudnn-cu13>=9.8; extra == "with-cuda"', 'nvidia-cublas>=13; extra == "with-cuda"')
    jax = framework("jax", "0.12.0", cuda="13", requires=lines)
    part = framework("jax-cuda13-plugin", "0.12.0", cuda="13", extends="jax")
    listed = (
        dist("jax", "0.12.0", requires=lines), dist("jaxlib", "0.12.0", requires=()),
        dist("jax-cuda13-plugin", "0.12.0", requires=plugin), dist("jax-cuda13-pjrt", "0.12.0", requires=()),
        dist("nvidia-cudnn-cu13", "9.12.0"), dist("nvidia-cublas", "13.1.0"),
    )  # fmt: skip
    there = on(venv(jax, part, distributions=listed))
    check = check_of("driver-too-old", but(there, driver__release="570.86.10", driver__cuda=None))
    removal, install = (fix.command for fix in check.fixes[:2])
    assert {*removal[5:]} == {"jax-cuda13-plugin", "jax-cuda13-pjrt", "nvidia-cudnn-cu13", "nvidia-cublas"}
    assert install[-1] == "jax[cuda12]==0.12.0"


def test_an_extension_of_another_cuda_is_taken_from_the_index_that_has_its_build() -> None:
    """PyPI's xFormers 0.0.35 is for CUDA 12; PyTorch's index for 13.0 has another, which knows PyTorch of 13.2 too."""
    lost = Load(source="elf x", name="libcudart.so.12", needed_by=f"{SITE}/xformers/_C.so")
    pytorch = torch(version="2.15.0+cu132", cuda="13.2")
    built = {"torch": "2.10.0+cu128"}
    part = framework("xformers", "0.0.35", cuda="12.8", extends="torch", built_for=built, unresolved=())
    loaded = but(part, loads=(lost,), loads_complete=True)
    there = (dist("torch", "2.15.0+cu132"), dist("xformers", "0.0.35"))
    found = on(venv(pytorch, loaded, distributions=there))
    after = simulate(found, [Changes(installs=("xformers==0.0.35",), alone=True, again=True)], load_matrix())
    (now,) = (each for each in frameworks_of(after.snapshot) if each.name == "xformers")
    assert now.cuda != "12.8"
    older = simulate(found, [Changes(installs=("torch==2.14.1+cu126",))], load_matrix())
    (kept,) = (each for each in frameworks_of(older.snapshot) if each.name == "xformers")
    assert (kept.unresolved, kept.cuda) == ((), "12.8"), "it found all symbols in a PyTorch newer than its own"


def frameworks_of(snapshot: Snapshot) -> tuple[Framework, ...]:
    assert snapshot.environments is not None
    (environment,) = snapshot.environments.items
    assert environment.frameworks is not None
    return environment.frameworks.items


def test_what_loses_files_to_a_removal_is_installed_again_where_torch_comes_alone() -> None:
    """On ARM the builds have no label: PyTorch is installed once more, without what it requires."""
    cpu = torch(version="2.9.1+cpu", cuda=None, cpu_only=True, loads=(), loads_complete=True)
    listed = (dist("torch", "2.9.1+cpu"), dist("nvidia-nccl-cu12", "2.27.5"), dist("nvidia-nccl-cu13", "2.28.9"))
    there = on(venv(cpu, distributions=listed))
    check = check_of("cpu-only-build", but(there, platform__machine="aarch64", driver__release="580.95.05"))
    removal, *installs = ([*fix.command[3:]] for fix in check.fixes[:3])
    assert {"nvidia-nccl-cu12", "nvidia-nccl-cu13"} <= {*removal}
    assert "--no-deps" in installs[0]
    assert "nvidia-nccl-cu13==2.28.9" in installs[1]


def first_commands(text: str) -> list[str]:
    """The commands of the first way out of the root cause of a pasted text."""
    report = judge(read_text(text), Request())
    check = next(each for each in report.checks if each.id == report.primary_check)
    return [" ".join(fix.command[3:]) for fix in ways_in_order(check.fixes)[0]]


def test_an_extension_is_taken_along_to_a_pytorch_that_the_gpu_needs() -> None:
    text = "PyTorch version: 2.6.0+cu124\nGPU 0: NVIDIA GeForce RTX 5090\nNvidia driver version: 580.65.06\n"
    text += "[pip3] torch==2.6.0+cu124\n[pip3] xformers==0.0.29.post3\n"
    (both,) = first_commands(text)
    assert both.startswith("install torch==2.")
    assert " xformers>=0.0." in both
    assert "--index-url" in both


def test_a_release_of_which_a_text_does_not_tell_enough_ends_nothing() -> None:
    """No fix is an older PyTorch, of whose build nothing is known where no processor and system are."""
    text = "GPU 0: NVIDIA GeForce RTX 5090\nNvidia driver version: 570.86.10\n"
    text += "[pip3] torch==2.4.1\n[pip3] torchvision==0.19.1\n[pip3] xformers==0.0.28\n"
    (whole,) = first_commands(text)
    assert whole.startswith("install torch==2.7.1+cu128 torchvision==0.22.1+cu128 xformers==0.0.31 --index-url ")


def test_an_engine_for_a_cuda_that_the_driver_lacks_is_taken_back() -> None:
    text = "PyTorch version: 2.11.0+cu126\nNvidia driver version: 560.35.03\nvLLM Version: 0.23.0\n"
    text += "[pip3] torch==2.11.0+cu126\nImportError: libcudart.so.13: cannot open shared object file"
    pytorch, vllm = first_commands(text)
    assert pytorch.startswith("install torch==2.10.0+cu126 --index-url ")
    assert vllm == "install vllm==0.19.1"


def test_on_windows_the_default_index_gives_no_other_release_its_pytorch() -> None:
    """Its wheels of PyTorch for Windows are for the CPU."""
    text = "OS: Microsoft Windows 11 Pro\nPyTorch version: 2.6.0+cu124\nGPU 0: NVIDIA GeForce RTX 5090\n"
    text += "Nvidia driver version: 580.88\n[pip3] torch==2.6.0+cu124\n[pip3] xformers==0.0.29.post3\n"
    assert all("--index-url" in command for command in first_commands(text))


def test_an_engine_that_pins_a_newer_cuda_is_taken_back_to_a_release_that_the_driver_runs() -> None:
    """PyPI's vLLM and SGLang are for CUDA 13; another build of PyTorch alone would leave them without their CUDA."""
    vllm = "PyTorch version: 2.14.0+cu130\nCUDA used to build PyTorch: 13.0\nGPU 0: NVIDIA H100 80GB HBM3\n"
    vllm += (
        "Nvidia driver version: 570.133.20\n[pip3] torch==2.14.0\n[pip3] torchvision==0.29.0\nvLLM Version: 0.33.0\n"
    )
    refused = "RuntimeError: The NVIDIA driver on your system is too old (found version 12080)."
    sglang = f"PyTorch: 2.13.0+cu130\nsglang: 0.5.19\ntransformers: 5.12.1\n{refused}\n"
    for text, wanted in ((vllm, "vllm==0.19.1"), (sglang, "sglang==0.5.10.post1")):
        report = judge(read_text(text), Request())
        check = next(each for each in report.checks if each.id == report.primary_check)
        assert check.rule == "driver-too-old"
        first, *others = ways_in_order(check.fixes)
        assert any(wanted in fix.command for fix in first)
        assert [fix.who for (fix,) in others] == ["root"], "what leaves a requirement unmet is not offered beside it"
