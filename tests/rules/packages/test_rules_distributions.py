"""Damaged and doubled metadata of packages, and an environment judged alone (``--scope env``)."""

from typing import Any

from envcheck.knowledge.load import load_matrix
from envcheck.model.checks import Report
from envcheck.model.events import ignore
from envcheck.model.snapshot import Damaged, Distribution, Driver, Environment, Framework, Listing, Snapshot
from envcheck.pipeline.judging import judge
from envcheck.pipeline.request import Request
from envcheck.pipeline.timing import Timing
from envcheck.rules.api import Facts
from tests.every import cases
from tests.rules.machines import (
    NO_DRIVER,
    VENV,
    but,
    check_of,
    library,
    machine,
    said,
    statuses,
    torch,
    venv,
    with_venv,
    without_gpu,
)

SITE = f"{VENV}/lib/python3.12/site-packages"


def wheel(name: str, version: str, folder: str = SITE, **changes: Any) -> Distribution:
    path = f"{folder}/{name}-{version}.dist-info"
    known = Distribution(source="wheel metadata", name=name, version=version, path=path, channel="pip", record=True)
    return but(known, **changes)


def damage(name: str, problem: str) -> Damaged:
    return Damaged(source=f"file {SITE}/{name}", path=f"{SITE}/{name}", problem=problem)


LEFT = "left by an interrupted installation"


def environment(*distributions: Distribution, damaged: tuple[Damaged, ...] = (), **changes: Any) -> Environment:
    return but(venv(torch()), distributions=distributions, damaged=damaged, **changes)


GONE = "its source folder /src/pytorch is gone"


def of_source(name: str, **changes: Any) -> tuple[Distribution, Damaged]:
    there = wheel(name, "2.6.0a0+git1eba9b3", editable=True, **changes)
    return there, but(damage(f"{name}-2.6.0a0+git1eba9b3.dist-info", GONE), name=name, version=there.version)


PIP = f"{VENV}/bin/python -m pip"
OLD, NEW, BETWEEN = wheel("torch", "2.4.0"), wheel("torch", "2.5.1"), wheel("numpy", "2.1.0")
TWICE = "Damaged, or installed twice: torch"
NUMBA = wheel("numba", "0.61.2", requires=("torch<2.5",))  # such as pip install --target puts beside it
PIXI = "/home/ada/p/.pixi/envs/default"
OF_PIXI = wheel("cudnn", "9.1.0", path=f"{PIXI}/conda-meta/cudnn-9.1.0-h_0.json", channel="conda")
REMNANT = but(damage("numpy-2.1.0.dist-info", "METADATA is missing"), name="numpy", version="2.1.0")
NO_FILES = damage("nvidia-cudnn-cu12-9.1.0.70.dist-info", "files that its RECORD lists are gone: libcudnn.so.9")
NO_FOLDER = torch(path=None, problem="its metadata is there, its folder is not: an incomplete installation")
LOST = torch(incomplete=True, problem="files that its RECORD lists are gone: torch/__init__.py")
ODD = torch(problem="its metadata says 2.5.1, its version.py says 2.5.0")
BROKEN_OFF = but(damage("~orch-2.9.1.dist-info", LEFT), name="torch", version="2.9.1")
OF_GIT = torch("2.6.0a0+git1eba9b3", None, cpu_only=None, gpu_code=None, path=None, incomplete=True, problem=GONE)
TORCH_SOURCE, TORCH_RECORD = of_source("torch")
MY_SOURCE, MY_RECORD = of_source("mine")
SET = "installed in editable mode, is gone"


def of_conda(version: str) -> Distribution:
    return wheel("cudnn", version, path=f"{VENV}/conda-meta/cudnn-{version}-h_0.json", channel="conda")


def with_framework(framework: Framework, *there: Distribution, damaged: tuple[Damaged, ...] = ()) -> Environment:
    return but(venv(framework), distributions=there, damaged=damaged)


@cases("about, there, expected",
    ("whole", environment(NEW, BETWEEN),
     {"status": "pass", "title": "The records of the 2 installed packages are intact"}),
    ("a list that is not complete", environment(distributions_complete=False), ()),
    ("nobody looked", but(venv(torch()), damaged=None), ()),
    # pip removes one record at a time
    ("two records in one folder", environment(OLD, NEW),
     {"status": "warn", "title": TWICE, "what": ("torch is installed twice",), "evidence": ("2.4.0 and 2.5.1",),
      "read": (f"file {SITE}",),
      "fixes": (f"{PIP} uninstall --yes torch", f"{PIP} uninstall --yes torch",
                f"{PIP} install --force-reinstall --no-deps torch==2.5.1")}),
    ("two records, by uv", environment(OLD, NEW, manager="uv"),
     {"fixes": ("uv pip uninstall …", "uv pip install …")}),
    ("two records of which another package admits one", environment(NUMBA, OLD, NEW),
     {"fixes": ("…", "…", "… torch==2.4.0")}),
    ("two records of which one lists no files", environment(but(OLD, record=False), NEW),
     {"fixes": ("rm -r …", "…", "…")}),
    ("pip comes first where there is none",
     environment(but(OLD, installer="pip"), but(NEW, installer="pip"), distributions_complete=True, manager="venv"),
     {"fixes": [f"{VENV}/bin/python -m ensurepip…", f"{PIP} …"]}),
    ("one release with two records, as Debian's python3-cryptography",
     environment(BETWEEN, but(BETWEEN, path=f"{SITE}/numpy.egg-info")), ("pass",)),
    ("one package in two folders", environment(BETWEEN, wheel("numpy", "1.26.4", "/usr/lib/python3/dist-packages")),
     ("pass",)),
    ("a conda package that has a dist-info too is there once",
     environment(BETWEEN, but(BETWEEN, path=f"{VENV}/conda-meta/numpy-2.1.0-py312_0.json", channel="conda")),
     ("pass",)),
    ("two records of conda's", environment(of_conda("9.1.0"), of_conda("9.3.0")),
     {"status": "warn",
      "fix": f"conda install --prefix {VENV} --force-reinstall --no-deps --channel conda-forge cudnn=9.3.0"}),
    ("pixi is asked in its own words",
     environment(OF_PIXI, damaged=(Damaged(source="x", path=OF_PIXI.path or "", problem="it is empty"),), prefix=PIXI),
     {"fix": "pixi reinstall --manifest-path /home/ada/p --environment default cudnn"}),
    *((problem, environment(damaged=(damage("numpy-2.1.0.dist-info", problem),)),
       {"status": "warn", "evidence": [problem], "text": f"Delete {SITE}/numpy-2.1.0.dist-info…"})
      for problem in ("METADATA is missing", "METADATA is empty", "no version in METADATA")),
    ("a record without metadata is installed again", environment(damaged=(REMNANT,)),
     {"fixes": (f"{PIP} install --ignore-installed --no-deps numpy==2.1.0",)}),
    ("it is deleted where there is another", environment(wheel("numpy", "2.2.0"), damaged=(REMNANT,)),
     {"fixes": (f"rm -r -- {SITE}/numpy-2.1.0.dist-info",)}),
    ("files that are gone name the package",
     environment(wheel("nvidia-cudnn-cu12", "9.1.0.70"), damaged=(NO_FILES,), manager="uv"),
     {"title": "Damaged, or installed twice: nvidia-cudnn-cu12",
      "fix": f"uv pip install --python {VENV} --reinstall --no-deps --no-cache nvidia-cudnn-cu12==9.1.0.70"}),
    ("a build of another index is not asked of the default one",
     environment(wheel("jaxlib", "0.4.13"), wheel("jaxlib", "0.4.13+cuda12.cudnn89")),
     {"commands": [()], "text": "…jaxlib==0.4.13+cuda12.cudnn89…"}),
    ("a build of PyTorch's index is asked of that index",
     environment(wheel("torch", "2.4.0+cu121"), wheel("torch", "2.5.1+cu124")),
     {"fixes": ("…", "…", "… torch==2.5.1+cu124 --index-url https://download.pytorch.org/whl/cu124")}),
    *((f"left behind: {left}", environment(NEW, damaged=(damage(left, LEFT),)),
       {"status": status, "fix": f"rm -r -- {SITE}/{left}"}) for left, status in (
        ("~orch", "note"), ("~orch.libs", "note"), ("~orch-2.4.0.dist-info", "note"),
        ("~~rch", "note"), ("-orch", "note"), ("~umpy", "warn"),
        ("~umpy.libs", "warn"), ("~umpy-2.1.0.dist-info", "warn"), ("~", "warn"))),
    ("a framework's folder is gone", with_framework(NO_FOLDER, NEW), {"status": "warn", "what": ["torch"]}),
    ("it is editable", with_framework(NO_FOLDER, but(NEW, editable=True)), ("pass",)),
    ("an editable framework's source folder is gone",
     with_framework(OF_GIT, TORCH_SOURCE, damaged=(TORCH_RECORD,)),
     {"status": "fail", "title": f"The source folder of torch, {SET}", "message": "…/src/pytorch…",
      "ways": ((f"{PIP} uninstall --yes torch", f"{PIP} install torch"),), "cause": "damaged-distribution",
      "text": "Restore the source folder of torch…"}),
    ("a path file at which Python does not start", environment(damaged=(damage("a.pth", "it is not UTF-8"),)),
     {"status": "fail", "title": "Python does not start: a.pth is not UTF-8", "fix": f"rm -- {SITE}/a.pth"}),
    ("somebody's own package is not looked for on an index", environment(NEW, MY_SOURCE, damaged=(MY_RECORD,)),
     {"status": "warn", "title": f"The source folder of mine, {SET}", "fixes": (f"{PIP} uninstall --yes mine",)}),
    ("an older link leads nowhere", environment(damaged=(but(damage("torch.egg-link", GONE), name="torch"),)),
     {"status": "warn", "title": TWICE, "text": f"Restore the source folder, or delete {SITE}/torch.egg-link…"}),
    ("the system's packages are for its package manager", environment(OLD, NEW, externally_managed=True),
     {"who": "root", "text": "…system's package manager…"}),
    ("a framework has lost files", with_framework(LOST, NEW),
     {"status": "fail", "title": TWICE, "message": "…torch/__init__.py…", "fix": "… torch==2.5.1"}),
    ("what is said of a whole framework", with_framework(ODD, NEW), ("pass",)),
    ("an upgrade was broken off", environment(damaged=(damage("~orch", LEFT), BROKEN_OFF)),
     {"status": "warn", "title": f"{TWICE} and 1 more",
      "fixes": ("… torch==2.9.1", f"rm -r -- {SITE}/~orch-2.9.1.dist-info {SITE}/~orch")}),
    ("it was made up for", with_framework(torch("2.9.2"), wheel("torch", "2.9.2"), damaged=(BROKEN_OFF,)),
     {"status": "note", "fix": "rm …"}),
)  # fmt: skip
def test_damaged_distributions(about: str, there: Environment, expected: Any) -> None:
    assert said("damaged-distribution", there, expected) == expected


# --- Judging an environment alone (``--scope env``), where no GPU or driver is at hand to compare it with -----------
CPU_BUILD = torch("2.13.0+cpu", None, cpu_only=True, gpu_code=None)
CU130 = torch("2.13.0+cu130", "13.0")
ON_DISK = Driver(
    source="file", installed=True, libraries=Listing(items=(library("libcuda.so.1", "535.261.03"),), complete=True)
)


def alone(snapshot: Snapshot) -> Report:
    return judge(snapshot, Request(scopes=frozenset({"env"})), ignore, timing=Timing())


def bare(*frameworks: Framework, **changes: object) -> Snapshot:
    return with_venv(without_gpu(**changes), venv(*frameworks))


def row(report: Report, rule: str) -> str:
    return next(check.status for check in report.checks if check.rule == rule)


def test_a_cuda_build_passes_and_the_headline_says_what_it_was_not_compared_with() -> None:
    report = alone(bare(torch()))
    assert (report.verdict, int(report.exit_code)) == ("pass", 0)
    assert report.headline == "Environment is consistent; not compared with a GPU or driver"
    assert row(report, "driver-too-old") == "skipped"


@cases(
    "frameworks, said",
    ((CPU_BUILD,), "Environment is consistent; torch is a CPU build"),
    ((CPU_BUILD, torch()), "Environment is consistent; not compared with a GPU or driver"),
    ((), "Environment is consistent; not compared with a GPU or driver"),
)
def test_the_headline_claims_nothing_of_a_gpu(frameworks: tuple[Framework, ...], said: str) -> None:
    report = alone(bare(*frameworks))
    assert (report.verdict, report.headline) == ("pass", said)


def test_a_cpu_build_is_a_note() -> None:
    assert row(alone(bare(CPU_BUILD)), "cpu-only-build") == "note"


@cases("framework, verdict", (CU130, "fail"), (torch(), "pass"))
def test_the_driver_library_on_disk_judges_the_build(framework: Framework, verdict: str) -> None:
    report = alone(bare(framework, driver=ON_DISK))
    assert report.verdict == verdict
    assert row(report, "driver-too-old") == verdict
    if verdict == "fail":
        assert (report.primary, int(report.exit_code)) == ("driver-too-old", 1)
        told = next(check for check in report.checks if check.rule == "driver-too-old")
        assert "its library on disk" in told.message
        assert any("libcuda.so.535.261.03" in each.what for each in told.evidence)
    else:
        assert report.headline == "Environment is consistent; not compared with a GPU"


def test_a_stub_on_disk_is_no_driver() -> None:
    stub = but(library("libcuda.so.1", "535.261.03"), kind="stub", version=None)
    driver = but(NO_DRIVER, libraries=Listing(items=(stub,), complete=True))
    assert row(alone(bare(CU130, driver=driver)), "driver-too-old") == "skipped"


def test_where_the_driver_could_not_be_read_its_row_stays_open() -> None:
    report = alone(bare(CU130, driver=None, kernel=None))
    assert row(report, "driver-too-old") == "skipped"
    assert "driver.release" in report.ask


def test_a_gpu_and_a_driver_that_are_there_are_compared() -> None:
    report = alone(machine())
    assert (report.verdict, report.headline) == ("pass", "GPU, driver and frameworks look compatible")


def test_an_unknown_environment_is_no_pass() -> None:
    report = alone(Snapshot(environments=Listing[Environment](items=(), complete=False)))
    assert (report.verdict, int(report.exit_code)) == ("unknown", 3)


def test_a_base_interpreter_that_is_gone_accounts_for_all_that_is_found_in_its_environment() -> None:
    broken = but(venv(CPU_BUILD, CU130), problem="the Python that it was made from is gone: /opt/python3.12")
    found = judge(with_venv(machine(), broken), Request(), ignore, timing=Timing())
    bad = [each for each in found.checks if each.status in ("fail", "warn", "unknown") and each.subject.environment]
    assert found.primary == "environment-broken"
    assert {"cpu-only-build", "driver-too-old"} <= {each.rule for each in bad}
    assert [each.rule for each in bad if each.explained_by is None] == ["environment-broken"]


@cases("stated, recorded, status",
    ("2.7.1+cu126", "2.8.0", "warn"), ("2.8.0+cu128", "2.8.0", "pass"), ("2.8.0.post1", "2.8", "pass"),
    ("2.8.0a0+34c6371d24.nv25.08", "2.8.0a0", "pass"),
)  # fmt: skip
def test_a_version_file_that_contradicts_the_metadata(stated: str, recorded: str, status: str) -> None:
    known = torch(stated, path=f"{SITE}/torch", read={"version": f"file {SITE}/torch/version.py"})
    found = but(venv(known), distributions=(wheel("torch", recorded),), damaged=())
    check = check_of("damaged-distribution", with_venv(machine(), found))
    assert check.status == status
    if status == "warn":
        assert check.title == "torch's version.py says 2.7.1+cu126, its metadata 2.8.0"
        assert "torch==2.8.0" in check.fixes[-1].command
    elsewhere = but(found, distributions=(but(wheel("torch", recorded, editable=True)),))
    passed = statuses("damaged-distribution", with_venv(machine(), elsewhere)) == ("pass",)
    assert passed, "of an editable installation the metadata is as old as its last build"


@cases("left, there, imported",
    (wheel("numpy", "1.26.4", record=False), wheel("numpy", "2.1.0"), "2.1.0"),
    (wheel("numpy", "1.26.4", "/team", record=False), wheel("numpy", "2.1.0"), "1.26.4"),
    (wheel("numpy", "1.26.4"), wheel("numpy", "2.1.0"), "1.26.4"),
)  # fmt: skip
def test_a_record_without_a_list_gives_way_to_one_beside_it(
    left: Distribution, there: Distribution, imported: str
) -> None:
    found = Facts(with_venv(machine(), environment(left, there)), load_matrix()).installed("numpy")
    assert found is not None
    assert found.version == imported
