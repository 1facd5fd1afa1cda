"""``matrix check``, ``check --assume`` and ``check --plan`` give one answer about the same components."""

import os
import random
import re
from pathlib import Path
from typing import NamedTuple

from envcheck.compat.answer import ask
from envcheck.compat.devices import is_for_a_part
from envcheck.compat.package_needs import marks_of
from envcheck.compat.reading import library_of
from envcheck.compat.software import BEST_FIRST
from envcheck.compat.wheels import published
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.relations.fit import FitVerdict
from envcheck.knowledge.relations.torch import tag_of
from envcheck.model.checks import Report
from envcheck.model.components import parse_components
from envcheck.model.snapshot import Environment, Snapshot
from envcheck.pipeline.session import Request, judge
from envcheck.plans import read_plans

MATRIX = load_matrix()
GPUS = ("V100", "T4", "A100", "RTX 3090", "RTX 4090", "L4", "H100", "B200", "RTX 5090", "GTX 1080 Ti")
DRIVERS = [
    f"{row.branch}.{minor}"
    for row in MATRIX.drivers
    if row.os == "linux" and row.branch >= 450
    for minor in ("10", "54.14", "133")
]
BESIDE = (
    "vllm", "flash-attn", "xformers", "tensorflow", "bitsandbytes", "deepspeed", "triton", "torchvision", "torchaudio",
    "transformer-engine", "sglang", "lmdeploy", "numba", "transformers", "numpy", "onnxruntime-gpu", "cupy-cuda12x",
    "jax", "nvidia-nccl-cu12", "nvidia-cudnn-cu12",
)  # fmt: skip
NAMES = sorted({row.name for row in MATRIX.releases if MATRIX.published_by_name.get(row.name)} - {"torch"})
LIBRARIES = [name for name in NAMES if library_of(MATRIX, name)]
ALL_GPUS = [gpu.name for gpu in MATRIX.gpus if gpu.kind != "tegra"]  # whose driver comes with its system software
IMAGES = [f"nvidia/cuda:{cuda}-base-ubuntu22.04" for cuda in ("11.8.0", "12.1.1", "12.4.1", "12.8.1", "13.0.1")]
PLATFORM = "os==linux,machine==x86_64"
SETS = 2000 if os.environ.get("ENVCHECK_THOROUGH") else 60

OPEN = (
    r"Whether \S+ \S+ can be built is not known",  # by pip, which a question and an installed package do not ask
    r"Which release of torch would be installed is open",  # which none of the components names
    r"Nothing in the plan is known to bring the \w+ that",  # of the machine's libraries a question takes any for given
    r"\S+ \S+ is asked for without GPU support",  # the extra, which no question names
    r"The plan names nothing that can be judged|Whether \S+==.* fits is not known",  # nothing that needs a GPU
    r".*programs use it for the CPU as well",  # what the package is for
)
"""What a plan, or what is assumed to be installed, leaves open or refuses for more than that the components fit."""


class Asked(NamedTuple):
    """A generated set."""

    machine: str
    pins: list[str]
    image: str = ""
    """The base image with CUDA and its cuda-compat that all is installed in."""

    @property
    def names(self) -> list[str]:
        return [re.split("[=>]=", pin)[0] for pin in self.pins]

    @property
    def tag(self) -> str:
        return self.pins[0].partition("+")[2]


def _set(seed: int) -> Asked:
    """A set of all kinds: releases of today and of long ago, pre- and post-releases, epochs, builds, libraries, and a
    companion that is left open.
    """
    chance = random.Random(seed)
    torch = chance.choice(MATRIX.torch[-48:])
    tags = [f"+{tag_of(build.cuda)}" for build in torch.builds if (build.os, build.machine) == ("linux", "x86_64")]
    asked = [f"torch=={_written(chance, torch.version)}{chance.choice(('', *tags))}"]
    for name in chance.sample(chance.choice((BESIDE, LIBRARIES, NAMES)), chance.choice((0, 1, 1, 2))):
        version = str(chance.choice(published(MATRIX, name)[-25:]))
        asked.append(f"{name}>={version}" if chance.random() < 0.1 else f"{name}=={_written(chance, version)}")
    asked = asked[1:] if asked[1:] and chance.random() < 0.15 else asked
    machine = f"gpu=={chance.choice(chance.choice((GPUS, ALL_GPUS)))},driver=={chance.choice(DRIVERS)}"
    python = f",python==3.{chance.choice((9, 10, 11, 12, 13))}" if chance.random() < 0.3 else ""
    return Asked(machine + python, asked, chance.choice(IMAGES) if chance.random() < 0.1 else "")


def _written(chance: random.Random, version: str) -> str:
    """The release, or now and then one beside it that PEP 440 knows."""
    kinds = ("{}rc1", "{}.post1", "{}.dev1", "1!{}", "{}.0", "{}a1")
    varied = version.replace(".", "").isdigit() and chance.random() < 0.08
    return chance.choice(kinds).format(version) if varied else version


def _answers(asked: Asked) -> set[FitVerdict]:
    """What ``matrix check`` says. A plan is not asked about what the matrix relates to nothing else that is named, nor
    about libraries and compilers beside a PyTorch that computes without them; and an index that it names has builds of
    its own.
    """
    image = [f"nvcr=={asked.image}"] if asked.image else []
    components = parse_components(",".join((*asked.pins, asked.machine, PLATFORM, *image)))
    answer = ask(MATRIX, components, suggest=False)
    found = {answer.verdict}
    if asked.image:  # wheels have no use for its CUDA, but for its cuda-compat where that stands in for the driver
        forward = parse_components(f"cuda-compat=={'.'.join(asked.image.partition(':')[2].split('.')[:2])}")
        ways = ([*components[:-1], *forward], components[:-1])
        found.add(min((ask(MATRIX, way, suggest=False).verdict for way in ways), key=BEST_FIRST.index))
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
    warned = report.verdict != "fail" and any(check.status == "warn" for check in report.checks)
    if warned or any(re.match(pattern, title) for title in told for pattern in OPEN):
        return None
    words: dict[str, FitVerdict] = {"fail": "incompatible", "pass": "compatible"}
    return words.get(report.verdict, "unknown")


def _planned(asked: Asked, folder: Path, *, newest: bool = False) -> Environment:
    python = re.search("python==(.*)", asked.machine)
    index = f"--extra-index-url https://download.pytorch.org/whl/{asked.tag}" if asked.tag else ""
    pins = " ".join(f"'{pin}'" for pin in asked.pins)
    path, text = folder / "requirements.txt", "\n".join((index, *asked.pins))
    if asked.image:
        path, text = folder / "Dockerfile", f"FROM {asked.image}\nRUN pip install {index} {pins}\n"
    path.write_text(text)
    return read_plans([str(path)], MATRIX, marks_of(python and python[1], "linux", "x86_64"), newest=newest)


def _reports(asked: Asked, folder: Path) -> dict[str, Report]:
    """What is said of the set as planned and as assumed; no image is assumed."""
    machine, planned = parse_components(f"{asked.machine},{PLATFORM}"), _planned(asked, folder)
    reports = {"plan": judge(Snapshot(), Request(assume=machine, planned=planned, tried=True))}
    if not asked.image:
        components = parse_components(",".join((*asked.pins, asked.machine, PLATFORM)))
        reports["assume"] = judge(Snapshot(), Request(assume=components, tried=True))
    return reports


def _chosen(asked: Asked, folder: Path) -> Asked:
    """The set with the release of an open companion that pip would choose, of those that are known."""
    versions = {each.name: each.version for each in _planned(asked, folder, newest=True).planned or ()}
    split = [(pin, pin.partition(">=")) for pin in asked.pins]
    pins = [f"{name}=={versions[name] or version}" if operator else pin for pin, (name, operator, version) in split]
    return asked._replace(pins=pins)


def _difference(asked: Asked, folder: Path) -> tuple[object, ...]:
    """What is said otherwise; what is open must not be said to fit, or not to, where the release that is chosen does
    not, or does.
    """
    exact = _chosen(asked, folder)
    told = {_said(report) for report in _reports(exact, folder).values()} - {None}
    answers = _answers(exact)
    if exact != asked:
        machine = parse_components(f"{asked.machine},{PLATFORM}")
        left_open = judge(Snapshot(), Request(assume=machine, planned=_planned(asked, folder), tried=True)).verdict
        if (left_open, *told) in (("pass", "incompatible"), ("fail", "compatible")):
            return left_open, told
    return () if len(told) <= 1 and told <= answers else (told, answers)


def test_a_question_a_plan_and_what_is_assumed_have_one_answer(tmp_path: Path) -> None:
    sets = {seed: _set(seed) for seed in range(SETS)}
    different = {seed: (asked, found) for seed, asked in sets.items() if (found := _difference(asked, tmp_path))}
    assert not different
