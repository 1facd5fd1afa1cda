"""``envcheck matrix show`` end to end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from envcheck.compat.load import load_matrix
from tests.cli.calling import envcheck


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


@pytest.mark.parametrize("component", ["cuda==8", "mig==1g.10gb", "numpy==2.1.0", "fabric-manager==550.54.14"])
def test_what_is_listed_can_be_shown(tmp_path: Path, component: str) -> None:
    assert page(tmp_path, component)["facts"]


def test_a_pytorch_release(tmp_path: Path) -> None:
    found = page(tmp_path, "torch==2.5.1")
    (facts,) = (facts for facts in found["facts"] if "builds" in facts)
    assert facts["default_cuda"] == "12.4"
    assert (facts["cudnn"], facts["nccl"], facts["triton"]) == ("9.1.0.70", "2.21.5", "3.1.0")
    assert (facts["python_min"], facts["python_max"]) == ("3.9", "3.13")
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
    from envcheck.compat.question.lookup import look_up  # noqa: PLC0415 - beside its only use
    from envcheck.components import Component  # noqa: PLC0415

    names = {row.name for row in load_matrix().releases}
    assert names
    assert [name for name in names if look_up(load_matrix(), Component(name, ())) is None] == []


@pytest.mark.parametrize("component", ["frobnicator", "frobnicator==1.0", "gpu==Voodoo 3", "python==3.99"])
def test_what_nobody_knows_is_unknown(tmp_path: Path, component: str) -> None:
    told = envcheck("matrix", "show", component, cwd=tmp_path)
    assert (told.status, told.out) == (3, f"The matrix knows nothing about {component}.\n")
    as_json = envcheck("matrix", "show", component, "--json", cwd=tmp_path)
    assert as_json.status == 3
    assert json.loads(as_json.out)["facts"] == []


@pytest.mark.parametrize(
    ("component", "near"),
    [
        ("torch==2.3.7", "2.3.1 is followed by 2.4.0. The series 2.3 has 2.3.0 and 2.3.1"),
        ("torch==2.3.7+cu121", "2.3.1 is followed by 2.4.0"),
        ("tensorflow==2.16.0", "The series 2.16 has 2.16.1 and 2.16.2"),
        ("cuda==12.10", "the nearest that it knows are 12.9 and 13.0"),
        ("driver==1.0", "the oldest that it knows is 340"),
        ("cudnn==4.0", "the oldest that it knows is >=5.0, <7"),
        ("autokeras==0.0.1", "PyPI lists it, and no row says more"),
    ],
)
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


@pytest.mark.parametrize("component", ["torch==2.5.1", "gpu==H200", "cuda==12.4", "driver==565.57.01", "cuda", "gpu"])
def test_a_page_fits_a_terminal(tmp_path: Path, component: str) -> None:
    told = envcheck("matrix", "show", component, cwd=tmp_path, COLUMNS="80")
    assert told.status == 0
    lines = [line.strip() for line in told.out.splitlines()]
    assert all(len(line) <= 80 for line in lines if not line.startswith("https://"))  # an address is never cut
    assert told.out.startswith(component + "\n")
