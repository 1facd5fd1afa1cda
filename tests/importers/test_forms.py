"""What follows from a text is the same in every form that people paste; what a text only asks causes nothing."""

from __future__ import annotations

from benchmarks.accuracy import judge
from envcheck.rules.engine.cause import primary
from tests.every import every
from tests.importers.forms import FORMS
from tests.importers.layouts import CASES, LAYOUTS


@every(sorted(FORMS))
def test_the_cause_that_follows_from_a_form(name: str) -> None:
    text, wanted = FORMS[name]
    _, checks = judge(text)
    cause = primary(checks)
    assert (cause.rule if cause else "none") in wanted


@every((layout, case) for layout in LAYOUTS for case in CASES)
def test_the_cause_is_the_same_in_every_layout(layout: str, case: str) -> None:
    facts, wanted = CASES[case]
    _, checks = judge(LAYOUTS[layout](facts))
    cause = primary(checks)
    assert (cause.rule if cause else "none") == wanted


QUIET = (
    "Does torch 2.5.1 support the RTX 5090?",
    "If you use an RTX 5090 with torch 2.5.1+cu124 it fails.",
    "It was tested on RTX 5090 and torch 2.5.1.",
    "My colleague has an RTX 5090 and torch 2.5.1+cu124.",
    "flash-attn requires torch 2.5.1 and an RTX 5090 or newer",
    "I replaced my GTX 1080 by an RTX 4090, torch 2.8.0+cu128",
    "torch 2.4.0 before, torch 2.8.0 now, torchvision 0.23.0",
)


@every(QUIET)
def test_what_is_no_fact_about_this_machine_causes_nothing(text: str) -> None:
    _, checks = judge(text)
    assert primary(checks) is None
