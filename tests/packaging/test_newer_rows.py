"""An envcheck that was installed a month ago gets the rows of today: by one command, or by its installer."""

import json
import subprocess
import zipfile
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from envcheck.bundle import COMPILED, DATE
from tests.packaging.installing import Built, Environment, build
from tests.refresh.serving import Index, serve

QUESTION = ("matrix", "check", "natten==0.21.0", "torch==2.7.0")


@pytest.fixture(scope="module")
def wheel(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the rows alone, of the same tree."""
    out = tmp_path_factory.mktemp("rows")
    done = build(built.tree / "gpu-envcheck-matrix", out, "--wheel")
    assert done.returncode == 0, done.stderr
    (found,) = out.iterdir()
    return found


@pytest.fixture(scope="module")
def old(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment whose envcheck knows what it knew 30 days before its rows were read last: nothing of natten."""
    environment = Environment(tmp_path_factory.mktemp("old") / "venv")
    environment.install(f"{built.wheel}[refresh]")
    (rows,) = environment.place.glob("lib/python*/site-packages/envcheck/matrix")
    content = json.loads((rows / COMPILED).read_bytes())
    for table in ("release", "wheel", "requirement", "published"):
        content[table].pop("natten", None)
    today = date.fromisoformat((rows / DATE).read_text().strip())
    for name, text in ((COMPILED, json.dumps(content)), (DATE, f"{today - timedelta(days=30)}\n")):
        (rows / name).unlink()  # uv links it with its cache, from which another environment would get what is written
        (rows / name).write_text(text)
    return environment


@pytest.fixture
def index(wheel: Path) -> Iterator[Index]:
    served = Index()
    served.files[wheel.name] = wheel.read_bytes()
    served.requires_python[wheel.name] = ""
    with serve(served):
        yield served


@pytest.fixture
def envcheck(old: Environment, tmp_path: Path) -> Any:
    """Runs the old one, with an empty folder for data: exit status, stdout and stderr."""

    def call(*arguments: str) -> tuple[int, str, str]:
        command = [str(old.place / "bin" / "envcheck"), *arguments]
        variables = {"PATH": "", "HOME": str(tmp_path)}
        done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    return call


def day_of(wheel: Path) -> str:
    _, year, month, day = map(int, wheel.name.split("-")[1].split("."))
    return date(year, month, day).isoformat()


def test_the_wheel_holds_rows_alone(wheel: Path, built: Built) -> None:
    with zipfile.ZipFile(wheel) as own, zipfile.ZipFile(built.wheel) as whole:
        names = [name for name in own.namelist() if ".dist-info/" not in name]
        assert names == [f"gpu_envcheck_matrix/1/{COMPILED}", f"gpu_envcheck_matrix/1/{DATE}"]
        assert [own.read(name) for name in names] == [whole.read(f"envcheck/matrix/{n}") for n in (COMPILED, DATE)]
        assert own.read(names[1]).decode() == f"{day_of(wheel)}\n"


def test_one_command_answers_what_was_unknown_and_another_takes_it_back(
    envcheck: Any, index: Index, wheel: Path
) -> None:
    assert envcheck(*QUESTION)[0] == 3
    ask = ("--index-url", index.address)
    status, out, _ = envcheck("matrix", "status", "--online", *ask)
    assert (status, out.splitlines()[-1]) == (1, f"The index has rows of {day_of(wheel)}: envcheck matrix update")
    status, out, err = envcheck("matrix", "update", *ask)
    assert (status, err) == (0, "")
    assert out.startswith(f"rows of {day_of(wheel)} count now, not those of ")
    status, out, _ = envcheck(*QUESTION, "--json")
    answer = json.loads(out)
    assert (status, answer["verdict"]) == (0, "compatible")
    assert [source for reason in answer["reasons"] for source in reason["sources"]]
    assert f"(matrix read {day_of(wheel)})" in envcheck("--version")[1]
    again = f"Nothing changed: the index has no rows newer than {day_of(wheel)}.\n"
    assert envcheck("matrix", "update", *ask)[:2] == (0, again)
    assert envcheck("matrix", "update", "--back")[0] == 0
    assert envcheck(*QUESTION)[0] == 3


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"sha256": ""}, "the index does not tell its sha256"),
        ({"sha256": "0" * 64}, "it was changed or cut short"),
        ({"cut": 100}, "it was changed or cut short"),
        ({"name": "gpu_envcheck_matrix-1.2999.1.1-py3-none-any.whl"}, "its rows are of "),
    ],
    ids=["unsigned", "tampered", "truncated", "misnamed"],
)
def test_what_an_index_may_do_wrong_changes_nothing(
    envcheck: Any, index: Index, wheel: Path, wrong: dict[str, Any], why: str
) -> None:
    name = wrong.get("name", wheel.name)
    told = index.sha256(wheel.name)
    index.files = {name: index.files[wheel.name][wrong.get("cut", 0) :]}
    index.requires_python[name] = ""
    index.hashes = {name: wrong.get("sha256", told)}
    status, out, err = envcheck("matrix", "update", "--index-url", index.address)
    assert (status, out) == (2, "")
    assert (err.startswith(f"envcheck: {name} was refused: "), why in err) == (True, True), err
    assert err.count("\n") == 1
    assert envcheck(*QUESTION)[0] == 3


def test_without_a_network_nothing_changes_and_one_sentence_says_why(envcheck: Any, index: Index) -> None:
    gone = "http://127.0.0.1:9/simple"
    status, out, err = envcheck("matrix", "update", "--index-url", gone)
    told = "envcheck: the index cannot be asked for gpu-envcheck-matrix: no connection\n"
    assert (status, out, err) == (2, "", told)


def test_a_file_is_taken_with_what_it_must_be(envcheck: Any, index: Index, wheel: Path) -> None:
    given = ("matrix", "update", "--from", str(wheel))
    assert envcheck(*given) == (2, "", "envcheck: --from needs --sha256\n")
    assert "it was changed or cut short" in envcheck(*given, "--sha256", "0" * 64)[2]
    assert envcheck(*given, "--sha256", index.sha256(wheel.name))[0] == 0
    assert envcheck(*QUESTION)[0] == 0


def test_the_distribution_beside_envcheck_counts(old: Environment, envcheck: Any, wheel: Path) -> None:
    old.install(str(wheel))
    try:
        assert envcheck(*QUESTION)[0] == 0
        first, *others = json.loads(envcheck("matrix", "status", "--json")[1])["copies"]
        assert (first["origin"], first["counts"]) == ("the distribution gpu-envcheck-matrix", True)
        assert [(each["origin"], each["counts"]) for each in others] == [("they came with envcheck", False)]
        asked = envcheck("matrix", "update", "--back")
        assert (asked[0], "there is nothing to go back from" in asked[2]) == (2, True)
    finally:
        subprocess.run(
            [old.uv, "pip", "uninstall", "-q", "--python", str(old.python), "gpu-envcheck-matrix"], check=True
        )
