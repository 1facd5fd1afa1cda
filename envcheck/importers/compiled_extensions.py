"""What Detectron2's and MMCV's reports tell of the extension: the CUDA it was compiled with, and the GPU code in it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.importers.kit.protocol import Rank, environment, joined, with_environment
from envcheck.snapshot import Framework, Snapshot

NAME = "compiled extension"
RANK = Rank.MESSAGE

_SIGN = r"[\"'*`]{0,3}\s{0,40}[:=|]?\s{0,40}[\"'`]{0,2}"
_OF_DETECTRON2 = re.compile(
    rf"(?P<own>Detectron2 )?CUDA Compiler{_SIGN}(?:CUDA )?(?P<cuda>[0-9]{{1,2}}\.[0-9]{{1,2}})\b", re.IGNORECASE
)
_OF_MMCV = re.compile(rf"MMCV CUDA Compiler{_SIGN}(?P<cuda>[0-9]{{1,2}}\.[0-9]{{1,2}})\b", re.IGNORECASE)
_ARCH = r"(?:sm_)?[0-9]{1,2}\.?[0-9]"
_ARCHS = re.compile(
    rf"(?:detectron2 )?arch flags?{_SIGN}(?P<archs>{_ARCH}(?:, ?{_ARCH}){{0,20}})",
    re.IGNORECASE,
)
_VERSION = r"[0-9]{1,2}\.[0-9]{1,3}[0-9A-Za-z.+]{0,30}"
_DETECTRON2 = re.compile(rf"detectron2{_SIGN}(?P<version>{_VERSION})(?: @|$)", re.IGNORECASE)
_TORCH = re.compile(rf"PyTorch{_SIGN}(?P<version>{_VERSION}) @ ?(?P<path>/\S{{1,300}})$")
_LONGEST_LINE, _LONGEST_TEXT = 600, 1 << 20


def read(paste: Paste) -> Snapshot:
    return joined(_facts(paste))


def _facts(paste: Paste) -> Iterator[Snapshot]:
    of_detectron2 = "detectron2" in paste.text[:_LONGEST_TEXT].lower()
    for line in paste.statements:
        text = line.strip(" \t-*•#>`|'\",")[:_LONGEST_LINE]
        if found := _OF_MMCV.match(text):
            yield _extension("mmcv", cuda=found["cuda"])
        elif not of_detectron2:
            continue
        elif found := _OF_DETECTRON2.match(text):
            yield _extension("detectron2", cuda=found["cuda"])
        elif found := _DETECTRON2.match(text):
            yield _extension("detectron2", version=found["version"])
        elif found := _TORCH.match(text):
            torch = Framework(source=SOURCE, name="torch", version=found["version"], path=found["path"])
            yield with_environment(environment(frameworks=(torch,)))
        elif found := _ARCHS.match(text):
            numbers = found["archs"].replace("sm_", "").replace(".", "").split(",")
            yield _extension("detectron2", gpu_code=tuple(f"sm_{number.strip()}" for number in numbers))


def _extension(name: str, **facts: object) -> Snapshot:
    made = Framework(source=SOURCE, name=name, extends="torch", **facts)  # type: ignore[arg-type]
    return with_environment(environment(frameworks=(made,)))
