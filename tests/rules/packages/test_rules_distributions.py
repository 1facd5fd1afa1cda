"""Damaged and doubled metadata of packages, and an environment judged alone (``--scope env``)."""

from typing import Any

from envcheck.model.checks import Check, Report
from envcheck.model.events import ignore
from envcheck.model.snapshot import Damaged, Distribution, Driver, Environment, Framework, Listing, Snapshot
from envcheck.pipeline.judging import judge
from envcheck.pipeline.request import Request
from envcheck.pipeline.timing import Timing
from tests.every import cases
from tests.rules.machines import (
    NO_DRIVER,
    VENV,
    but,
    cause,
    check_of,
    checks_of,
    library,
    machine,
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


def judged(found: Environment) -> Check:
    return check_of("damaged-distribution", with_venv(machine(), found))


def test_a_whole_environment_passes() -> None:
    check = judged(environment(wheel("torch", "2.5.1"), wheel("numpy", "2.1.0")))
    assert (check.status, check.title) == ("pass", "The records of the 2 installed packages are intact")


def test_a_list_that_is_not_complete_does_not_pass() -> None:
    assert checks_of("damaged-distribution", with_venv(machine(), environment(distributions_complete=False))) == ()


def test_where_nobody_looked_the_question_does_not_arise() -> None:
    pasted = but(venv(torch()), damaged=None)
    assert checks_of("damaged-distribution", with_venv(machine(), pasted)) == ()


def test_two_records_of_one_package_in_one_folder() -> None:
    check = judged(environment(wheel("torch", "2.4.0"), wheel("torch", "2.5.1")))
    assert (check.status, check.title) == ("warn", "Damaged, or installed twice: torch")
    assert [(each.what, each.value, each.source) for each in check.evidence] == [
        ("torch is installed twice", "2.4.0 and 2.5.1", f"file {SITE}")
    ]
    remove = ("uninstall", "--yes", "torch")
    again = ("install", "--force-reinstall", "--no-deps", "torch==2.5.1")
    assert [fix.command[3:] for fix in check.fixes] == [remove, remove, again], "pip removes one record at a time"
    by_uv = judged(environment(wheel("torch", "2.4.0"), wheel("torch", "2.5.1"), manager="uv")).fixes
    assert [fix.command[2] for fix in by_uv] == ["uninstall", "install"]
    numba = wheel("numba", "0.61.2", requires=("torch<2.5",))  # such as pip install --target puts beside it
    fitting = judged(environment(numba, wheel("torch", "2.4.0"), wheel("torch", "2.5.1"))).fixes
    assert fitting[-1].command[-1] == "torch==2.4.0"
    unlisted = judged(environment(wheel("torch", "2.4.0", record=False), wheel("torch", "2.5.1"))).fixes
    assert unlisted[0].command[:2] == ("rm", "-r")
    assert len(unlisted) == 3


def test_an_environment_without_pip_gets_it_first() -> None:
    packages = (wheel("torch", "2.4.0", installer="pip"), wheel("torch", "2.5.1", installer="pip"))
    told = judged(environment(*packages, distributions_complete=True, manager="venv")).fixes
    assert [fix.command[2] for fix in told[:2]] == ["ensurepip", "pip"]


def test_one_package_in_two_folders_is_no_damage() -> None:
    twice = (wheel("numpy", "2.1.0"), wheel("numpy", "1.26.4", "/usr/lib/python3/dist-packages"))
    assert judged(environment(*twice)).status == "pass"


def test_a_conda_package_that_has_a_dist_info_too_is_there_once() -> None:
    conda = wheel("numpy", "2.1.0", path=f"{VENV}/conda-meta/numpy-2.1.0-py312_0.json", channel="conda")
    assert judged(environment(wheel("numpy", "2.1.0"), conda)).status == "pass"


def test_two_records_of_conda() -> None:
    records = [
        wheel("cudnn", version, path=f"{VENV}/conda-meta/cudnn-{version}-h_0.json", channel="conda")
        for version in ("9.1.0", "9.3.0")
    ]
    check = judged(environment(*records))
    assert check.status == "warn"
    assert check.fixes[0].command == (
        "conda", "install", "--prefix", VENV, "--force-reinstall", "--no-deps", "cudnn=9.3.0",
    )  # fmt: skip


def test_pixi_is_asked_in_its_own_words() -> None:
    prefix = "/home/ada/p/.pixi/envs/default"
    record = wheel("cudnn", "9.1.0", path=f"{prefix}/conda-meta/cudnn-9.1.0-h_0.json", channel="conda")
    broken = Damaged(source="file x", path=record.path or "", problem="it is empty")
    check = judged(environment(record, damaged=(broken,), prefix=prefix))
    place = ("--manifest-path", "/home/ada/p", "--environment", "default")
    assert check.fixes[0].command == ("pixi", "reinstall", *place, "cudnn")


@cases("problem", "METADATA is missing", "METADATA is empty", "no version in METADATA")
def test_metadata_that_cannot_be_used(problem: str) -> None:
    check = judged(environment(damaged=(damage("numpy-2.1.0.dist-info", problem),)))
    assert (check.status, check.evidence[0].value) == ("warn", problem)
    assert check.fixes[0].text.startswith(f"Delete {SITE}/numpy-2.1.0.dist-info")


def test_a_record_without_metadata_is_installed_again_or_deleted_where_there_is_another() -> None:
    left = but(damage("numpy-2.1.0.dist-info", "METADATA is missing"), name="numpy", version="2.1.0")
    alone = judged(environment(damaged=(left,))).fixes
    assert [fix.command[1:] for fix in alone] == [
        ("-m", "pip", "install", "--ignore-installed", "--no-deps", "numpy==2.1.0")
    ]
    beside = judged(environment(wheel("numpy", "2.2.0"), damaged=(left,))).fixes
    assert [fix.command for fix in beside] == [("rm", "-r", "--", f"{SITE}/numpy-2.1.0.dist-info")]


def test_files_that_are_gone_name_the_package() -> None:
    gone = damage("nvidia-cudnn-cu12-9.1.0.70.dist-info", "files that its RECORD lists are gone: libcudnn.so.9")
    check = judged(environment(wheel("nvidia-cudnn-cu12", "9.1.0.70"), damaged=(gone,), manager="uv"))
    assert check.title == "Damaged, or installed twice: nvidia-cudnn-cu12"
    assert check.fixes[0].command == (
        "uv", "pip", "install", "--python", VENV, "--reinstall", "--no-deps", "--no-cache",
        "nvidia-cudnn-cu12==9.1.0.70",
    )  # fmt: skip


def test_a_build_of_another_index_is_not_asked_of_the_default_one() -> None:
    check = judged(environment(wheel("jaxlib", "0.4.13"), wheel("jaxlib", "0.4.13+cuda12.cudnn89")))
    assert check.fixes[0].command == ()
    assert "jaxlib==0.4.13+cuda12.cudnn89" in check.fixes[0].text


def test_a_build_of_pytorchs_index_is_asked_of_that_index() -> None:
    check = judged(environment(wheel("torch", "2.4.0+cu121"), wheel("torch", "2.5.1+cu124")))
    assert check.fixes[-1].command[-3:] == (
        "torch==2.5.1+cu124", "--index-url", "https://download.pytorch.org/whl/cu124",
    )  # fmt: skip


@cases("left, status",
    ("~orch", "note"), ("~orch-2.4.0.dist-info", "note"), ("~~rch", "note"), ("-orch", "note"), ("~umpy", "warn"),
    ("~umpy-2.1.0.dist-info", "warn"), ("~", "warn"),
)  # fmt: skip
def test_what_an_installation_left_behind_matters_where_the_package_is_not_there(left: str, status: str) -> None:
    check = judged(environment(wheel("torch", "2.5.1"), damaged=(damage(left, LEFT),)))
    assert (check.status, check.fixes[0].command) == (status, ("rm", "-r", "--", f"{SITE}/{left}"))


def test_a_framework_whose_folder_is_gone() -> None:
    gone = torch(path=None, problem="its metadata is there, its folder is not: an incomplete installation")
    check = judged(but(venv(gone), distributions=(wheel("torch", "2.5.1"),), damaged=()))
    assert (check.status, check.evidence[0].what) == ("warn", "torch")
    assert judged(but(venv(gone), distributions=(wheel("torch", "2.5.1", editable=True),), damaged=())).status == "pass"


GONE = "its source folder /src/pytorch is gone"


def of_source(name: str, **changes: Any) -> tuple[Distribution, Damaged]:
    there = wheel(name, "2.6.0a0+git1eba9b3", editable=True, **changes)
    return there, but(damage(f"{name}-2.6.0a0+git1eba9b3.dist-info", GONE), name=name, version=there.version)


def test_an_editable_framework_whose_source_folder_is_gone() -> None:
    gone = torch(
        "2.6.0a0+git1eba9b3", cuda=None, cpu_only=None, gpu_code=None, path=None, incomplete=True, problem=GONE
    )
    there, record = of_source("torch")
    found = with_venv(machine(), but(venv(gone), distributions=(there,), damaged=(record,)))
    check = check_of("damaged-distribution", found)
    assert (check.status, check.title) == ("fail", "The source folder of torch, installed in editable mode, is gone")
    assert "/src/pytorch" in check.message
    remove, bring = check.fixes
    assert (remove.command[3:], bring.command[3:]) == (("uninstall", "--yes", "torch"), ("install", "torch"))
    assert bring.continues
    assert remove.text.startswith("Restore the source folder of torch")
    assert cause(found) == "damaged-distribution"


def test_somebody_s_own_package_is_not_looked_for_on_an_index() -> None:
    there, record = of_source("mine")
    check = judged(environment(wheel("torch", "2.5.1"), there, damaged=(record,)))
    assert (check.status, check.title) == ("warn", "The source folder of mine, installed in editable mode, is gone")
    assert [fix.command[3:] for fix in check.fixes] == [("uninstall", "--yes", "mine")]


def test_an_older_link_that_leads_nowhere() -> None:
    check = judged(environment(damaged=(but(damage("torch.egg-link", GONE), name="torch"),)))
    assert (check.status, check.title) == ("warn", "Damaged, or installed twice: torch")
    assert check.fixes[0].text.startswith(f"Restore the source folder, or delete {SITE}/torch.egg-link")


def test_the_system_s_packages_are_for_its_package_manager() -> None:
    check = judged(environment(wheel("torch", "2.4.0"), wheel("torch", "2.5.1"), externally_managed=True))
    assert check.fixes[0].who == "root"
    assert "system's package manager" in check.fixes[0].text


def test_a_framework_that_has_lost_its_own_files_is_a_failure() -> None:
    lost = torch(incomplete=True, problem="files that its RECORD lists are gone: torch/__init__.py")
    check = judged(but(venv(lost), distributions=(wheel("torch", "2.5.1"),), damaged=()))
    assert (check.status, check.title) == ("fail", "Damaged, or installed twice: torch")
    assert "torch/__init__.py" in check.message
    assert check.fixes[0].command[-1] == "torch==2.5.1"


def test_what_is_said_of_a_framework_that_is_whole_is_no_damage() -> None:
    said = torch(problem="its metadata says 2.5.1, its version.py says 2.5.0")
    assert judged(but(venv(said), distributions=(wheel("torch", "2.5.1"),), damaged=())).status == "pass"


def test_a_package_whose_upgrade_was_broken_off_is_installed_again_first() -> None:
    left = but(damage("~orch-2.9.1.dist-info", LEFT), name="torch", version="2.9.1")
    check = judged(environment(damaged=(damage("~orch", LEFT), left)))
    assert (check.status, check.title) == ("warn", "Damaged, or installed twice: torch and 1 more")
    assert [fix.command[-1] for fix in check.fixes] == ["torch==2.9.1", f"{SITE}/~orch"]


def test_a_package_that_is_there_again_needs_no_installation() -> None:
    left = but(damage("~orch-2.9.1.dist-info", LEFT), name="torch", version="2.9.1")
    there = but(environment(wheel("torch", "2.9.2"), damaged=(left,)), frameworks=Listing(items=(torch("2.9.2"),)))
    check = judged(there)
    assert (check.status, check.fixes[0].command[0]) == ("note", "rm")


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
    check = judged(found)
    assert check.status == status
    if status == "warn":
        assert check.title == "torch's version.py says 2.7.1+cu126, its metadata 2.8.0"
        assert "torch==2.8.0" in check.fixes[-1].command
    elsewhere = but(found, distributions=(but(wheel("torch", recorded, editable=True)),))
    assert judged(elsewhere).status == "pass", "of an editable installation the metadata is as old as its last build"
