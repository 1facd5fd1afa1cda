"""What changed between reports: what counts, what is matched with what, and what is not concluded."""

import json
from typing import Any

import jsonschema
import msgspec
import pytest

from envcheck.cli.verbs.diff import without_secrets
from envcheck.diff.record import Change
from envcheck.diff.reports import Comparison, Diff, diff
from envcheck.errors import UsageError
from envcheck.model.checks import Check, Report, Subject
from envcheck.model.snapshot import (
    ApiResult,
    Conditions,
    Distribution,
    Driver,
    Environment,
    Framework,
    Gpu,
    Library,
    Listing,
    Measurement,
    Power,
    Span,
    Toolkit,
    Variables,
)
from envcheck.redact import redact
from envcheck.report import Options
from envcheck.report.answers.diff import render_diff as as_text
from envcheck.report.json import render as as_json
from envcheck.report.schema import schema
from tests.every import cases
from tests.known import known
from tests.report.examples import EXAMPLES, HOME, VENV, about, check, gpu, machine, report, torch_build
from tests.report.foreign import ATTACKS, carrying
from tests.test_machines import report_on

UUIDS = tuple(f"GPU-{number}0000000-93e1-6488-ffb4-e55ad89d9abc" for number in range(4))


def on(gpus: tuple[Gpu, ...], *checks: Check, torch: Framework | None = None, **more: Any) -> Report:
    host = more.pop("host", "node1")
    measurements = more.pop("measurements", ())
    return report(checks, machine(gpus, torch or torch_build(), **more), host=host, measurements=measurements)


def plain(number: int, **more: Any) -> Gpu:
    return gpu(number, **{"uuid": UUIDS[number]} | more)


def changes(first: Report, second: Report) -> list[Change]:
    found = diff([("a.json", first), ("b.json", second)])
    assert (found.result == "same") == (not found.comparisons[0].changes)
    return list(found.comparisons[0].changes)


def told(first: Report, second: Report) -> list[tuple[str, str, str | None, str | None]]:
    return [(change.section, change.what, change.before, change.after) for change in changes(first, second)]


def notes(first: Report, second: Report) -> list[str]:
    return [note.why for note in diff([("a", first), ("b", second)]).comparisons[0].not_compared]


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_report_is_the_same_as_itself(name: str) -> None:
    found = EXAMPLES[name]()
    assert told(found, found) == []
    assert told(redact(found), found) == []
    assert told(found, redact(found)) == []


def test_a_recorded_machine_is_the_same_as_its_redacted_self() -> None:
    found = report_on("h200x4")
    assert told(found, redact(found)) == []


def test_facts_of_a_gpu() -> None:
    before = on((plain(0, power=Power(limit=700.0), persistence_mode=True, serial="1"),))
    after = on((plain(0, power=Power(limit=500.0), persistence_mode=False, performance_state="P8"),))
    assert told(before, after) == [("gpus", "persistence mode", "yes", "no"), ("gpus", "power limit", "700 W", "500 W")]
    assert {change.subject for change in changes(before, after)} == {"GPU 0 at 0000:06:00.0"}


def test_a_gpu_is_gone_only_from_a_complete_list() -> None:
    before, after = on((plain(0), plain(1))), on((plain(0),))
    gone = [change for change in changes(before, after) if change.section == "gpus"]
    assert [(change.kind, change.what) for change in gone] == [("vanished", "GPU 1 at 0000:07:00.0")]
    assert [(change.kind, change.section) for change in changes(after, before)] == [
        ("changed", "driver"),
        ("appeared", "gpus"),
    ]
    partial = msgspec.structs.replace(known(after.snapshot), gpus=Listing(items=(plain(0),), complete=False))
    unsure = msgspec.structs.replace(after, snapshot=partial)
    assert "gpus" not in {change.section for change in changes(before, unsure)}
    assert "a list of GPUs is not complete: none is said to be gone or new" in notes(before, unsure)


def environment(*packages: str, key: str = VENV, complete: bool = True, **more: Any) -> dict[str, Any]:
    """Of packages as ``name version``."""
    listed = tuple(Distribution(name=name, version=version) for name, version in map(str.split, packages))
    frameworks = Listing(items=more.pop("frameworks", ()), complete=True)
    known = {"judged": True, "python": "3.12.3", "distributions_complete": complete, **more}
    found = Environment(key=key, distributions=listed, frameworks=frameworks, **known)
    return {"environments": Listing(items=(found,), complete=True)}


def about_torch(key: str, status: Any) -> Check:
    return check("driver-too-old", status, subject=Subject(kind="framework", key=f"{key}:torch", environment=key))


STARTED = ApiResult(call="cuInit", code=802, name="CUDA_ERROR_SYSTEM_NOT_READY")
OTHER_DRIVER = Driver(installed=True, release="590.1", cuda="13.0", cuda_init=STARTED, cuda_devices=1)
OLD_TORCH = Framework(name="torch", version="2.6.0+cu126", cuda="12.6")
NEW_TORCH = Framework(name="torch", version="2.7.0+cu128", cuda="12.8")
ONE, TWO, ELSEWHERE, ECC = plain(0), plain(1), "/srv/other/.venv", "uncorrected-ecc"
TURNED = (plain(0, uuid=UUIDS[1], vbios="2"), plain(1, uuid=UUIDS[0], vbios="1"))
MOVED = plain(1, uuid=UUIDS[0])


def with_libraries(version: str, value: str) -> Report:
    places: Any = (("/usr/lib/libcudnn.so.9", "system"), ("/e/libcudnn.so.9", "wheel"))
    copies = (Library(path=path, family="cudnn", on_disk=version, origin=origin) for path, origin in places)
    return on(
        (), toolkits=Listing(items=(Toolkit(path="/usr/local/cuda", version=version),), complete=True),
        libraries=Listing(items=tuple(copies), complete=True),
        variables=Variables(values={"CUDA_VISIBLE_DEVICES": value, "RANK": value}, complete=True),
    )  # fmt: skip


@cases("about, before, after, changed",
    ("the driver", on((ONE,)), on((ONE,), driver=OTHER_DRIVER),
     [("driver", "release", "580.159.04", "590.1"), ("driver", "cuInit", "ok", "802 CUDA_ERROR_SYSTEM_NOT_READY")]),
    ("GPUs are matched by UUID wherever they are", on((plain(0, vbios="1"), plain(1, vbios="2"))), on(TURNED), []),
    ("else by bus id, and then the GPU is another", on((ONE, TWO)), on((ONE, plain(1, uuid=UUIDS[2]))),
     [("gpus", "UUID", UUIDS[1], UUIDS[2])]),
    ("UUIDs of two machines", on((ONE,)), on((plain(0, uuid=UUIDS[3]),), host="node2"), []),
    ("UUIDs of one machine", on((ONE,)), on((plain(0, uuid=UUIDS[3]),)), [("gpus", "UUID", UUIDS[0], UUIDS[3])]),
    ("distributions and frameworks",
     on((), **environment("numpy 1.26", "torch 2.6.0", "old 1", frameworks=(OLD_TORCH,))),
     on((), **environment("numpy 2.0", "torch 2.7.0", "new 2", frameworks=(NEW_TORCH,))),
     [("environments", "numpy", "1.26", "2.0"), ("environments", "torch", "2.6.0+cu126", "2.7.0+cu128"),
      ("environments", "old", "1", None), ("environments", "new", None, "2"),
      ("environments", "CUDA of torch", "12.6", "12.8")]),
    ("a distribution is not gone from a list that is not complete", on((), **environment("old 1")),
     on((), **environment(complete=False)), []),
    ("the judged environments are matched wherever they lie",
     on((), about_torch(VENV, "fail"), **environment("a 1")),
     on((), about_torch(ELSEWHERE, "fail"), **environment("a 2", key=ELSEWHERE)), [("environments", "a", "1", "2")]),
    ("toolkits, libraries and variables", with_libraries("12.4", "0"), with_libraries("13.0", "1"),
     [("toolkits", "/usr/local/cuda", "12.4", "13.0"), ("libraries", "/usr/lib/libcudnn.so.9", "12.4", "13.0"),
      ("variables", "CUDA_VISIBLE_DEVICES", "0", "1")]),
    ("checks that came, went and changed",
     on((ONE,), check("gpu-lost"), check(ECC, subject=about(ONE)), check("nouveau-loaded")),
     on((ONE,), check("gpu-lost", "warn"), check(ECC, subject=about(ONE)), check("mig-odd", "note")),
     [("verdict", "verdict", "pass", "warn"), ("checks", "gpu-lost@machine", "pass", "warn"),
      ("checks", "nouveau-loaded@machine", "pass", None), ("checks", "mig-odd@machine", None, "note")]),
    ("checks on a GPU that moved", on((ONE,), check("gpu-lost", subject=about(ONE))),
     on((MOVED,), check("gpu-lost", subject=about(MOVED))), []),
)  # fmt: skip
def test_what_changed(about: str, before: Report, after: Report, changed: list[tuple[str, ...]]) -> None:
    assert told(before, after) == changed


def test_a_list_of_distributions_that_is_not_complete_is_said_to_be() -> None:
    before, after = on((), **environment("old 1")), on((), **environment(complete=False))
    assert notes(before, after) == [f"{VENV}: a list of distributions is not complete"]


def figure(value: float, *, uuid: str = UUIDS[0], samples: tuple[float, ...] = (), unit: str = "B/s") -> Measurement:
    return Measurement(name="device-memory-copy", gpu=uuid, value=value, unit=unit, samples=samples, method="kernel")


def measured(*figures: Measurement, gpus: tuple[Gpu, ...] | None = None) -> Report:
    return on(gpus or (plain(0),), measurements=figures)


@cases("before, after, ratio",
    (figure(4e12), figure(3.9e12), None), (figure(4e12), figure(3.7e12), 0.925), (figure(3.7e12), figure(4e12), 1.081),
    (figure(4e12, samples=(3.7e12, 4e12, 4.3e12)), figure(3.7e12), None),
    (figure(4e12, samples=(3.7e12, 4e12, 4.3e12)), figure(3e12), 0.75), (figure(0.0), figure(4e12), None),
)  # fmt: skip
def test_figures_beyond_their_spread(before: Measurement, after: Measurement, ratio: float | None) -> None:
    found = changes(measured(before), measured(after))
    assert [change.ratio for change in found] == ([pytest.approx(ratio, abs=1e-3)] if ratio else [])
    assert [change.faster for change in found] == ([ratio > 1] if ratio else [])


def test_less_of_a_time_is_faster() -> None:
    (found,) = changes(measured(figure(2e-6, unit="s")), measured(figure(1e-6, unit="s")))
    assert (found.faster, found.before, found.after) == (True, "2 us", "1 us")
    assert "50% less, faster" in as_text(
        diff([("a", measured(figure(2e-6, unit="s"))), ("b", measured(figure(1e-6, unit="s")))]), Options()
    )


def test_figures_follow_their_gpu() -> None:
    moved = measured(figure(3e12, uuid=UUIDS[3]), gpus=(plain(0, uuid=UUIDS[3]),))
    found = [change for change in changes(measured(figure(4e12)), moved) if change.section == "measurements"]
    assert [(change.subject, change.ratio) for change in found] == [("GPU 0 at 0000:06:00.0", 0.75)]


def test_what_one_report_alone_knows_is_no_difference() -> None:
    bare = on((plain(0),))
    assert told(measured(figure(4e12)), bare) == []
    assert notes(measured(figure(4e12)), bare) == ["1 figure is only in the first report"]
    assert bare.snapshot is not None
    blind = msgspec.structs.replace(bare, snapshot=msgspec.structs.replace(bare.snapshot, gpus=None, driver=None))
    assert told(bare, blind) == []
    assert notes(bare, blind) == ["only the first report looked at it"] * 2


def test_copies_between_gpus_follow_both() -> None:
    def of(gpus: tuple[Gpu, ...], value: float) -> Report:
        pair = msgspec.structs.replace(figure(value, uuid=gpus[0].uuid or ""), name="peer-to-peer", peer=gpus[1].uuid)
        return measured(pair, gpus=gpus)

    before, after = (plain(0), plain(1)), (plain(0, uuid=UUIDS[2]), plain(1, uuid=UUIDS[3]))
    found = diff([("a", of(before, 4e11)), ("b", of(after, 2e11))]).comparisons[0]
    assert [(each.before, each.after, each.changed) for each in found.figures] == [(4e11, 2e11, True)]


CALM = (4.00e12, 4.01e12, 3.995e12, 4.005e12)


def history(*values: float, **more: Any) -> list[tuple[str, Report]]:
    """Reports of one machine, a day apart."""
    made = [measured(figure(value, **more)) for value in values]
    return [
        (f"{day}.json", msgspec.structs.replace(report, created=f"2026-11-{day:02}T00:00:00+00:00"))
        for day, report in enumerate(made, 1)
    ]


def against(base: list[tuple[str, Report]], last: Report) -> Comparison:
    (found,) = diff([("today.json", last)], base).comparisons
    return found


def test_every_figure_is_compared_and_says_whether_it_changed() -> None:
    (same,) = diff([("a", measured(figure(4e12))), ("b", measured(figure(3.9e12)))]).comparisons
    (one,) = same.figures
    assert (one.before, one.after, one.changed, one.runs, one.tolerated) == (4e12, 3.9e12, False, 1, 0.05)
    assert same.changes == ()
    (other,) = diff([("a", measured(figure(4e12))), ("b", measured(figure(3e12)))]).comparisons
    assert [each.changed for each in other.figures] == [True]
    assert other.changes[0].tolerated == 0.05


def test_several_runs_find_what_one_tolerates() -> None:
    now = measured(figure(3.88e12))
    assert not against(history(4e12), now).figures[0].changed
    found = against(history(*CALM), now)
    assert found.figures[0].changed
    assert (found.first, found.second, found.base) == (3, 4, (0, 1, 2, 3))
    assert [change.before for change in found.changes] == ["4.00 TB/s (median of 4 runs, 4.00 TB/s to 4.01 TB/s)"]


def test_runs_that_vary_tolerate_what_calm_ones_do_not() -> None:
    assert not against(history(4.0e12, 4.2e12, 3.8e12, 4.1e12), measured(figure(3.7e12))).figures[0].changed
    assert against(history(*CALM), measured(figure(3.7e12))).figures[0].changed


def test_the_newest_run_gives_the_facts_whatever_the_order() -> None:
    runs = history(*CALM)
    old = msgspec.structs.replace(on((plain(0, vbios="1"),)), created="2025-01-01T00:00:00+00:00")
    found = diff([("new.json", on((plain(0, vbios="2"),)))], [*runs[::-1], ("old.json", old)])
    assert [report.name for report in found.reports] == ["old.json", "1.json", "2.json", "3.json", "4.json", "new.json"]
    assert [(each.first, each.second) for each in found.comparisons] == [(4, 5)]
    assert not [change for change in found.comparisons[0].changes if change.what == "VBIOS" and change.before == "1"]


def test_figures_of_a_gpu_that_others_used_are_left_out() -> None:
    busy = msgspec.structs.replace(figure(2e12), conditions=Conditions(source="nvml", utilisation_before=97.0))
    found = diff([("a", measured(figure(4e12))), ("b", measured(busy))]).comparisons[0]
    assert (found.changes, found.figures) == ((), ())
    assert [note.why for note in found.not_compared] == [
        "1 figure is only in the first report",
        "1 figure is left out: another program used the GPU (a kernel ran 97% of the time)",
    ]


def ran(value: float, **more: Any) -> Measurement:
    found = Conditions(source="nvml", sm_clock=Span(source="nvml", low=1e9, median=1.98e9, high=1.98e9), **more)
    return msgspec.structs.replace(figure(value), conditions=found, detail="NVRTC 13.0")


def test_what_differs_in_the_conditions_is_said() -> None:
    slow = msgspec.structs.replace(ran(3e12, power_limit=500.0), detail="NVRTC 13.1")
    (change,) = changes(measured(ran(4e12, power_limit=700.0)), measured(slow))
    assert change.why == ("power limit 500 W, before 700 W", "NVRTC 13.1, before NVRTC 13.0")
    (back,) = changes(measured(slow), measured(ran(4e12, power_limit=700.0)))
    assert back.why == ("before: power limit 500 W, now 700 W", "NVRTC 13.0, before NVRTC 13.1")
    (unknown,) = changes(measured(ran(4e12)), measured(ran(3e12)))
    assert unknown.why == ()


def test_the_page_of_figures() -> None:
    slow = ran(3e12, power_limit=500.0)
    same = msgspec.structs.replace(ran(1e12), name="l2-read")
    before, after = measured(ran(4e12, power_limit=700.0), same), measured(slow, same)
    found = diff([("a.json", before), ("b.json", after)])
    page = as_text(found, Options())
    assert page.splitlines()[6:] == [
        "Measurements beyond their noise",
        "  GPU 0 at 0000:06:00.0",
        "    Device memory copy                4.00 TB/s → 3.00 TB/s  (25% less, slower)",
        "      tolerated: 5.0%; power limit 500 W, before 700 W",
        "",
        "1 of 2 figures unchanged within the noise of the runs (-v lists them)",
    ], page
    assert "L2 read" not in page
    assert "1.00 TB/s → 1.00 TB/s  (+0.0% of 5%)" in as_text(found, Options(verbose=True))
    assert "unchanged" not in as_text(found, Options(quiet=True))
    VALIDATOR.validate(json.loads(as_json(found, Options())))


def test_several_are_each_compared_with_the_first() -> None:
    found = diff([("a", on((plain(0),))), ("b", on((plain(0, vbios="2"),))), ("c", on((plain(0, vbios="3"),)))])
    assert [(each.first, each.second) for each in found.comparisons] == [(0, 1), (0, 2)]
    assert [report.name for report in found.reports] == ["a", "b", "c"]


def test_wrong_use() -> None:
    with pytest.raises(UsageError, match="name two or more"):
        diff([("a", EXAMPLES["healthy"]())])
    empty = msgspec.structs.replace(EXAMPLES["healthy"](), snapshot=None, checks=())
    with pytest.raises(UsageError, match="b has neither facts nor checks"):
        diff([("a", EXAMPLES["healthy"]()), ("b", empty)])


VALIDATOR = jsonschema.Draft202012Validator(schema("diff"))


def pairs() -> list[tuple[str, str]]:
    names = list(EXAMPLES)
    return list(zip(names, [*names[1:], names[0]], strict=True))


@pytest.mark.parametrize(("first", "second"), pairs())
def test_json_fits_its_schema_and_reads_back(first: str, second: str) -> None:
    found = diff([(first, EXAMPLES[first]()), (second, EXAMPLES[second]())])
    text = as_json(found, Options())
    VALIDATOR.validate(json.loads(text))
    assert json.loads(text)["result"] == found.result
    if "hostile" not in (first, second):
        assert msgspec.json.decode(text, type=Diff) == found


@pytest.mark.parametrize(("first", "second"), pairs())
@cases("width", 40, 80)
def test_the_page_holds_its_width(first: str, second: str, width: int) -> None:
    page = as_text(diff([(first, EXAMPLES[first]()), (second, EXAMPLES[second]())]), Options(width=width, home=HOME))
    assert page.startswith("DIFFERENT  ")
    if "hostile" not in (first, second):
        assert max(map(len, page.splitlines())) <= width
    assert all(character.isprintable() or character == "\n" for character in page)


@pytest.mark.parametrize("attack", ATTACKS)
def test_hostile_names_show_as_text(attack: str) -> None:
    found = diff([(attack, carrying(EXAMPLES["driver-too-old"](), attack)), ("b", EXAMPLES["healthy"]())])
    assert all(character.isprintable() or character == "\n" for character in as_text(found, Options()))
    assert as_text(found, Options(ascii=True)).isascii()


def test_the_page() -> None:
    before = on((plain(0),), check("gpu-lost"), *(check(f"rule-{number}") for number in range(20)))
    after = on((plain(0, vbios="9"),), check("gpu-lost", "fail"), driver=Driver(installed=True, release="590.1"))
    found = diff([("a.json", before), ("b.json", after)])
    assert as_text(found, Options()).splitlines()[6:] == [
        "Verdict",
        "  verdict                           pass → fail",
        "",
        "Driver",
        "  release                           580.159.04 → 590.1",
        "",
        "Checks",
        "  gpu-lost@machine                  pass → fail",
        "  0 checks added and 20 removed, all passed or skipped (-v lists them)",
    ]
    assert "rule-19@machine" in as_text(found, Options(verbose=True))
    assert as_text(diff([("a", before), ("b", before)]), Options()).startswith("SAME  no difference in shared facts\n")


def test_secrets_never_show_and_are_no_difference_by_themselves() -> None:
    first, second = (
        on((plain(0),), variables=Variables(source="process", values={"HF_TOKEN": value, "A": value}))
        for value in ("hf_" + "a1B2" * 9, "hf_" + "c3D4" * 9)
    )
    found = diff([("a.json", first), ("b.json", second)])
    assert [change.what for change in found.comparisons[0].changes] != []
    shown = without_secrets(found)
    assert (shown.result, shown.comparisons[0].changes) == ("same", ())
    third = on((plain(0),), variables=Variables(source="process", values={"HF_TOKEN": "", "A": "x"}))
    text = as_json(without_secrets(diff([("a.json", first), ("c.json", third)])))
    assert "***" in text
    assert "a1B2" not in text
