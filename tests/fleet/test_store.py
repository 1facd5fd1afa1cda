"""The store of a fleet: since when, how often, which nodes became slower; and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from envcheck.fleet import record
from envcheck.fleet.record import Decline, Fleet
from tests.cli.calling import Result, envcheck
from tests.every import cases
from tests.fleet.made import healthy
from tests.fleet.test_fleet import write
from tests.fleet.test_hooks import lost

FAULT, ODD, REPLACED = "node00001", "node00002", "node00003"


def change(report: dict[str, Any], day: int) -> None:
    """GPU 0 to 3 of a node become 7 % slower on the tenth; another node says something on some days; a GPU is replaced
    by a slower one.
    """
    gpus = report["snapshot"]["gpus"]["items"]
    for figure in report["measurements"]:
        slower = report["host"] == FAULT and day >= 10
        slower |= report["host"] == REPLACED and day >= 10 and figure["gpu"] == gpus[0]["uuid"]
        figure["value"] *= 1 if not slower else 1 / 0.93 if figure["unit"] == "s" else 0.93
    if report["host"] == ODD and day in (5, 6, 8, 12, 13):
        lost(report)
    if report["host"] == REPLACED and day >= 10:
        for figure in report["measurements"]:
            for name in ("gpu", "peer"):
                figure[name] = "GPU-new" if figure.get(name) == gpus[0]["uuid"] else figure.get(name)
        gpus[0]["uuid"] = "GPU-new"


def look(folder: Path, day: int, *more: str, changed: Callable[[dict[str, Any], int], None] = change) -> Result:
    """A look at five nodes on a day of November."""
    made = healthy(5)
    for report in made:
        report["created"] = f"2026-11-{day:02d}T12:00:00Z"
        changed(report, day)
    write(folder, made)
    return envcheck("fleet", "--reports", str(folder), "--store", str(folder / "store"), *more, cwd=folder)


def told(result: Result) -> Fleet:
    return record.read(result.out.encode())


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Fleet]:
    """Two weeks of looks, and what is told in the last."""
    folder = tmp_path_factory.mktemp("site")
    return folder, [told(look(folder, day, "--format", "jsonl")) for day in range(1, 14)][-1]


def test_a_node_that_became_slower_is_a_row_with_the_day(site: tuple[Path, Fleet]) -> None:
    folder, fleet = site
    (found,) = fleet.declines
    gpus = tuple(f"GPU {first}" for first in range(4))
    assert isinstance(found, Decline)
    assert (found.node, found.since, found.gpus) == (FAULT, "2026-11-10", 4)
    assert {each for each in found.subjects if " to " not in each} == {*gpus}
    assert found.ratio == pytest.approx(0.93, abs=0.01)
    assert "1 node became slower" in fleet.head.headline
    page = look(folder, 13).out
    assert f"{FAULT}: all 4 GPUs 7% slower since 2026-11-10: " in " ".join(page.split())
    assert page.count(FAULT) == 1 + page.count(f"{FAULT} ")


def test_since_when_and_how_often_a_finding_was_there(site: tuple[Path, Fleet]) -> None:
    spells = [(each.node, each.what, each.since, each.times) for each in site[1].spells if each.what == "gpu-lost"]
    assert spells == [(ODD, "gpu-lost", "2026-11-12", 3)]
    page = " ".join(look(site[0], 13).out.split())
    assert "gpu-lost: GPU 3 is lost (since 2026-11-12)" in page
    assert "gpu-lost: began 3 times in two weeks" in page


def test_the_history_of_a_node(site: tuple[Path, Fleet]) -> None:
    asked = ("fleet", "history", "--store", str(site[0] / "store"))
    page = envcheck(*asked, FAULT, cwd=site[0]).out
    assert page.startswith(f"{FAULT}: 13 looks since 2026-11-01\n")
    assert "all 4 GPUs 7% slower since 2026-11-10" in page
    assert "in the weeks from 10-26, 11-02, 11-09" in page
    assert "Device memory copy, median of 4: 100%, 100%, 93%" in page
    page = " ".join(envcheck(*asked, ODD, cwd=site[0]).out.split())
    assert "FAIL gpu-lost: GPU 3 is lost (since 2026-11-12)" in page
    assert "was gpu-lost: GPU 3 is lost (2026-11-05 to 2026-11-06)" in page
    assert "fail 2026-11-12 to 2026-11-13: " in page
    known = json.loads(envcheck(*asked, ODD, "--json", cwd=site[0]).out)
    jsonschema.validate(known, json.loads(envcheck("schema", "fleet-history", cwd=site[0]).out))
    (now, before, first) = (each for each in known["said"] if each["what"] == "gpu-lost")
    assert (now["first"], now["lasts"], before["last"], first["first"]) == (
        "2026-11-12",
        True,
        "2026-11-08",
        "2026-11-05",
    )
    copied = json.loads(envcheck(*asked, FAULT, "--json", cwd=site[0]).out)
    shares = [
        round(each["share"], 2)
        for each in copied["weeks"]
        if (each["title"], each["subject"]) == ("Device memory copy", "GPU 2")
    ]
    assert shares == [1.0, 1.0, 0.93]
    assert copied["declines"][0]["since"] == "2026-11-10"


def test_the_same_reports_again_are_no_new_look(tmp_path: Path) -> None:
    look(tmp_path, 1)
    look(tmp_path, 1)
    page = envcheck("fleet", "history", FAULT, "--store", "store", cwd=tmp_path).out
    assert page.startswith(f"{FAULT}: 1 look since 2026-11-01\n")


def test_what_is_old_is_forgotten_and_a_missing_node_is_told(tmp_path: Path) -> None:
    for day in (1, 15):
        look(tmp_path, day, "--store-days", "8")
    page = envcheck("fleet", "history", FAULT, "--store", "store", cwd=tmp_path).out
    assert page.startswith(f"{FAULT}: 1 look since 2026-11-15\n")
    look(tmp_path, 15, "--expect-nodes", "gone")
    assert "vani" in envcheck("fleet", "history", "gone", "--store", "store", cwd=tmp_path).out


def test_a_store_that_another_program_writes_is_told_before_any_node_is_asked(tmp_path: Path) -> None:
    write(tmp_path, healthy(1))
    code = "import duckdb, sys; held = duckdb.connect('store'); print(flush=True); sys.stdin.read()"
    command, pipe = [sys.executable, "-c", code], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=tmp_path) as other:
        assert other.stdout
        other.stdout.readline()
        result = envcheck("fleet", "--reports", ".", "--store", "store", cwd=tmp_path)
        other.communicate()
    assert (result.status, result.out) == (2, "")
    assert "--store store cannot be used: IO Error: Could not set lock" in result.err


def test_names_that_try_to_get_out_are_text(tmp_path: Path) -> None:
    def changed(report: dict[str, Any], _: int) -> None:
        if report["host"] == ODD:
            lost(report, name="a\x1b[31m\"b,\n'c; drop table looked", rule='x"y,z')

    assert look(tmp_path, 1, changed=changed).status == 1
    known = envcheck("fleet", "history", "nobody", "--store", "store", cwd=tmp_path)
    assert (known.status, known.err.startswith("envcheck: --store store: nothing is known of 'nobody'")) == (2, True)


@cases(
    "words, said", (("--store", "foreign"), "is not a valid DuckDB"), (("--store", "none"), "does not exist"),
    ((), "name the store"), (("--store", "other"), "another database"), (("--store", "newer"), "another version"),
)  # fmt: skip
def test_what_is_no_store_is_one_sentence(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    (tmp_path / "foreign").write_text("nothing " * 9999)
    duckdb = pytest.importorskip("duckdb")
    for name, made in (("other", "looked"), ("newer", "envcheck_store")):
        with duckdb.connect(str(tmp_path / name)) as database:
            database.execute(f"create table {made} as select 2 as version")
    result = envcheck("fleet", "history", "n1", *words, cwd=tmp_path)
    assert (result.status, result.out) == (2, "")
    assert said in result.err
    assert len(result.err.splitlines()) == 1
    assert (
        words[1:] in ((), ("none",))
        or envcheck("fleet", "--reports", ".", *words, cwd=write(tmp_path, healthy(1))).status == 2
    )
