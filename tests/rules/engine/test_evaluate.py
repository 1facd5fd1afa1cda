"""The evaluator: what a rule is asked, and what it adds to an outcome."""

from __future__ import annotations  # rules read the annotations of their functions as they are written

import re
from pathlib import Path

import pytest

import envcheck.rules
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.relations.fit import Fit
from envcheck.model.checks import Check, Confidence, Fix, Source, Status
from envcheck.model.snapshot import Driver, Gpu, Listing, ProbeRun, Snapshot
from envcheck.rules.api import Facts, Outcome, Rule, incompatible, rule
from envcheck.rules.engine.evaluate import evaluate
from tests.every import cases
from tests.known import known
from tests.rules.machines import ALL, DOCKER, but, eight, gpus, h200, kernel, machine, on_the_bus

MEND = Fix(text="mend it")
OTHER = Fix(text="mend it otherwise")


def declared(
    status: Status = "fail", fixes: tuple[Fix, ...] = (), sources: tuple[Source, ...] = (), **how: object
) -> Rule:
    """A rule on the machine that always concludes the same."""

    def always_so(_snapshot: Snapshot, _facts: Facts) -> Outcome | None:
        """It is so."""
        return Outcome(status=status, title="so", fixes=fixes, sources=sources)

    return rule(layer="driver", scope="node", **how)(always_so)  # type: ignore[arg-type]


def put(found: Rule, snapshot: Snapshot | None = None) -> Check | None:
    return next(iter(evaluate(Facts(snapshot or Snapshot(), load_matrix()), [found], ALL)), None)


def test_a_question_that_does_not_arise_is_not_missing_its_facts() -> None:
    needs = ("driver.release",)
    assert put(declared(needs=needs, arises=lambda *_: False)) is None
    asked = known(put(declared(needs=needs, arises=lambda *_: True)))
    assert asked.status == "skipped"


@cases("status, fixes", ("fail", (MEND,)), ("warn", (MEND,)), ("note", ()), ("pass", ()))
def test_the_rules_remedy_stands_in_for_a_finding_without_fixes(status: Status, fixes: tuple[Fix, ...]) -> None:
    found = known(put(declared(status, remedy=lambda _: (MEND,))))
    assert found.fixes == fixes
    own = known(put(declared(status, (OTHER,), remedy=lambda _: (MEND,))))
    assert own.fixes == (OTHER,)


PAGES = (
    Source(title="A page", address="https://example.org/a"),
    Source(title="A page with a long address", address="https://example.org/b"),
)


@pytest.fixture
def _page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page of the rule that always concludes the same."""
    monkeypatch.setattr("envcheck.rules.documentation.folder", {"docs/rules": tmp_path}.__getitem__)
    links = "".join(f"- [{page.title}]({page.address})\n" for page in PAGES)
    (tmp_path / "always-so.md").write_text(f"# `always-so`\n\nIt is so.\n\n## Sources\n\n{links}")


@pytest.mark.usefixtures("_page")
@cases("status, cited", ("fail", PAGES), ("note", PAGES), ("pass", ()), ("unknown", ()))
def test_a_finding_cites_the_pages_of_its_rule(status: Status, cited: tuple[Source, ...]) -> None:
    found = known(put(declared(status)))
    assert found.sources == cited


PACKAGE = Source(title="torch's metadata", address="PyPI torch")
ROW = Source(title="A row of the matrix", address="https://example.org/row")


@pytest.mark.usefixtures("_page")
@cases("own, cited", ((ROW,), (ROW,)), ((PACKAGE, ROW), (PACKAGE, ROW)), ((PACKAGE,), (PACKAGE, *PAGES)))
def test_a_finding_that_cites_no_page_to_open_cites_its_rules(
    own: tuple[Source, ...], cited: tuple[Source, ...]
) -> None:
    found = known(put(declared(sources=own)))
    assert found.sources == cited


def test_a_missing_fact_names_the_probe_that_owes_it() -> None:
    died = ProbeRun(name="nvml", status="timed-out", detail="no answer in 13 s", fills=("driver.release",))
    found = known(put(declared(needs=("driver.release",)), Snapshot(driver=Driver(), runs=(died,))))
    assert (found.status, found.missing[0].probe) == ("unknown", "nvml")
    assert "no answer in 13 s" in found.message


def own(snapshot: Snapshot) -> list[int | None]:
    return [gpu.minor for gpu in Facts(snapshot, load_matrix()).own_gpus]


def unlisted(number: int, kernel_driver: str = "nvidia") -> Gpu:
    return but(on_the_bus(h200(number), kernel_driver), minor=number)


@cases(
    "snapshot, numbers",
    (eight(), list(range(8))),
    (machine(h200(0), unlisted(1)), [0, 1]),
    (machine(h200(0), unlisted(1, "vfio-pci")), [0]),
    (machine(h200(0), unlisted(1), platform=DOCKER, kernel=kernel(1)), [0]),
    (machine(h200(0), unlisted(1), platform=DOCKER, kernel=kernel(2)), [0, 1]),
    (machine(unlisted(0), unlisted(1), platform=DOCKER, kernel=kernel(0)), [0, 1]),
)
def test_a_systems_own_gpus(snapshot: Snapshot, numbers: list[int]) -> None:
    assert own(snapshot) == numbers


def test_usable_gpus_are_those_that_cuda_enumerates() -> None:
    facts = Facts(but(machine(), gpus=gpus(h200(0, cuda_ordinal=None), h200(1, cuda_ordinal=0))), load_matrix())
    assert [gpu.minor for gpu in facts.usable_gpus] == [1]
    nobody_asked = Facts(Snapshot(gpus=Listing(items=(unlisted(0), unlisted(1, "vfio-pci")))), load_matrix())
    assert [gpu.minor for gpu in nobody_asked.usable_gpus] == [0]


@cases("worst", "note", "warn", "fail")
@cases("confidence", "weak", "medium", "high")
def test_a_weak_row_weakens_a_fail_and_makes_nothing_worse(worst: Status, confidence: Confidence) -> None:
    fit = Fit(verdict="incompatible", reason="it does not", confidence=confidence)
    outcome = incompatible("x", fit, evidence=(), fixes=(), worst=worst)
    assert outcome.status == ("warn" if (worst, confidence) == ("fail", "weak") else worst)


@cases("length", 120, 121, 2000)
def test_every_title_is_shortened_where_checks_are_made(length: int) -> None:
    """Whatever rule it is from: rules write titles whole."""

    @rule(layer="gpu", scope="node")
    def long_title(_snapshot: Snapshot, _facts: Facts) -> Outcome:
        """It has a long title."""
        return Outcome(status="warn", title="x" * length)

    (check,) = evaluate(Facts(Snapshot(), load_matrix()), [long_title], frozenset({"node"}))
    assert check.title == ("x" * 120 if length == 120 else "x" * 119 + "…")
    cut = re.compile(r"title=.*\[:\s*\w+\]|_TITLE\b")
    modules = Path(envcheck.rules.__file__).parent.glob("*.py")
    assert [path.name for path in modules if cut.search(path.read_text())] == []
