"""Environment variables as ``env`` or vLLM's report lists them: ``NAME=value``, one a line; and the GPUs that a command
selects for itself, if all commands select the same.
"""

from __future__ import annotations

import re

from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.importers.kit.protocol import Rank
from envcheck.redact.secrets import masked_value
from envcheck.snapshot import Snapshot, Told, Variables

NAME = "environment variables"
RANK = Rank.OUTPUT

_LINE = re.compile(
    r"(?:export |set |ENV |\$ ?|\$env:|- )?[\"']?"
    r"(LD_LIBRARY_PATH|LD_PRELOAD|OMP_NUM_THREADS|(?:CUDA|NVIDIA|NCCL|NVSHMEM|CUDNN|CUBLAS|CUBLASLT|CUPY|NUMBA|TORCH|"
    r"PYTORCH|TORCHDYNAMO|TORCHINDUCTOR|TRITON|XLA|TF|JAX|VLLM)_[A-Z0-9_]{1,60})"
    r"(?: ?= ?|: |[\"']: ?)(\"[^\"]*\"|'[^']*'|\S*?)[\"']?,?$"
)
_IN_CODE = re.compile(
    r"os\.environ\[[\"'](CUDA_VISIBLE_DEVICES)[\"']\] ?(?:=|:) ?[\"']?([0-9,-]{0,60})[\"']?(?:\s|$|;)"
)
_SET_IN_CODE = re.compile(
    r"(?:.{0,60}[\s`])?os\.environ\[[\"']((?:CUDA|NCCL|CUDNN|CUBLAS|TORCH|PYTORCH|TF|XLA|JAX|VLLM)_[A-Z0-9_]{1,60})[\"']\]"
    r" ?= ?[\"']([\w:.,-]{0,60})[\"']"
)
"""A line of Python that sets a variable; those that select GPUs have readers of their own."""
_PRINTED = re.compile(r"(?:\$|#|>) ?(?:echo|printenv) \$?(CUDA_VISIBLE_DEVICES)$")
"""A question whose answer is the next line."""
_PATH = re.compile(
    r"(?:\$|#|>) ?(?:echo|printenv) [\"']?\$?\{?(LD_LIBRARY_PATH)\}?[\"']?\s*\n[ \t]*(/[^\s`'\"]{2,2000})(?=\s|$)"
    r"|\bLD_LIBRARY_PATH[`'\"]{0,2} (?:(?:is|was) )?(?:set to|contains|includes|points to|has) "
    r"[`'\"]?(/[\w./:+-]{2,400})"
)
"""The loader's path as a shell prints it below the question, or as a sentence states it."""
_OF_COMMAND = re.compile(
    r"(?:^|[$#>] ?|`)(?:[A-Z_]{2,40}=\S{1,80} ){0,6}(CUDA_VISIBLE_DEVICES)=[\"']?([0-9](?:[0-9,]{0,60})"
    r"|(?:cuda|gpu):?[0-9]|all|\$[0-9]|\[[0-9,]{1,20}\])[\"']? (?:[A-Z_]{2,40}=\S{1,80} ){0,6}[a-z./]"
)
_IN_SCRIPT = re.compile(
    r"(?:.{0,80}(?:\bline [0-9]{1,5}|\.(?:sh|bash|slurm|sbatch|bat|cmd|py|ipynb|ya?ml|env))[\"'`)]{0,2}[:,] ?"
    r"|env: |[%!]env |\+ ?)"
    r"(?:export |set )?(CUDA_VISIBLE_DEVICES) ?= ?[\"']?([0-9](?:[0-9,]{0,60}))[\"']?(?=[`.;, ]|$)"
)
"""A line of a script behind its place, as a notebook answers it, or as a shell prints it before it runs it."""
_SAID = re.compile(
    r"\b(?:uses|used|sets?|with|has) `?(CUDA_VISIBLE_DEVICES)=[\"']?([0-9](?:[0-9,]{0,60}))[\"']?(?=[`.,; ]|$)"
)
"""A sentence that tells the variable of a script."""
_IS_SET = re.compile(
    r"\b((?:PYTORCH|CUDA|TORCH|TF|XLA|JAX|NCCL|VLLM)_[A-Z0-9_]{1,60})=([\w:.,-]{1,60}?)[`'\"]{0,2} "
    r"(?:is|was|has been|had been) (?:\w+ )?set\b"
)
"""A sentence that says that a variable is set, and to what."""
_HIDES = re.compile(
    r"(?<!un)(?<![\w$])(CUDA_VISIBLE_DEVICES)[`\"']{0,2} ?(?:=|:|is|was|equals|(?:(?:is|was) )?set to)"
    r"(?: ?[`\"']?(-1|NoDevFiles|void)(?=[`\"';,.)]{0,3}(?:\s|$))"
    r"| ?(?:\"\"|''|(?:an )?empty(?: string)?\b)(?=[\s;,.)`]|$))"
)
"""A sentence that says that it hides every GPU."""
_ON_PURPOSE = re.compile(
    r"(?:^|[$#>`] ?)(?:[A-Z_]{2,40}=\S{1,80} ){0,6}CUDA_VISIBLE_DEVICES=(?:\"\"|''|-1)? "
    r"(?:[A-Z_]{2,40}=\S{1,80} ){0,6}[\w~./]"
)
"""A command that hides every GPU from itself."""
_FINDS = re.compile(r"\bfound [1-9][0-9]{0,2} CUDA devices|\bFound device [0-9]{1,2} with properties")
"""What programs say that find GPUs."""
_UNDECIDED = re.compile(
    r"\b(?:if|when|unless|not|never|try|before|without|could|would|should|isn't)\b|\?", re.IGNORECASE
)
_OF_MIG = re.compile(r"(?<![\w$])(CUDA_VISIBLE_DEVICES)=[\"']?((?:MIG-[\w/-]{1,80},?){1,8})")
_LIST = re.compile(r"(?:.{0,40}\W)?(CUDA_VISIBLE_DEVICES): \[([0-9, ]{0,60})\]\s*$")
"""What Lightning logs: the variable as a list of Python."""
_DEVICES = re.compile(r"-?[0-9][0-9,]{0,60}")
_LONGEST_LINE, _MOST = 600, 500


def read(paste: Paste) -> Snapshot:
    values = _of_commands(paste)
    for line in paste.lines:
        found = _setting(line)
        if found and len(values) < _MOST:
            said = _LIST.match(line) or found
            values.setdefault(found[1], masked_value(found[1], said[2].strip("\"'")))
    if "LD_LIBRARY_PATH" not in values and (path := _loader_path(paste)):
        values["LD_LIBRARY_PATH"] = masked_value("LD_LIBRARY_PATH", path)
    told = None
    if _on_purpose(paste):
        values.pop("CUDA_VISIBLE_DEVICES", None)
        told = Told(source=SOURCE, hidden_on_purpose=True)
    return Snapshot(variables=Variables(source=SOURCE, values=values) if values else None, told=told)


def _loader_path(paste: Paste) -> str | None:
    """LD_LIBRARY_PATH, where no line has the form of a setting."""
    for place, line in enumerate(paste.lines):
        if "LD_LIBRARY_PATH" in line:
            found = _PATH.search("\n".join(paste.lines[place : place + 2])[:_LONGEST_LINE])
            if found:
                return found[2] or found[3]
    return None


def _setting(line: str) -> re.Match[str] | None:
    """The name and the value of a variable that a line sets."""
    if found := _LINE.match(line.strip()):
        return found
    text = line[:_LONGEST_LINE]
    if " set" in text and (said := _IS_SET.search(text)):
        return said
    in_code = _SET_IN_CODE.match(text) if "os.environ[" in text else None
    return in_code if in_code and in_code[1] != "CUDA_VISIBLE_DEVICES" else None


def _on_purpose(paste: Paste) -> bool:
    """Whether a command hides every GPU from itself, in a text where another program finds some."""
    hides = any("CUDA_VISIBLE_DEVICES=" in line and _ON_PURPOSE.search(line[:_LONGEST_LINE]) for line in paste.lines)
    return hides and any(_FINDS.search(line[:_LONGEST_LINE]) for line in paste.lines)


def _assigned(text: str) -> re.Match[str] | None:
    """Where a line, other than a command, assigns CUDA_VISIBLE_DEVICES."""
    return (
        _IN_CODE.search(text)
        or _OF_MIG.search(text)
        or _IN_SCRIPT.match(text)
        or _SAID.search(text)
        or _HIDES.search(text)
    )


def _of_commands(paste: Paste) -> dict[str, str]:
    """The variable before commands, as in ``$ CUDA_VISIBLE_DEVICES=1 python train.py``."""
    found = {
        match[2]
        for line in paste.statements
        if "CUDA_VISIBLE_DEVICES=" in line and (match := _OF_COMMAND.search(line[:_LONGEST_LINE]))
    }
    for place, line in enumerate(paste.lines):
        if "CUDA_VISIBLE_DEVICES" not in line:
            continue
        text = line[:_LONGEST_LINE]
        if assigned := _assigned(text):
            if assigned.re is not _HIDES or not _UNDECIDED.search(text[: assigned.end() + 1]):
                found.add(assigned[2] or "")
        elif _ON_PURPOSE.search(text):
            found.add("")
        elif _PRINTED.search(line.strip()) and place + 1 < len(paste.lines):
            found.update(answer[0] for answer in [_DEVICES.fullmatch(paste.lines[place + 1].strip())] if answer)
    return {"CUDA_VISIBLE_DEVICES": next(iter(found))} if len(found) == 1 else {}
