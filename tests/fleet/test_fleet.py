"""A fleet made from recorded machines: what was planted is found, nothing else, and no machine is lost by its name."""

from __future__ import annotations

import json
import os
import random
import tarfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import given as drawing
from hypothesis import strategies as st

from envcheck.errors import UsageError
from envcheck.fleet import record
from envcheck.fleet.compare import compare, conclude, judged
from envcheck.fleet.engines.reports import answers
from envcheck.fleet.examine import Examined, Judge, NodeAnswer, _batch, examine, newest
from envcheck.fleet.facts import limits
from envcheck.fleet.names import folded, unfolded
from envcheck.fleet.pages import html, text
from envcheck.fleet.pages.text import by_reason
from envcheck.fleet.record import Circumstances, Fleet, NodeGpu, Vanished
from envcheck.model.checks import Tool
from envcheck.pipeline.request import Request
from envcheck.report import Options
from tests.cli.calling import envcheck
from tests.every import cases, tabled
from tests.fleet.made import KIND, Planted, healthy, make_fleet
from tests.report.foreign import ATTACKS
from tests.thorough import examples

JUDGE = partial(judged, Request(), {})
HOW = Circumstances(
    tool=Tool(version="1", matrix="2026-11-23"), engine="reports", created="2026-11-23T00:00:00Z", duration_s=1.0
)
FOUR = 4
HOSTILE = ('a"b', "c,d", "e\r\nf", "g\x00h", "i\u2028j", "", " ", "=1", "NULL", "k" * 300, "n[1-3]", "9" * 40, "../x")


def fleet_of(
    place: Path | str, earlier: Fleet | None = None, expected: Sequence[str] = (), judge: Judge = JUDGE
) -> Fleet:
    nodes, facts = examine(answers(str(place)), judge)
    kept, left_out = newest(nodes)
    since = earlier.head.created if earlier else None
    return conclude(
        compare(kept, facts, earlier, expected=expected, serials=True), kept, HOW, superseded=left_out, since=since
    )


def found(fleet: Fleet) -> Planted:
    """What the fleet tells, in the words of what was planted."""
    return Planted(
        differences={
            (place.node, subject, difference.what, difference.value)
            for difference in fleet.differences
            for place in difference.places
            for subject in (place.subjects or ("",))
        },
        slow={(figure.node, figure.subject) for figure in fleet.slow},
        unanswered={node.name for node in fleet.nodes if node.problem},
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Planted]:
    folder = tmp_path_factory.mktemp("fleet")
    return folder, make_fleet(folder, 240)


@pytest.fixture(scope="module")
def fleet(made: tuple[Path, Planted]) -> Fleet:
    return fleet_of(made[0])


def write(folder: Path, reports: list[dict[str, Any]]) -> Path:
    for report in reports:
        (folder / f"{report['host']}.json").write_text(json.dumps(report))
    return folder


@cases("seed", 1, 2)
def test_every_planted_difference_is_found_and_none_invented(tmp_path: Path, seed: int) -> None:
    planted = make_fleet(tmp_path, 240, seed)
    assert (len(planted.differences), len(planted.slow)) == (11, 3)
    assert found(fleet_of(tmp_path)) == planted


def test_reading_in_processes_finds_the_same(fleet: Fleet, made: tuple[Path, Planted]) -> None:
    """245 answers are read in processes where there are two cores; 40 in this one."""
    assert found(fleet) == made[1]
    assert fleet.head.nodes == 245


def test_the_common_value_and_who_shares_it_are_told(fleet: Fleet) -> None:
    difference = next(each for each in fleet.differences if each.what == "VBIOS")
    assert (difference.common, difference.among) == ("96.00.A5.00.1A", KIND)
    assert difference.known - difference.share == 1


def test_nodes_of_two_sizes_are_two_kinds(fleet: Fleet) -> None:
    assert [group.gpus for group in fleet.groups[:2]] == ["4 x NVIDIA H200", "1 x NVIDIA H200"]
    assert sum(len(group.nodes) for group in fleet.groups) == 240


def test_the_verdict_is_the_worst(fleet: Fleet) -> None:
    assert (fleet.head.verdict, fleet.head.exit_code, fleet.head.verdicts["unanswered"]) == ("fail", 1, 5)


def test_equal_nodes_pass(tmp_path: Path) -> None:
    fleet = fleet_of(write(tmp_path, healthy(FOUR)))
    assert (fleet.head.verdict, fleet.head.exit_code, len(fleet.groups)) == ("pass", 0, 1)
    assert found(fleet) == Planted()


def test_without_a_majority_nobody_departs(tmp_path: Path) -> None:
    made = healthy(FOUR)
    for report in made[:2]:
        report["snapshot"]["driver"]["release"] = "570.1"
    fleet = fleet_of(write(tmp_path, made))
    assert not fleet.differences
    assert [(split.what, split.counts) for split in fleet.splits] == [("release", (2, 2))]
    assert fleet.head.verdict == "warn"


def test_what_nobody_looked_at_is_no_difference(tmp_path: Path) -> None:
    made = healthy(FOUR)
    made[0]["snapshot"]["driver"] = None
    made[0]["snapshot"]["variables"] = None
    made[1]["snapshot"]["gpus"]["items"][0]["vbios"] = None
    assert found(fleet_of(write(tmp_path, made))) == Planted()


def called(host: str) -> list[dict[str, Any]]:
    """Equal nodes, the first of which has this name."""
    made = healthy(FOUR)
    made[0]["host"] = made[0]["snapshot"]["platform"]["host"] = host
    return made


@cases("host", "late", "numpy", "torch", "localhost", "x" * 300, ".*", "node00001.example.org")
def test_a_node_may_be_called_as_its_facts_are(tmp_path: Path, host: str) -> None:
    """``late`` is a part of the package tabulate."""
    for number, report in enumerate(called(host)):
        (tmp_path / f"{number}.json").write_text(json.dumps(report))
    assert found(fleet_of(tmp_path)) == Planted()


def test_the_name_of_a_node_in_its_own_paths_is_no_difference(tmp_path: Path) -> None:
    made = called("gpu-1.example.org")
    for report in made:
        short = report["host"].partition(".")[0]
        report["snapshot"]["variables"]["values"]["CUDA_CACHE_PATH"] = f"/scratch/{short}/{report['host']}:{short}"
    assert found(fleet_of(write(tmp_path, made))) == Planted()


def test_a_list_that_is_not_complete_lacks_nothing(tmp_path: Path) -> None:
    made = healthy(FOUR)
    for environment in made[0]["snapshot"]["environments"]["items"]:
        environment["distributions"] = environment["distributions"][1:]
        environment["distributions_complete"] = False
    assert found(fleet_of(write(tmp_path, made))) == Planted()


def test_a_node_that_lost_all_gpus_departs(tmp_path: Path) -> None:
    made = healthy(FOUR)
    made[0]["snapshot"]["gpus"] = {"items": [], "complete": True}
    assert found(fleet_of(write(tmp_path, made))).differences == {(made[0]["host"], "", "model", "none")}


def test_the_newest_report_of_a_node_counts(tmp_path: Path) -> None:
    made = healthy(FOUR)
    old = json.loads(json.dumps(made[0]))
    old["created"], old["snapshot"]["driver"]["release"] = "2020-01-01T00:00:00Z", "450.1"
    write(tmp_path, made)
    (tmp_path / "aa-older.json").write_text(json.dumps(old))
    fleet = fleet_of(tmp_path)
    assert fleet.head.superseded == 1
    assert found(fleet) == Planted()


def test_facts_without_a_verdict_are_judged(tmp_path: Path) -> None:
    made = healthy(FOUR)
    for report in made:
        report["checks"], report["verdict"] = [], "unknown"
    assert fleet_of(write(tmp_path, made)).head.verdicts["pass"] == FOUR


def test_failures_of_the_nodes_are_gathered_by_rule(tmp_path: Path) -> None:
    made = healthy(FOUR)
    made[1]["verdict"] = "fail"
    made[1]["checks"][0] |= {"status": "fail", "rule": "gpu-lost", "title": "A GPU is lost", "explained_by": None}
    fleet = fleet_of(write(tmp_path, made))
    assert [(problem.rule, problem.nodes) for problem in fleet.problems] == [("gpu-lost", (made[1]["host"],))]
    assert fleet.head.exit_code == 1


def test_figures_of_a_busy_gpu_and_wrong_results_do_not_count(tmp_path: Path) -> None:
    made = healthy(5)
    for figure in made[0]["measurements"]:
        figure["value"] *= 0.5
        figure["conditions"] = {"utilisation_before": 90.0}
    for figure in made[1]["measurements"]:
        figure["value"] *= 0.5
        figure["verification"] = {"right": False, "checked": 5, "how": "every byte"}
    assert not fleet_of(write(tmp_path, made)).slow


def test_serials_are_told_only_if_asked_for(tmp_path: Path) -> None:
    made = healthy(5)
    for figure in made[0]["measurements"]:
        figure["value"] *= 0.5 if figure["unit"] != "s" else 1
    write(tmp_path, made)
    serial = made[0]["snapshot"]["gpus"]["items"][0]["serial"]
    assert serial in envcheck("fleet", "--reports", ".", "--serials", "--format", "jsonl", cwd=tmp_path).out
    assert serial not in envcheck("fleet", "--reports", ".", "--format", "jsonl", cwd=tmp_path).out


# The limits of a figure.


@tabled
def test_what_is_slow(unit: str, count: int, median: float, mad: float, value: float, status: str | None) -> None:
    found = limits(unit, count, median, mad)
    outside = value < found.low or value > found.high
    assert (found.status(value) if outside else None) == status


# Drift.


def test_what_changed_since_an_earlier_fleet_report(tmp_path: Path) -> None:
    made = healthy(5)
    before = record.read("".join(record.write(fleet_of(write(tmp_path, made)))).encode())
    made[0]["snapshot"]["driver"]["release"] = "590.1"
    for figure in made[1]["measurements"]:
        figure["value"] *= 0.9 if figure["name"] == "device-memory-copy" else 1.2
    made[2]["snapshot"]["variables"]["values"]["NCCL_DEBUG"] = "INFO"
    gone = made.pop()["host"]
    (tmp_path / f"{gone}.json").unlink()
    fleet = fleet_of(write(tmp_path, made), before)
    moved = {(drift.what, drift.before, drift.after, drift.places[0].node) for drift in fleet.drifts}
    assert moved == {("release", "580.159.04", "590.1", made[0]["host"]), ("NCCL_DEBUG", None, "INFO", made[2]["host"])}
    slower = {(figure.node, figure.subject, figure.quantity.title) for figure in fleet.slowed}
    assert {title for _, _, title in slower} == {"Device memory copy", "Launch latency"}
    assert {(node, subject) for node, subject, _ in slower} == {
        (made[1]["host"], f"GPU {place}") for place in range(FOUR)
    }
    assert fleet.came_or_went is not None
    assert (fleet.came_or_went.went, fleet.vanished) == ((gone,), (Vanished(status="warn", nodes=(gone,)),))
    assert fleet.head.headline.startswith("1 node vanished, ")
    page = text.render(fleet, Options(verbose=True))
    assert page.index(gone) < page.index("Different from the majority") < page.index("Changed since")
    assert page.count(gone) == 1


# Nodes that vanished.


def test_every_node_that_vanished_is_the_first_thing_told(tmp_path: Path) -> None:
    """Twenty of them with gaps between, which no list cuts away; those that failed to answer have not vanished."""
    place = write(tmp_path, healthy(FOUR))
    (tmp_path / "node00004.json").write_text("")
    gone = [f"gpu-{number:03d}" for number in range(1, 41, 2)]
    fleet = fleet_of(place, expected=[*gone, *[f"node{number:05d}.example.org" for number in range(5)]])
    assert fleet.vanished == (Vanished(status="fail", nodes=tuple(gone)),)
    assert (fleet.head.headline, fleet.head.verdict, fleet.head.exit_code) == (
        "20 nodes vanished, 1 node did not answer", "fail", 1,
    )  # fmt: skip
    page = " ".join(text.render(fleet, Options()).split())
    numbers = ",".join(f"{number:03d}" for number in range(1, 41, 2))
    assert "FAIL expected, and nothing came of them 20 nodes: " in page
    assert f"gpu-[{numbers}]" in page.replace(", ", ",").replace(" ", "")
    assert f"gpu-[{numbers}]" in html.render(fleet, Options())
    lines = [json.loads(line) for line in record.write(fleet)]
    assert (lines[1]["record"], lines[1]["nodes"]) == ("vanished", gone)


def test_what_could_not_be_read_is_not_taken_for_absent(tmp_path: Path) -> None:
    """A report that is cut off may be of the node that is missed, unless its file is called as another one is."""
    asked = ("fleet", "--reports", "reports", "--format", "jsonl", "--expect-nodes", "node[00000-00003],gone")
    (tmp_path / "reports").mkdir()
    write(tmp_path / "reports", healthy(FOUR))
    (tmp_path / "reports/node00003.json").write_text("{")
    told = record.read(envcheck(*asked, cwd=tmp_path).out.encode())
    assert told.vanished == (Vanished(status="fail", nodes=("gone",)),)
    (tmp_path / "reports/3f2a.json").write_text("{")
    told = record.read(envcheck(*asked, cwd=tmp_path).out.encode())
    assert told.vanished == (Vanished(status="unknown", nodes=("gone",)),)
    assert (told.head.verdict, told.head.exit_code) == ("unknown", 3)
    assert told.head.headline.startswith("1 node may have vanished")
    assert "unless a report that could not be read is theirs" in " ".join(text.render(told, Options()).split())


def test_expected_nodes_of_options_files_and_a_configuration(tmp_path: Path) -> None:
    write(tmp_path, healthy(2))
    (tmp_path / "all.txt").write_text("node[00000-00001]  # the first rack\n# nothing\nn3,n4\n")
    (tmp_path / "envcheck.toml").write_text('expect-nodes = ["./all.txt", "n[5-6]"]\n')
    asked = ("fleet", "--reports", str(tmp_path), "--format", "jsonl", "--config", str(tmp_path / "envcheck.toml"))
    told = record.read(envcheck(*asked, cwd=Path("/")).out.encode())
    assert [each.nodes for each in told.vanished] == [("n3", "n4", "n5", "n6")]
    told = record.read(envcheck(*asked, "--expect-nodes", "node00000", cwd=tmp_path).out.encode())
    assert (told.vanished, told.head.exit_code) == ((), 0)
    refused = envcheck(*asked, "--expect-nodes", "n[1-", cwd=tmp_path)
    assert (refused.status, "--expect-nodes: '['" in refused.err) == (2, True)


def test_a_fleet_report_is_read_again_as_it_was(fleet: Fleet) -> None:
    assert record.read("".join(record.write(fleet)).encode()) == fleet


@cases("content, told",
    (b"", "not a fleet report"), (b"{}", "not a fleet report"),
    (b'{"record":"fleet"}\n', "not a fleet report of this version"),
    (b'{"record":"fleet","nodes":\n', "cut off or damaged"), (b'{"record":"fleet"' + b"[" * 100_000, "damaged"),
)  # fmt: skip
def test_what_is_no_fleet_report_is_refused(content: bytes, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        record.read(content)


# Tar files.


def tarred(folder: Path, mode: str) -> Path:
    """A tar file of ``folder``, with an empty report, and a link that leads elsewhere."""
    place = folder.parent / f"reports.{mode}"
    form: Any = f"w:{mode.removeprefix('tar').removeprefix('.')}"
    with tarfile.open(place, form) as tar:
        tar.add(folder, "reports")
        tar.addfile(tarfile.TarInfo("empty.json"))
        link = tarfile.TarInfo("link.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    return place


@cases("mode", "tar", "tar.gz", "tar.bz2", "tar.xz")
def test_reports_come_from_a_tar_file(tmp_path: Path, mode: str) -> None:
    (tmp_path / "reports").mkdir()
    place = tarred(write(tmp_path / "reports", healthy(FOUR)), mode)
    (tmp_path / "reports" / "notes.txt").write_text("not a report")
    fleet = fleet_of(place)
    assert [(node.name, node.problem[:11]) for node in fleet.nodes if node.problem] == [
        (f"{place.name}: empty", "it is empty")
    ]
    assert len(fleet.nodes) == FOUR + 1
    assert f"{place}: reports/node00000.json" in [node.path for node in fleet.nodes]
    piped = envcheck("fleet", "--reports", "-", "--format", "jsonl", cwd=tmp_path, stdin=place.read_bytes())
    assert len([node for node in record.read(piped.out.encode()).nodes if not node.problem]) == FOUR


@cases("mode", "tar", "tar.gz", "tar.xz")
def test_a_tar_file_that_is_cut_off_gives_what_came(tmp_path: Path, mode: str) -> None:
    (tmp_path / "reports").mkdir()
    chance = random.Random(5)
    made = healthy(FOUR)
    for report in made:  # which cannot be packed small
        report["headline"] = chance.randbytes(60_000).hex()
    place = tarred(write(tmp_path / "reports", made), mode)
    place.write_bytes(place.read_bytes()[: place.stat().st_size // 2])
    fleet = fleet_of(place)
    assert 0 < len([node.name for node in fleet.nodes if not node.problem]) < FOUR
    assert any("cut off" in node.problem for node in fleet.nodes)


def test_what_is_no_tar_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_bytes(b"\x00rubbish" * 100)
    assert ["damaged" in node.problem for node in fleet_of(tmp_path / "x.tar").nodes] == [True]


# Names and pages.


@tabled
def test_names_are_folded(names: list[str], told: list[str]) -> None:
    assert folded(names) == told


@tabled
def test_lists_are_unfolded(listed: str, names: list[str]) -> None:
    assert unfolded(listed) == names


@cases("listed", "n[1-", "n]", "n[]", "n[3-1]", "n[a-c]", "n[[1]]", "n[0-100000]", "r[1-999]n[1-999]", "n[1--2]")
def test_what_is_no_list_is_refused(listed: str) -> None:
    with pytest.raises(UsageError):
        unfolded(listed)


@drawing(st.sets(st.from_regex(r"[a-z]{1,2}[0-9]{1,4}(-ib)?", fullmatch=True), max_size=40))
@settings(max_examples=examples(100))
def test_what_is_folded_unfolds(names: set[str]) -> None:
    assert set(unfolded(",".join(folded(names)))) == names


REFUSED = "exit status 255: ssh: connect to host {} port 22: Connection refused"


def test_nodes_with_the_same_trouble_are_one_reason() -> None:
    problems = [(f"root@gpu{number}.site", REFUSED.format(f"gpu{number}.site")) for number in range(3)]
    problems += [("n1", "slurmstepd-n1: error: no such file"), ("n2", "slurmstepd-n2: error: no such file")]
    problems += [("n11", "n1 told something else"), ("10.0.0.1", REFUSED.format("10.0.0.1"))]
    problems += [("", "no name"), ("(", "it ( is a name")]
    assert by_reason(problems) == [
        (REFUSED.format("<node>"), ["root@gpu0.site", "root@gpu1.site", "root@gpu2.site", "10.0.0.1"]),
        ("slurmstepd-<node>: error: no such file", ["n1", "n2"]), ("it ( is a name", ["("]),
        ("n1 told something else", ["n11"]), ("no name", [""]),
    ]  # fmt: skip


def test_the_page_names_what_was_planted(fleet: Fleet, made: tuple[Path, Planted]) -> None:
    page = text.render(fleet, Options(verbose=True))
    for node, _, what, _ in made[1].differences:
        assert node in page
        assert what in page
    for node, subject in made[1].slow:
        assert f"{node} {subject}" in page


def test_large_answers_are_not_kept_by_the_hundred() -> None:
    coming = iter([NodeAnswer(f"n{number}", content=bytes(8 << 20)) for number in range(10)])
    assert [len(_batch(coming, 200)) for _ in range(4)] == [4, 4, 2, 0]


@cases("nodes, told", (1, "1 node, 4 GPUs: 1 pass"), (2, "2 nodes, 8 GPUs: 2 pass"))
def test_the_nodes_are_counted(tmp_path: Path, nodes: int, told: str) -> None:
    made = fleet_of(write(tmp_path, healthy(nodes)))
    assert told in text.render(made, Options())
    assert told in html.render(made, Options())


def test_a_gpu_stands_after_its_node(tmp_path: Path) -> None:
    made = healthy(4)
    made[1]["snapshot"]["gpus"]["items"][2]["vbios"] = "96.00.00.00.01"
    made[2]["host"] = "n[2]"
    made[2]["snapshot"]["gpus"]["items"][0]["vbios"] = made[2]["snapshot"]["gpus"]["items"][3]["vbios"] = "1.2"
    page = text.render(fleet_of(write(tmp_path, made)), Options())
    assert "WARN node00001 GPU 2: firmware, VBIOS: " in page
    assert 'WARN "n[2]" GPU 0+GPU 3: firmware, VBIOS: ' in page


def test_the_page_has_one_page(fleet: Fleet) -> None:
    page = text.render(fleet, Options())
    assert len(page.splitlines()) <= 70
    assert "more (-v shows them" in page
    assert max(map(len, page.splitlines())) <= 80


def test_hostile_names_do_not_reach_the_terminal(tmp_path: Path) -> None:
    made = healthy(FOUR + len(ATTACKS))
    for report, attack in zip(made, ATTACKS, strict=False):
        report["host"] = f"evil{attack}"
        report["snapshot"]["driver"]["release"] = f"1{attack}"
        report["snapshot"]["variables"]["values"][f"X{attack}"] = attack
    for number, report in enumerate(made):
        (tmp_path / f"{number}.json").write_text(json.dumps(report))
    for form in ("text", "jsonl", "html"):
        told = envcheck("fleet", "--reports", ".", "--format", form, "-v", cwd=tmp_path)
        assert told.status == 0, told.err
        assert told.out.count("evil") >= len(ATTACKS)
        assert "\x1b" not in told.out
        assert "\u202e" not in told.out
        assert "<script>alert" not in told.out or form != "html"


@settings(max_examples=examples(50), deadline=None, phases=[Phase.generate])
@drawing(hosts=st.lists(st.text(max_size=30) | st.sampled_from(HOSTILE), min_size=1, max_size=8))
def test_every_node_is_a_row_whatever_it_is_called(tmp_path_factory: pytest.TempPathFactory, hosts: list[str]) -> None:
    """Machines of one name, here with different GPUs, are a row each. Where a name is blank, the file's counts."""
    place = tmp_path_factory.mktemp("named")
    for number, (report, host) in enumerate(zip(healthy(len(hosts)), hosts, strict=True)):
        (place / f"file {number}.json").write_text(json.dumps({**report, "host": host}))
    fleet = fleet_of(place)
    called = [(host.strip() or f"file {number}")[:200] for number, host in enumerate(hosts)]
    files = [f" ({place}/file {number}.json)" if called.count(name) > 1 else "" for number, name in enumerate(called)]
    assert sorted(node.name for node in fleet.nodes) == sorted(map("".join, zip(called, files, strict=True)))
    assert fleet.head.superseded == 0
    assert record.read("".join(record.write(fleet)).encode()).head == fleet.head
    for line in text.render(fleet, Options(verbose=True)).splitlines():
        assert line.isprintable()


def test_reports_of_other_versions_and_files_that_are_none_are_rows(tmp_path: Path) -> None:
    made = healthy(6)
    made[0] |= {"schema_version": "1.99", "surprise": {"x": [1]}}
    made[1]["schema_version"], made[2]["schema_version"] = "2.0", "0.1"
    write(tmp_path, made)
    (tmp_path / "empty.json").write_text("")
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "dangling.json").symlink_to("/nowhere")
    (tmp_path / "endless.json").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "deep.json").write_text("[" * 200_000)
    (tmp_path / "wide.json").write_bytes(json.dumps(made[0]).encode("utf-16"))
    fleet = fleet_of(tmp_path)
    problems = {node.name: node.problem for node in fleet.nodes if node.problem}
    hosts = [report["host"] for report in made]
    unread = {"empty", "folder", "dangling", "endless", "pipe", "deep", "wide"}
    assert set(problems) == {hosts[1], hosts[2], *unread}
    assert "schema 2.0" in problems[hosts[1]]
    assert len(fleet.nodes) == len(made) + len(unread)
    assert not fleet.differences
    assert fleet.head.exit_code == 3


# The command line.


def test_reports_come_from_a_folder_a_pattern_a_file_and_stdin(tmp_path: Path) -> None:
    made = healthy(FOUR)
    write(tmp_path, made)
    one = f"{made[0]['host']}.json"
    indented = "".join(json.dumps(report, indent=2) + "\n" for report in made)
    lines = "".join(json.dumps(report) + "\n" for report in made)
    for place, given, nodes in (
        (".", "", FOUR),
        ("node*.json", "", FOUR),
        (one, "", 1),
        ("-", indented, FOUR),
        ("-", lines, FOUR),
        ("-", indented.replace("\n", ""), FOUR),
    ):
        told = envcheck("fleet", "--reports", place, "--format", "jsonl", cwd=tmp_path, stdin=given)
        assert json.loads(told.out.splitlines()[0])["nodes"] == nodes, told.err


def test_a_cut_off_report_on_stdin_is_a_row(tmp_path: Path) -> None:
    given = "".join(json.dumps(report, indent=2) + "\n" for report in healthy(FOUR))
    told = envcheck("fleet", "--reports", "-", cwd=tmp_path, stdin=given[:-50])
    assert "cut off" in told.out
    assert told.status == 3


def test_the_end_of_a_process_says_nothing(tmp_path: Path) -> None:
    """DuckDB's binding tells at the end of what is not freed; what is forked for a test does not get there."""
    told = envcheck("fleet", "--reports", ".", cwd=write(tmp_path, healthy(FOUR)), LANG="C.UTF-8")
    assert (told.status, told.err) == (0, "")


def test_what_stands_between_reports_on_stdin_costs_no_other_report(tmp_path: Path) -> None:
    """As in the logs of pods: a word on stderr, a line of a log, and a report that was cut off."""
    made = healthy(FOUR)
    whole, last = json.dumps(made[0]), json.dumps(made[3], indent=2)
    parts = ("2026-11-25 \x1b[31mstarting", whole, json.dumps(made[1])[:-50], last, "exec: envcheck: not found", whole)
    told = envcheck("fleet", "--reports", "-", "--format", "jsonl", cwd=tmp_path, stdin=("\n".join(parts) + "\n"))
    problems = {node.name: node.problem for node in record.read(told.out.encode()).nodes}
    cut = "no usable report: it is not JSON, or is cut off"
    assert problems.pop("report 1 on stdin").startswith(f"{cut}: 2026-11-25 ")
    assert problems.pop("report 3 on stdin") == cut
    assert problems.pop("report 5 on stdin") == f"{cut}: exec: envcheck: not found"
    assert problems == {"node00000": "", "node00003": ""}


@tabled
def test_wrong_usage(tmp_path: Path, arguments: tuple[str, ...], told: str) -> None:
    result = envcheck("fleet", *arguments, cwd=tmp_path)
    assert (result.status, result.out) == (2, "")
    assert told in result.err
    assert "Traceback" not in result.err


def test_an_answer_with_a_problem_is_a_row() -> None:
    nodes, _ = examine([NodeAnswer(node="gpu7", problem="no answer within 60 s")], JUDGE)
    assert [(node.name, node.problem) for node in nodes] == [("gpu7", "no answer within 60 s")]


# --- Several reports of one name: the newest of each machine counts, and no machine is lost -------------------------


def report(path: str, created: str = "", gpus: str = "", name: str = "localhost", **more: Any) -> Examined:
    """A report; each letter of ``gpus`` is a GPU."""
    facts = tuple(NodeGpu(name=f"GPU {place}", model="H200", uuid=uuid) for place, uuid in enumerate(gpus))
    return Examined(name=name, path=path, created=created, gpus=facts, **more)


def kept(*reports: Examined) -> list[str]:
    found, left_out = newest(reports)
    assert left_out == len(reports) - len(found)
    return [node.path for node in found]


@tabled
def test_the_newest_counts_whatever_its_time_zone(older: str, newer: str) -> None:
    assert kept(report("a", older, "xy"), report("b", newer, "xy")) == ["b"]
    if older != newer:  # of the same time, the last
        assert kept(report("b", newer, "xy"), report("a", older, "xy")) == ["b"]


def test_machines_of_one_name_are_rows_with_their_files() -> None:
    found, left_out = newest([report("a", gpus="x"), report("b", gpus="y"), report("c", gpus="x", name="other")])
    assert [node.name for node in found] == ["localhost (a)", "localhost (b)", "other"]
    assert left_out == 0


def test_a_machine_that_lost_or_got_a_gpu_is_the_same() -> None:
    first, second, third = (
        report(path, f"2026-01-01T00:00:0{number}Z", gpus)
        for number, (path, gpus) in enumerate([("a", "wx"), ("b", "xy"), ("c", "yz")])
    )
    assert kept(first, second, third) == ["c"]


def test_a_report_that_names_no_gpu_is_of_no_other_machine() -> None:
    assert kept(report("a", "2026-01-02T00:00:00Z"), report("b", "2026-01-01T00:00:00Z", "x")) == ["a"]
    assert kept(report("a"), report("b", problem="it printed no report")) == ["a"]


def test_as_many_machines_of_one_name_as_there_may_be_take_no_longer_than_others() -> None:
    assert len(newest([report(f"{number}", gpus=chr(0x4E00 + number)) for number in range(20_000)])[0]) == 20_000
