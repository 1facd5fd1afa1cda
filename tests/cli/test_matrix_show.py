"""``envcheck matrix show`` and ``check`` end to end: verdicts, exit statuses, formats, wrong usage, what they cost."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from envcheck.knowledge.load import load_matrix
from envcheck.report.schema import schema
from tests.cli.calling import envcheck, refused
from tests.every import cases, tabled
from tests.installed import INSTALLED


def page(cwd: Path, component: str) -> dict[str, Any]:
    told = envcheck("matrix", "show", component, "--json", cwd=cwd)
    assert (told.status, told.err) == (0, "")
    found: dict[str, Any] = json.loads(told.out)
    return found


def test_without_a_component_all_are_listed_with_counts_and_dates(tmp_path: Path) -> None:
    told = envcheck("matrix", "show", "--json", cwd=tmp_path)
    found = {each["name"]: each for each in json.loads(told.out)["components"]}
    matrix = load_matrix()
    assert {"gpu", "driver", "cuda", "torch", "numba", "numpy", "mig", "ollama"} <= found.keys()
    own = [*matrix.rows_of("numba"), *matrix.wheels_by_name["numba"], *matrix.requirements_by_name["numba"]]
    newest = max(source.read for source in matrix.cite(*own))
    assert (found["numba"]["rows"], found["numba"]["read"]) == (len(own), newest)
    assert all(each["rows"] and each["read"] for each in found.values())
    plain = envcheck("matrix", "show", cwd=tmp_path)
    assert plain.status == 0
    assert len(plain.out.splitlines()) == len(found) + 1


@cases("component", "cuda==8", "mig==1g.10gb", "numpy==2.1.0", "fabric-manager==550.54.14")
def test_what_is_listed_can_be_shown(tmp_path: Path, component: str) -> None:
    assert page(tmp_path, component)["facts"]


def test_a_pytorch_release(tmp_path: Path) -> None:
    found = page(tmp_path, "torch==2.5.1")
    (facts,) = (facts for facts in found["facts"] if "builds" in facts)
    assert facts["default_cuda"] == "12.4"
    assert (facts["cudnn"], facts["nccl"], facts["triton"]) == ("9.1.0.70", "2.21.5", "3.1.0")
    (pythons,) = (facts["pythons"] for facts in found["facts"] if "pythons" in facts)
    assert pythons["linux-x86_64"] == ">=3.9,<3.14"
    linux = {build["build"]: build["targets"] for build in facts["builds"] if build["os"] == "linux"}
    assert {"cu118", "cu121", "cu124"} == set(linux)
    assert "sm_37" in linux["cu118"]
    assert all(source["address"] and source["read"] for source in found["sources"])


def test_a_gpu(tmp_path: Path) -> None:
    (facts,) = page(tmp_path, "gpu==H200")["facts"]
    assert (facts["compute_capability"], facts["first_driver_branch"]) == ("9.0", 520)
    assert "last_driver_branch" not in facts
    assert (facts["first_cuda"], facts["kernel_modules"]) == ("11.8", ["open", "proprietary"])
    assert facts["memory"] >= 141e9
    assert (facts["bandwidth"], facts["peaks"]["bf16"]) == (pytest.approx(4.8e12), pytest.approx(989e12, rel=0.01))
    assert facts["peaks"]["fp64_tensor"] == pytest.approx(67e12, rel=0.01)
    (old,) = page(tmp_path, "gpu==sm_70")["facts"]
    assert (old["last_driver_branch"], old["last_cuda"]) == (580, "12.9")


def test_a_toolkit(tmp_path: Path) -> None:
    facts = page(tmp_path, "cuda==12.4")["facts"][0]
    assert (facts["driver_linux"], facts["bundled_driver"]) == ("525.60.13", "550.54.14")
    assert (facts["ptx"], facts["spoken_by_driver_branches"]) == ("8.4", ["550"])
    assert "sm_90" in facts["targets"]


def test_a_driver(tmp_path: Path) -> None:
    linux, windows = page(tmp_path, "driver==565.57.01")["facts"]
    assert (linux["branch"], linux["cuda"], linux["os"]) == (565, "12.7", "linux")
    assert linux["ended"].startswith("2025-10")
    assert "kepler" not in linux["generations"]
    assert windows["until"] == 569


def test_the_known_ones_are_listed(tmp_path: Path) -> None:
    assert page(tmp_path, "cuda")["known"] == [row.version for row in load_matrix().cuda]
    assert "2.5.1" in page(tmp_path, "torch")["known"]
    assert "H200" in page(tmp_path, "gpu")["known"]
    assert "550" in page(tmp_path, "driver")["known"]


def test_every_component_has_a_page() -> None:
    from envcheck.compat.lookup import look_up  # noqa: PLC0415 - beside its only use
    from envcheck.model.components import Component  # noqa: PLC0415

    names = {row.name for row in load_matrix().releases}
    assert names
    assert [name for name in names if look_up(load_matrix(), Component(name, ())) is None] == []


@cases("component", "frobnicator", "frobnicator==1.0", "gpu==Voodoo 3", "python==3.99")
def test_what_nobody_knows_is_unknown(tmp_path: Path, component: str) -> None:
    told = envcheck("matrix", "show", component, cwd=tmp_path)
    assert (told.status, told.out) == (3, f"The matrix knows nothing about {component}.\n")
    as_json = envcheck("matrix", "show", component, "--json", cwd=tmp_path)
    assert as_json.status == 3
    assert json.loads(as_json.out)["facts"] == []


@tabled
def test_what_does_not_exist_is_named_with_its_neighbours(tmp_path: Path, component: str, near: str) -> None:
    told = envcheck("matrix", "show", component, cwd=tmp_path)
    assert (told.status, told.err) == (3, "")
    assert near in " ".join(told.out.split())
    found = json.loads(envcheck("matrix", "show", component, "--json", cwd=tmp_path).out)
    assert near in found["missing"]
    assert found["facts"] == []


def test_beyond_the_newest_release_the_newest_is_named(tmp_path: Path) -> None:
    newest = load_matrix().torch[-1].version
    told = envcheck("matrix", "show", "torch==99.0", cwd=tmp_path)
    assert told.status == 3
    assert told.out.endswith(f"the newest that it knows is {newest}.\n")


@cases("component", "torch==2.5.1", "gpu==H200", "cuda==12.4", "driver==565.57.01", "cuda", "gpu")
def test_a_page_fits_a_terminal(tmp_path: Path, component: str) -> None:
    told = envcheck("matrix", "show", component, cwd=tmp_path, COLUMNS="80")
    assert told.status == 0
    lines = [line.strip() for line in told.out.splitlines()]
    assert all(len(line) <= 80 for line in lines if not line.startswith("https://"))  # an address is never cut
    assert told.out.startswith(component + "\n")


# --- ``envcheck matrix check`` end to end: verdicts, exit statuses, both formats, wrong usage -----------------------
@tabled
def test_verdict_and_exit_status(tmp_path: Path, components: list[str], verdict: str, status: int) -> None:
    told = envcheck("matrix", "check", *components, cwd=tmp_path)
    assert (told.status, told.err) == (status, "")
    assert told.out.startswith(verdict.upper() + "\n")
    as_json = envcheck("matrix", "check", *components, "--json", cwd=tmp_path)
    assert (as_json.status, as_json.err) == (status, "")
    answer = json.loads(as_json.out)
    assert answer["verdict"] == verdict
    jsonschema.validate(answer, schema("fit"))
    assert set(answer) == {"verdict", "reasons", "suggestions", "assumed"}
    for reason in answer["reasons"]:
        assert set(reason) == {"verdict", "message", "sources"}
        assert reason["message"]


def test_a_page_for_people(tmp_path: Path) -> None:
    told = envcheck("matrix", "check", "driver==525.60.11", "cuda==12.4", cwd=tmp_path).out
    lines = told.splitlines()
    assert lines[0] == "INCOMPATIBLE"
    assert " ".join(lines[2].split()) == "NO CUDA 12.4 needs driver 525.60.13 or newer, this is 525.60.11"
    assert any(line.strip().startswith("https://docs.nvidia.com/") for line in lines)
    assert "  driver >= 525.60.13" in lines
    assert lines[-1] == "Assumed: os: linux, machine: x86_64"
    assert all(len(line) <= 80 or line.strip().startswith("https://") for line in lines)  # an address is never cut
    assert "\x1b" not in told
    assert (
        "\x1b[1;31mINCOMPATIBLE"
        in envcheck("matrix", "check", "driver==525.60.11", "cuda==12.4", "--color", "always", cwd=tmp_path).out
    )


@tabled
def test_wrong_usage_is_one_sentence(tmp_path: Path, arguments: list[str]) -> None:
    refused(*arguments, cwd=tmp_path)


@cases("value", "\x1b[31mred", "\u202eevil", "\x9b2J", "a\nb", "é" * 300)
@cases("form", "text", "json")
def test_no_value_steers_the_terminal(tmp_path: Path, value: str, form: str) -> None:
    for operator in ("==", "!="):
        told = envcheck("matrix", "check", f"gpu{operator}{value}", "driver==550", "--format", form, cwd=tmp_path)
        assert told.status in (2, 3)
        for text in (told.out, told.err):
            assert not any(sign in text for sign in ("\x1b", "\x9b", "\u202e"))


def test_several_gpus_may_be_named(tmp_path: Path) -> None:
    told = envcheck("matrix", "check", "gpu==H100", "gpu==K80", "driver==550", cwd=tmp_path)
    assert told.status == 1
    assert "Kepler" in told.out


# --- What a question to the installed matrix costs beside an interpreter that does nothing --------------------------
ALLOWED = 14  # Times the process time of an interpreter that does nothing: a machine's speed does not matter
RUNS = 5

QUESTIONS = [
    ["torch==2.5.1", "gpu==H100", "driver==550.54.14"],
    ["torch==2.5.1", "gpu==RTX 5090"],
    ["tensorflow==2.15", "python==3.12", "--json"],
]


def seconds(*arguments: str) -> float:
    """The least process time (user and system) of some runs: what the machine does besides only ever adds."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return min(_once([sys.executable, *arguments], {**kept, "PYTHONPATH": str(INSTALLED)}) for _ in range(RUNS))


def _once(argv: list[str], variables: dict[str, str]) -> float:
    with subprocess.Popen(argv, cwd=INSTALLED, env=variables, stdout=subprocess.DEVNULL) as child:
        _, _, usage = os.wait4(child.pid, 0)
        child.returncode = 0
    return usage.ru_utime + usage.ru_stime


@pytest.fixture(scope="module")
def bare() -> float:
    return seconds("-c", "pass")


@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
def test_a_question_is_answered_at_once(bare: float, question: list[str]) -> None:
    assert seconds("-m", "envcheck", "matrix", "check", *question) <= ALLOWED * bare


def test_a_question_loads_only_what_it_needs() -> None:
    script = (
        "import sys; from envcheck.cli.main import main; main(['matrix', 'check', 'torch==2.5.1', 'driver==550']);"
        "print(*sorted(sys.modules), sep=chr(10))"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=INSTALLED,
        env={"PYTHONPATH": str(INSTALLED), "PATH": os.environ.get("PATH", "")}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    loaded = set(run.stdout.splitlines())
    assert "envcheck.compat" in loaded
    for unneeded in ("packaging", "tomllib", "textual", "pynvml"):
        assert unneeded not in loaded
    unneeded_rooms = ("envcheck.rules", "envcheck.collect", "envcheck.model.snapshot")
    assert not {name for name in loaded if name.startswith(unneeded_rooms)}
