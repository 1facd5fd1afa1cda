"""Batch scripts and commands of Slurm that ask for no GPU.

A partition or a constraint is no request: Slurm shows a job the GPUs that it asks for as a generic resource. A text
that asks for one anywhere does not tell how the job was started that it is about.
"""

from __future__ import annotations

import re

from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.importers.kit.protocol import Rank
from envcheck.snapshot import Snapshot, Told

NAME = "Slurm job"
RANK = Rank.MESSAGE

_DIRECTIVE = re.compile(r"^[ \t]{0,8}#SBATCH +-\S.{0,200}$", re.MULTILINE)
_COMMAND = re.compile(r"(?:^|[$#>] ?|`)(?:srun|salloc|sbatch)(?: .{0,300})?$", re.MULTILINE)
_ASKS = re.compile(
    r"--gres\b|--gpus?\b|--gpus-per-|--tres-per-|\bgres ?[=:/]|\bgpu:|(?:sbatch|srun|salloc)\b.{0,200} -G ?[0-9a-z]|"
    r"#SBATCH +-G\b|--exclusive|CUDA_VISIBLE_DEVICES ?[:=] ?[0-9]|SLURM_(?:JOB|STEP)_GPUS",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\b(?:not|n't|without|no|never|forgot(?:ten)?)\b.{0,30}--(?:gres|gpus)\S{0,20}", re.IGNORECASE)
"""A sentence that says that the request is missing."""
_LONGEST_TEXT, _SHOWN = 1 << 20, 120


def read(paste: Paste) -> Snapshot:
    # The first line that tells how the job was started, where none asks for a GPU.
    text = _DENIED.sub("", paste.text[:_LONGEST_TEXT])
    found = _DIRECTIVE.search(text) if "#SBATCH" in text else None
    if found is None and ("srun" in text or "salloc" in text or "sbatch" in text):
        found = _COMMAND.search(text)
    asked = found[0].strip("$#>` ") if found and not _ASKS.search(text) else None
    return Snapshot(told=Told(source=SOURCE, job_without_gpu=asked[:_SHOWN]) if asked is not None else None)
