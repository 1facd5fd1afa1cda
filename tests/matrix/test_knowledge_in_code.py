"""Knowledge is data: outside the readers of formats, code holds no more pattern with a name of the field than these.

What a program prints, how its packages are called and what their versions mean are rows. A form may stay that a
standard or a file fixes, and what a rule about one project alone says of that project's own parts.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from envcheck.compat.load import load_matrix

ROOT = Path(__file__).parents[2] / "envcheck"
READERS_OF_FORMATS = ("importers/", "tui/")
"""A column's title or a program's prompt is a word of the format that an importer reads."""
OF_THE_FIELD = re.compile(
    r"cuda|cudnn|cublas|nccl|nvidia|tensorrt|torch|tensorflow|\bjax|cupy|onnx|triton|numba|xformers|vllm|bitsandbytes|"
    r"paddle|jetpack|\bl4t\b|glibc|manylinux|\bsm_|[0-9]\\?\.[0-9]",
    re.IGNORECASE,
)
PATTERNS = {
    "cli/option_values.py": (1, "variables of the project's own that are no options"),
    "bounds.py": (1, "code targets (sm_90a), as users write them"),
    "compat/gpu_names.py": (1, "words that names of GPUs are compared without"),
    "compat/question/reading.py": (1, "how NVIDIA's wheels are named: nvidia-NAME-cuNN"),
    "redact/addresses.py": (1, "addresses that stand for every host"),
    "redact/hosts.py": (1, "where logs name hosts"),
    "redact/secrets.py": (1, "values that are no secrets: versions, devices"),
    "refresh/torch_rows.py": (1, "PyTorch's version.py"),
    "refresh/project_rows.py": (1, "platform tags (PEP 600)"),
    "requirements.py": (1, "the kernel's module, in /proc/modules"),
    "rules/facts/library_names.py": (1, "how NVIDIA's wheels are named: nvidia-NAME-cuNN"),
    "rules/facts/machine.py": (1, "device nodes"),
    "rules/fixes/frameworks.py": (1, "the extras of JAX, in its metadata"),
    "rules/gpu/mig.py": (1, "device nodes"),
    "rules/libraries/copies.py": (1, "requirements of NVIDIA's wheels, in metadata"),
    "rules/libraries/tensorrt.py": (1, "the packages of TensorRT, which the rule is about"),
    "rules/messages/refine.py": (2, "platform tags (PEP 600), and the glibc of a Platform"),
    "rules/packages/beside_torch.py": (1, "PyTorch's release in the local label of a version"),
    "rules/packages/jax.py": (5, "the packages of JAX, which the rule is about"),
    "rules/system/container_host.py": (1, "how CDI names devices"),
    "versions.py": (3, "versions, as builds of conda and local labels write them"),
}
SENTENCES = {
    "refresh/index.py": (1, "a server's answer to a request for ranges"),
    "rules/driver/loaded_library.py": (1, "the system's word for a file that is not there"),
    "rules/packages/environment.py": (1, "what a probe of ours says of a foreign environment"),
    "rules/packages/extensions.py": (1, "what a probe of ours says of bitsandbytes"),
    "rules/speed/collectives.py": (1, "the mark of warnings in NCCL's log"),
}
DISTRIBUTIONS = {
    "compat/tables.py": (1, "families whose packages of the driver are rows"),
    "redact/users.py": (1, "accounts that images come with"),
    "rules/fixes/driver.py": (4, "the commands of their package managers"),
    "rules/system/container_image.py": (1, "the commands of their package managers"),
    "rules/system/wsl.py": (1, "the commands of their package managers"),
}
VARIABLES = {
    "collect/bench.py": (1, "what envcheck sets for its own programs"),
    "collect/trial_plan.py": (3, "what envcheck sets for programs that it tries"),
    "plans/image/commands.py": (1, "options of pip and uv, as variables"),
    "redact/names.py": (2, "who the user is"),
    "refresh/index.py": (1, "the index that envcheck itself asks"),
    "rules/packages/environment.py": (1, "which environment is active"),
    "snapshot/__init__.py": (1, "no variables: what it exports"),
}
OF_THE_LOADER = {"LD_LIBRARY_PATH", "LD_PRELOAD"}
_OF_RE = frozenset({"compile", "search", "match", "fullmatch", "findall", "finditer", "sub", "subn", "split"})


def test_no_further_pattern_names_what_the_field_names() -> None:
    found = Counter(name for name, text in _patterns() if OF_THE_FIELD.search(text))
    assert found == {name: number for name, (number, _) in PATTERNS.items()}


def test_code_looks_for_no_further_words_of_messages() -> None:
    found = Counter(name for name, text in _looked_for() if re.search(r"[A-Za-z] [A-Za-z]", text))
    assert found == {name: number for name, (number, _) in SENTENCES.items()}


def test_no_further_module_lists_distributions() -> None:
    matrix = load_matrix()
    names = matrix.distribution_names | {row.name for row in matrix.distributions}
    found = Counter(name for name, texts in _collections() if len(texts & names) > 1)
    assert found == {name: number for name, (number, _) in DISTRIBUTIONS.items()}


def test_no_further_module_lists_environment_variables() -> None:
    named = re.compile(r"[A-Z][A-Z0-9]+(?:_[A-Z0-9]+)+")
    found = Counter(
        name
        for name, texts in _collections()
        if len({text for text in texts if named.fullmatch(text)} - OF_THE_LOADER) > 1
    )
    assert found == {name: number for name, (number, _) in VARIABLES.items()}


def _nodes() -> Iterator[tuple[str, ast.AST]]:
    """Everything in the code, by its module."""
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(READERS_OF_FORMATS):
            yield from ((name, node) for node in ast.walk(ast.parse(path.read_text())))


def _patterns() -> Iterator[tuple[str, str]]:
    """The text of every regular expression."""
    for name, node in _nodes():
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and (node.func.value.id, node.func.attr in _OF_RE) == ("re", True)
            and node.args
        ):
            yield name, _text_in(node.args[0])


def _looked_for() -> Iterator[tuple[str, str]]:
    """Every text that code looks for in another one."""
    for name, node in _nodes():
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            yield name, _text_in(node.left)


def _collections() -> Iterator[tuple[str, set[str]]]:
    for name, node in _nodes():
        if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict):
            parts = node.keys if isinstance(node, ast.Dict) else node.elts
            yield name, {str(part.value) for part in parts if isinstance(part, ast.Constant)}


def _text_in(node: ast.expr) -> str:
    parts = (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))
    return "".join(part for part in parts if isinstance(part, str))
