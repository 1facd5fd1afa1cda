"""``matrix check``, ``check --assume`` and ``check --plan`` give one answer about the same components."""

import os
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from envcheck.compat.answer import ask
from envcheck.compat.devices import is_for_a_part
from envcheck.compat.reading import library_of
from envcheck.compat.wheels import published
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.relations.fit import FitVerdict
from envcheck.knowledge.relations.torch import tag_of
from envcheck.model.checks import Report
from envcheck.model.components import parse_components
from envcheck.model.snapshot import Snapshot
from envcheck.pipeline.session import Request, judge
from tests.plans.reading import plan

MATRIX = load_matrix()
GPUS = ("V100", "T4", "A100", "RTX 3090", "RTX 4090", "L4", "H100", "B200", "RTX 5090", "GTX 1080 Ti")
DRIVERS = ("470.57.02", "525.60.13", "535.183.01", "550.54.14", "570.86.10", "580.65.06", "590.48.01")
BESIDE = (
    "vllm", "flash-attn", "xformers", "tensorflow", "bitsandbytes", "deepspeed", "triton", "torchvision", "torchaudio",
    "transformer-engine", "sglang", "lmdeploy", "numba", "transformers", "numpy", "onnxruntime-gpu", "cupy-cuda12x",
    "jax", "nvidia-nccl-cu12", "nvidia-cudnn-cu12",
)  # fmt: skip
PLATFORM = "os==linux,machine==x86_64"
SETS = 2000 if os.environ.get("ENVCHECK_THOROUGH") else 200

OPEN = (
    r"Whether \S+ \S+ can be built is not known",  # by pip, which a question and an installed package do not ask
    r"Which release of torch would be installed is open",  # which none of the components names
    r"Nothing in the plan is known to bring the \w+ that",  # of the machine's libraries a question takes any for given
    r"\S+ \S+ is asked for without GPU support",  # the extra, which no question names
    r"The plan names nothing that can be judged|Whether \S+==\S+ fits is not known",  # nothing that needs a GPU
    r".*programs use it for the CPU as well",  # what the package is for
)
"""What a plan, or what is assumed to be installed, leaves open or refuses for more than that the components fit."""


class Asked(NamedTuple):
    """A generated set."""

    machine: str
    pins: list[str]

    @property
    def names(self) -> list[str]:
        return [pin.partition("==")[0] for pin in self.pins]

    @property
    def tag(self) -> str:
        return self.pins[0].partition("+")[2]


def _sets() -> Iterator[Asked]:
    chance = random.Random(20261128)
    for _ in range(SETS):
        torch = chance.choice(MATRIX.torch[-40:])
        tags = [f"+{tag_of(build.cuda)}" for build in torch.builds if (build.os, build.machine) == ("linux", "x86_64")]
        pins = [f"torch=={torch.version}{chance.choice(['', *tags])}"]
        beside = chance.sample(BESIDE, chance.choice((0, 1, 1, 2)))
        pins += [f"{name}=={chance.choice(published(MATRIX, name)[-25:])}" for name in beside]
        pins = pins[1:] if pins[1:] and chance.random() < 0.15 else pins
        python = f",python==3.{chance.choice((9, 10, 11, 12))}" if chance.random() < 0.3 else ""
        yield Asked(f"gpu=={chance.choice(GPUS)},driver=={chance.choice(DRIVERS)}{python}", pins)


def _answers(asked: Asked) -> set[FitVerdict]:
    """What ``matrix check`` says. A plan is not asked about what the matrix relates to nothing else that is named, nor
    about libraries and compilers beside a PyTorch that computes without them; and an index that it names has builds of
    its own.
    """
    components = parse_components(",".join((*asked.pins, asked.machine, PLATFORM)))
    answer = ask(MATRIX, components, suggest=False)
    found = {answer.verdict}
    left_out = {
        match[1] for reason in answer.reasons for match in re.finditer(r"([\w-]+)==\S+ to anything", reason.message)
    }
    if "torch" in asked.names:
        left_out |= {name for name in asked.names if library_of(MATRIX, name) or is_for_a_part(MATRIX, "torch", name)}
    left = [each for each in components if each.name not in left_out]
    if left_out and {each.name for each in left} & {*asked.names}:
        found.add(ask(MATRIX, left, suggest=False).verdict)
    served = {name for name in asked.names[1:] if asked.tag and MATRIX.has_trait(name, "on-torch-index")}
    if served:
        built = [f"{each}+{asked.tag}" if each.name in served else str(each) for each in left]
        found.add(ask(MATRIX, parse_components(",".join(built)), suggest=False).verdict)
    return found


def _said(report: Report) -> FitVerdict | None:
    """A report in the words of a question; None for a warning, which is of what a question may admit or refuse, and
    for what it does not ask.
    """
    told = [f"{check.title} {check.message}" for check in report.checks if check.status in ("fail", "unknown")]
    if report.verdict == "warn" or any(re.match(pattern, title) for title in told for pattern in OPEN):
        return None
    words: dict[str, FitVerdict] = {"fail": "incompatible", "pass": "compatible"}
    return words.get(report.verdict, "unknown")


def test_a_question_a_plan_and_what_is_assumed_have_one_answer(tmp_path: Path) -> None:
    different = []
    for asked in _sets():
        components = parse_components(",".join((*asked.pins, asked.machine, PLATFORM)))
        index = f"--extra-index-url https://download.pytorch.org/whl/{asked.tag}\n" if asked.tag else ""
        python = next((each.exact for each in components if each.name == "python"), None)
        planned = plan(tmp_path, python, requirements__txt=index + "\n".join(asked.pins))
        machine = parse_components(f"{asked.machine},{PLATFORM}")
        told = {
            _said(judge(Snapshot(), Request(assume=components))),
            _said(judge(Snapshot(), Request(assume=machine, planned=planned))),
        } - {None}
        if len(told) > 1 or not told <= (answers := _answers(asked)):
            different.append((answers, told, asked))
    assert not different
