"""A plan and ``matrix check`` give one answer about the same releases: neither passes what the other refuses."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

from envcheck.compat.answer import ask
from envcheck.compat.wheels import published
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.relations.torch import tag_of
from envcheck.model.components import parse_components
from tests.plans.reading import judge, plan

MATRIX = load_matrix()
GPUS = ("V100", "T4", "A100", "RTX 3090", "RTX 4090", "L4", "H100", "B200", "RTX 5090", "GTX 1080 Ti")
DRIVERS = ("470.57.02", "525.60.13", "535.183.01", "550.54.14", "570.86.10", "580.65.06", "590.48.01")
BESIDE = (
    "vllm", "flash-attn", "xformers", "tensorflow", "bitsandbytes", "deepspeed", "triton", "torchvision", "torchaudio",
    "transformer-engine", "sglang", "lmdeploy", "numba", "transformers", "numpy",
)  # fmt: skip
PLATFORM = "os==linux,machine==x86_64"
SETS = 2000 if os.environ.get("ENVCHECK_THOROUGH") else 40


def _sets() -> Iterator[tuple[str, str, list[str]]]:
    chance = random.Random(20261128)
    for _ in range(SETS):
        torch = chance.choice(MATRIX.torch[-40:])
        tags = [f"+{tag_of(build.cuda)}" for build in torch.builds if (build.os, build.machine) == ("linux", "x86_64")]
        pins = [f"torch=={torch.version}{chance.choice(['', *tags])}"]
        beside = chance.sample(BESIDE, chance.choice((0, 1, 1, 2)))
        pins += [f"{name}=={chance.choice(published(MATRIX, name)[-25:])}" for name in beside]
        yield chance.choice(GPUS), chance.choice(DRIVERS), pins


def test_no_plan_passes_what_a_question_refuses_or_the_reverse(tmp_path: Path) -> None:
    for gpu, driver, pins in _sets():
        machine = f"gpu=={gpu},driver=={driver}"
        asked = parse_components(",".join((*pins, machine, PLATFORM)))
        answer = ask(MATRIX, asked, suggest=False)
        tag = pins[0].partition("+")[2]
        index = f"--extra-index-url https://download.pytorch.org/whl/{tag}\n" if tag else ""
        report = judge(plan(tmp_path, requirements__txt=index + "\n".join(pins)), machine)
        if tag and answer.verdict == "incompatible" and report.verdict == "pass":
            served = [
                f"{pin}+{tag}" if MATRIX.has_trait(pin.partition("==")[0], "on-torch-index") else pin
                for pin in pins[1:]
            ]
            answer = ask(MATRIX, parse_components(",".join((pins[0], *served, machine, PLATFORM))), suggest=False)
        told = (answer.verdict, report.verdict)
        assert told not in (("incompatible", "pass"), ("compatible", "fail")), (
            machine,
            pins,
            answer.reasons[0].message,
        )
