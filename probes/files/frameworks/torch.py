"""PyTorch, read as files: nothing of it is imported.

Contents of Linux wheels (looked at: 1.13.1, 2.0.1, 2.5.1, 2.8.0, 2.11.0, 2.14.1 and 2.15.0, for CUDA 11.7 to
13.2, and the CPU build of 2.13.0):

- ``torch/version.py`` assigns literals: ``__version__``, ``cuda``, ``hip``, the newer ones with annotations.
  ``__version__`` carries a label (``+cu124``) that the metadata of PyPI's wheels lacks.
- The targets it was compiled for stand in ``torch/lib/libtorch_python.so``, once, in ``.rodata``, as one text that a
  NUL ends: ``sm_75 sm_80 sm_86``. In 2.8.0 no NUL comes before it. No other library of 2.5.1, 2.8.0, 2.11.0 and 2.14.1
  holds such a text, nor does any of the CPU build. It is the list that PyTorch itself answers with. The GPU code in
  ``libtorch_cuda.so`` is of those targets too, and single kernels of it of others (2.15.0: one each for ``sm_89``,
  ``sm_120a`` and ``sm_121a``), so that what is found there would promise too much; it counts where there is no list.
- The metadata pins ``nvidia-cudnn-cuNN`` and (not in 1.13.1) ``nvidia-nccl-cuNN`` by ``==``; the wheels for CUDA 13
  take the other libraries through ``cuda-toolkit[...]``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ...common.lazy import lazy_pattern
from ...common.paths import printable
from ..elf.library import constants
from ..installations.catalog import FrameworkEntry
from ..installations.package import Installation, locate
from ..installations.parts import add_parts
from ..installations.torch_files import VersionFile, read_version_file, torch_of
from ..python.distributions import pinned, requirement_name
from ..python.site import Gathered, Site, packages

_TARGETS = lazy_pattern(rb"(?:sm|compute)_\d{2,3}[a-z]?(?: (?:sm|compute)_\d{2,3}[a-z]?)*(?=\0)")
_LOGS = lazy_pattern(r"\bregister_(?:log|artifact)\(\s*['\"](\w+)['\"]")
_DECLARED = lazy_pattern(r"(nvidia|cuda|triton|pytorch-triton)\b")


def read(site: Site, entry: FrameworkEntry) -> list[dict[str, Any]]:
    """The PyTorch that ``import torch`` would take."""
    here = locate(site, "torch", entry.distributions.split())
    if here is None:
        return []
    file = read_version_file(site.tree, here.path) if here.path else VersionFile()
    facts = here.gather("torch")
    conda = here.conda
    if file.version:
        facts.add(f"file {file.path}", version=file.version, cuda=file.cuda, hip=file.hip, cpu_only=file.cpu_only)
    elif conda:
        facts.add(conda.source, version=conda.version, cuda=conda.cuda, cpu_only=conda.cpu_only)
    wheel = here.wheel
    if wheel:
        declared = [line for line in wheel.get("requires") or () if _DECLARED.match(requirement_name(line))]
        pins = {"cudnn": pinned(declared, "nvidia-cudnn-"), "nccl": pinned(declared, "nvidia-nccl-")}
        facts.add(wheel["source"], version=wheel["version"], requires=declared or None, **pins)
        facts.add(wheel["source"], cpu_only=True if wheel["version"].endswith("+cpu") else None)
    if conda:
        facts.add(conda.source, cudnn=conda.cudnn)
    _add_targets(facts, here, file)
    _add_unknown_flags(facts, here)
    torch = torch_of(site)
    if torch.parts or here.names("lib"):
        add_parts(facts, here, torch.parts, preloads=torch.preloads, asks=torch.asks)
    notices = [f"{printable(file.path)} tells too little: {file.problem}"] if file.problem else []
    wrong = here.contradictions(file.version, "version.py")
    both = conda is not None and file.version and None not in {conda.cpu_only, file.cpu_only}
    if conda and both and not wrong and conda.cpu_only != file.cpu_only:
        wrong.append(f"conda installed the build {conda.build}, its version.py says CUDA {file.cuda or 'none'}")
    needs = () if file.there else ("version.py",)
    return [facts.record([*notices, *here.problems(needs=needs), *wrong])]


def _add_targets(facts: Gathered, here: Installation, file: VersionFile) -> None:
    """Add the targets of a CUDA build; a single one counts only if nothing else in the file looks like one."""
    if here.path is None or not file.cuda:
        return
    library = f"{here.path}/lib/libtorch_python.so"
    texts = set(_texts(constants(here.site.tree, library) or b""))
    lists = {text for text in texts if " " in text} or texts
    if len(lists) == 1:
        facts.add(f"elf {library}", gpu_code=lists.pop().split())
        return
    from ..gpu_code.targets import gpu_targets

    tree, library = here.site.tree, f"{here.path}/lib/libtorch_cuda.so"
    if tree.is_file(library):
        found = gpu_targets(tree.place(library))
        facts.add(f"elf {library}", gpu_code=list(found.targets) if found.complete and found.targets else None)


def _add_unknown_flags(facts: Gathered, here: Installation) -> None:
    """Add the words of TORCH_LOGS that this release refuses: neither its own logs nor modules."""
    asked = here.site.tree.variables.get("TORCH_LOGS")
    if here.path is None or not asked:
        return
    path = f"{here.path}/_logging/_registrations.py"
    known = {"", "all", "help", *_LOGS.findall(here.site.tree.read_text(path) or "")}
    named = {word: word.strip("+-").partition(".")[0] for word in re.split(r"[\s,]+", asked)}
    strange = [word for word, name in named.items() if name not in known and not packages(here.site, name)]
    facts.add(f"file {path}", unknown_flags=strange[:32] if len(known) > 3 else None)


def _texts(data: bytes) -> Iterator[str]:
    """The strings that look like a target or a list of targets, searched by a rare string in megabytes of constants."""
    for word in (b"sm_", b"compute_"):
        at = data.find(word)
        while at >= 0:
            match = _TARGETS.match(data, at) if data[at - 1 : at] != b" " or at == 0 else None
            if match:
                yield match.group().decode()
            at = data.find(word, match.end() if match else at + 1)
