"""What follows from a text is the same in every form that people paste; what a text only asks causes nothing."""

from __future__ import annotations

from benchmarks.accuracy import judge
from envcheck.compat.load import load_matrix
from envcheck.rules.engine.cause import primary
from envcheck.rules.engine.evaluate import framework_importance
from tests.every import every
from tests.importers.forms import FORMS
from tests.importers.layouts import CASES, LAYOUTS


@every(sorted(FORMS))
def test_the_cause_that_follows_from_a_form(name: str) -> None:
    text, wanted = FORMS[name]
    snapshot, checks = judge(text)
    weights = framework_importance(snapshot, load_matrix()) if snapshot else {}
    for importance in ({}, weights):
        cause = primary(checks, importance)
        assert (cause.rule if cause else "none") in wanted


@every((layout, case) for layout in LAYOUTS for case in CASES)
def test_the_cause_is_the_same_in_every_layout(layout: str, case: str) -> None:
    facts, wanted = CASES[case]
    _, checks = judge(LAYOUTS[layout](facts))
    cause = primary(checks)
    assert (cause.rule if cause else "none") == wanted


MODELS = {
    "8.9": ("4090 laptop", "4090RTX", "GeForce 4090", "4090 24GB", "RTX 6000 Ada", "A6000 Ada", "RTX 4080S"),
    "12.0": ("5090 32GB", "rtx5070ti", "RTX 6000 Pro Blackwell", "RTX PRO 6000", "RTX 5080 Founders Edition"),
    "12.1": ("DGX Spark", "GB10"),
    "11.0": ("Jetson AGX Thor",),
    "9.0": ("H100 NVL", "H100 PCIe", "H20", "GH200"),
    "8.7": ("Jetson Orin Nano", "Orin NX 16GB", "Jetson AGX Orin"),
    "8.6": ("A10", "A40", "RTX A5000", "RTX 3070 Mobile / Max-Q", "3060 Ti"),
    "7.5": ("T4", "Quadro RTX 3000 Mobile"),
    "6.1": ("P40", "GTX1080ti", "Titan X (Pascal)", "MX150"),
    "5.0": ("GeForce 940MX",),
    "3.7": ("K80",),
}
"""Compute capability → models as people write them."""


@every(
    (form, said, capability)
    for form in ("GPU: {}", "I have a {} and linux")
    for capability, names in MODELS.items()
    for said in names
)
def test_a_gpu_under_the_names_that_people_give_it(form: str, said: str, capability: str) -> None:
    snapshot, _ = judge(form.format(said))
    assert snapshot is not None
    assert snapshot.gpus is not None
    assert [gpu.compute_capability for gpu in snapshot.gpus.items] == [capability]


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
