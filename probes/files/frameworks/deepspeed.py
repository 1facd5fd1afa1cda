"""DeepSpeed, whose operations are compiled when it is installed, or when they are first used.

Its installation writes ``git_version_info_installed.py``: ``version='0.15.4'``, ``installed_ops={'fused_adam': True,
...}`` and ``torch_info={'version': '2.5', 'cuda_version': '12.4', 'nccl_version': '2.21', 'hip_version': '0.0',
...}``. Where no PyTorch was there to be asked (pip builds apart from the environment), all are ``0.0``, which means
nothing. Operations that were compiled lie below ``ops/``; without them a toolkit is needed at run time.
"""

from __future__ import annotations

import re
from typing import Any

from ..installations.package import add_declared, assigned, cuda_version, locate, mapping, problems, version
from ..installations.parts import add_torch_extension
from ..python.site import Site

IMPORTS = ("deepspeed",)
DISTRIBUTIONS = ("deepspeed",)

_INFO = "git_version_info_installed.py"
_OP = re.compile(r"[a-z][a-z0-9_]{1,40}")
_FOLDERS = 60


def read(site: Site, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """The DeepSpeed that ``import deepspeed`` would take."""
    here = locate(site, "deepspeed", names)
    if here is None:
        return []
    facts = here.gather("deepspeed", extends="torch")
    text = here.text(_INFO) or ""
    stated = version(assigned(text, "version"))
    torch = mapping(text, "torch_info")
    built, cuda = cuda_version(torch.get("version")), cuda_version(torch.get("cuda_version"))
    facts.add(f"file {here.path}/{_INFO}", version=stated, cuda=cuda, hip=cuda_version(torch.get("hip_version")))
    facts.add(f"file {here.path}/{_INFO}", nccl=cuda_version(torch.get("nccl_version")))
    add_declared(facts, here)
    # The operations that were compiled, ``ops/adam/fused_adam_op*.so``.
    folders = [name for name in sorted(here.names("ops")) if _OP.fullmatch(name)]
    parts = [path for name in folders[:_FOLDERS] for path in here.files(r"\w+_op\b.*\.so", f"ops/{name}")]
    if parts:
        facts.add(f"file {here.path}/{_INFO}", built_for={"torch": built} if built else None)
    add_torch_extension(facts, here, parts)
    return [facts.record(problems(here, stated, _INFO, ("ops",)))]
