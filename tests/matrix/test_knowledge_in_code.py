"""Knowledge is data: code holds no patterns outside its readers, and no list of names or behaviours again."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.relations.libraries import cuda_majors, row_of
from envcheck.knowledge.tables.packages import Trait
from envcheck.rules.facts.library_names import name_of, toolkit_extra, wheel_of, wheel_with
from probes.common import library_names
from tests.every import cases, tabled
from tests.known import known
from tests.syntax import calls, tree

ROOT = Path(__file__).parents[2] / "envcheck"
READERS_OF_FORMATS = ("importers/", "tui/")
"""A column's title or a program's prompt is a word of the format that an importer reads."""
OF_THE_FIELD = re.compile(
    r"cuda|cudnn|cublas|nccl|nvidia|tensorrt|torch|tensorflow|\bjax|cupy|onnx|triton|numba|xformers|vllm|bitsandbytes|"
    r"paddle|jetpack|\bl4t\b|glibc|manylinux|\bsm_|[0-9]\\?\.[0-9]",
    re.IGNORECASE,
)
PATTERNS = {
    "cli/parser.py": (1, "variables of the project's own that are no options"),
    "model/bounds.py": (1, "code targets (sm_90a), as users write them"),
    "knowledge/relations/torch.py": (1, "how local tags name PyTorch: cu12torch2.6, pt25cu124"),
    "knowledge/gpu_names.py": (1, "words that names of GPUs are compared without"),
    "pipeline/planned/patch.py": (1, "the address of PyTorch's index, in whose place another build's is written"),
    "compat/reading.py": (1, "how NVIDIA's wheels are named: nvidia-NAME-cuNN"),
    "redact/hosts.py": (2, "addresses that stand for every host, where logs name hosts"),
    "redact/secrets.py": (1, "values that are no secrets: versions, devices"),
    "refresh/torch_rows.py": (1, "PyTorch's version.py"),
    "refresh/project_rows.py": (1, "platform tags (PEP 600)"),
    "requirements.py": (1, "the kernel's module, in /proc/modules"),
    "rules/facts/library_names.py": (1, "how NVIDIA's wheels are named: nvidia-NAME-cuNN"),
    "rules/fixes/frameworks.py": (2, "the extras and plug-ins of JAX"),
    "rules/gpu/mig.py": (1, "device nodes"),
    "rules/known_facts.py": (1, "device nodes"),
    "rules/libraries/copies.py": (1, "requirements of NVIDIA's wheels, in metadata"),
    "rules/libraries/wheels.py": (1, "the packages of TensorRT, which the rule is about"),
    "rules/messages/refine.py": (2, "platform tags (PEP 600), and the glibc of a Platform"),
    "rules/packages/matching.py": (3, "the packages of JAX, which the rule is about"),
    "rules/system/container.py": (1, "how CDI names devices"),
    "model/versions.py": (3, "versions, as builds of conda and local labels write them"),
}
SENTENCES = {
    "refresh/index.py": (1, "a server's answer to a request for ranges"),
    "rules/driver/libraries.py": (1, "the system's word for a file that is not there"),
    "rules/packages/environment.py": (1, "what a probe of ours says of a foreign environment"),
    "rules/packages/extensions.py": (1, "what a probe of ours says of bitsandbytes"),
    "rules/speed/libraries.py": (1, "the mark of warnings in NCCL's log"),
}
DISTRIBUTIONS = {
    "knowledge/tables/hardware.py": (1, "families whose packages of the driver are rows"),
    "redact/names.py": (1, "accounts that images come with"),
    "rules/fixes/driver.py": (3, "the commands of their package managers"),
    "rules/system/container.py": (1, "the commands of their package managers"),
    "rules/system/windows.py": (1, "the commands of their package managers"),
}
VARIABLES = {
    "cli/kept.py": (1, "the user's own folder for what a node keeps"),
    "collect/trials.py": (4, "what envcheck sets for programs that it tries, and its own"),
    "redact/names.py": (2, "who the user is"),
    "refresh/index.py": (1, "the index that envcheck itself asks"),
    "rules/packages/environment.py": (1, "which environment is active"),
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
            yield from ((name, node) for node in ast.walk(tree(path)))


def _patterns() -> Iterator[tuple[str, str]]:
    """The text of every regular expression."""
    for path, call in calls(ROOT, "lazy_pattern", *map("re.{}".format, _OF_RE)):
        name = path.relative_to(ROOT).as_posix()
        if call.args and not name.startswith(READERS_OF_FORMATS):
            yield name, _text_in(call.args[0])


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


# --- How frameworks behave is a row: no module lists the beginnings of their names again ----------------------------
OF_OTHERS = {
    "knowledge/performance/quantities.py": "the frameworks that are measured",
    "knowledge/names.py": "the other names of components",
    "importers/paste.py": "words of the lines that a long text is searched for",
    "report/page/plain.py": "the distributions that the page names",
    "rules/engine/simulate.py": "distributions that are frameworks once they are installed",
    "rules/fixes/frameworks.py": "how each project's build for CUDA is installed",
    "rules/packages/doubled.py": "two projects with rules of their own",
    "rules/packages/required.py": "the packages that other rules speak of",
}
"""Modules that name several projects' frameworks for what only they know of them."""


@tabled
def test_the_traits_of_frameworks(trait: Trait, with_it: tuple[str, ...], without: tuple[str, ...]) -> None:
    matrix = load_matrix()
    assert [name for name in with_it if not matrix.has_trait(name, trait)] == []
    assert [name for name in without if matrix.has_trait(name, trait)] == []


def test_no_module_lists_the_names_again() -> None:
    named = {(name.removesuffix("*"), row.project) for row in load_matrix().traits for name in row.names}
    project_of = dict(named)
    assert len(project_of) == len(named), "a name belongs to one project, whatever the order of the rows"
    of_one_row = [{name.removesuffix("*") for name in row.names} for row in load_matrix().traits]
    found = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        for texts in _collections_traits(tree(path))
        if len({project_of[text] for text in texts & project_of.keys()}) > 1
        or any(len(texts & names) > 1 for names in of_one_row)
    }
    assert found == set(OF_OTHERS)


def _collections_traits(tree: ast.Module) -> Iterator[set[str]]:
    """The texts that stand in each collection."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            yield {str(each.value) for each in node.elts if isinstance(each, ast.Constant)}
        elif isinstance(node, ast.Dict):
            yield {str(each.value) for each in node.keys if isinstance(each, ast.Constant)}


# --- One catalogue of library families: the probes hold the same rows, and no module lists them again ---------------
ROOT_FAMILIES = Path(__file__).parents[2]
OF_OTHERS_FAMILIES = {
    "envcheck/knowledge/performance/quantities.py": "the libraries whose work is measured, and their titles",
    "envcheck/tui/screens/pages.py": "the libraries that the application shows, and their titles",
    "probes/files/frameworks/numba.py": "what Numba opens",
    "probes/files/loader/symbols.py": "how the functions of libraries begin",
    "probes/common/library_names.py": "the catalogue, as probes need it",
    "probes/files/cuda_libraries/answer.py": "the function that each library answers its version by",
    "probes/trials/libraries.py": "the same, of loaded ones",
    "probes/measuring/library.py": "how the functions and statuses of each begin",
    "probes/files/frameworks/cupy.py": "names of CuPy's modules",
    "probes/files/installations/parts.py": "names in the files of frameworks",
    "probes/files/installations/pathfinder.py": "cuda-pathfinder's own tables",
}
"""Modules that name several families for what only they know of them."""
_FEW = 3
FILES = ("cublasLt", "nvblas", "cudnn_ops", "nvrtc-builtins", "nppial", "cusparseLt", "nvinfer_plugin", "cudss")


def test_probes_hold_the_rows_of_the_catalogue() -> None:
    assert [(each.name, each.files, each.numbered, each.part, each.owners) for each in library_names.FAMILIES] == [
        (row.name, row.files, row.numbered, row.part, row.owners) for row in load_matrix().families
    ]
    held = {each.wheel: each.sonames for each in library_names.FAMILIES if each.sonames}
    assert held == {row.wheel: row.sonames for row in load_matrix().families if row.sonames}


def test_every_file_that_a_probe_finds_is_of_the_same_family_everywhere() -> None:
    libraries = ("cublasLt", "nvblas", "cudnn_ops", "nvrtc-builtins", "nppial", "cusparseLt", "nvinfer_plugin", "cudss")
    for name in libraries:
        found, row = library_names.row_of(name), row_of(name)
        assert found is not None
        assert found.name == known(row).name
        assert name_of(f"lib{name}.so.12") is not None
    assert library_names.row_of("jpeg") is None


@cases("family, wheel, extra",
    ("cublasLt", "nvidia-cublas", "cublas"), ("nvrtc-builtins", "nvidia-cuda-nvrtc", "nvrtc"),
    ("cudart", "nvidia-cuda-runtime", "cudart"), ("nppial", "nvidia-npp", "npp"),
    ("cusparseLt", "nvidia-cusparselt", None), ("cudnn_ops", "nvidia-cudnn", None), ("nvinfer", None, None),
)  # fmt: skip
def test_wheels_come_from_the_catalogue(family: str, wheel: str | None, extra: str | None) -> None:
    assert wheel_with(family) == wheel
    assert toolkit_extra(family) == extra
    assert wheel is None or wheel_of(f"{wheel}-cu12") is not None


def test_no_module_lists_families_again() -> None:
    words = {row.name.lower() for row in load_matrix().families} - {"cuda", "magma", "nvidia-ml"}
    found = {
        path.relative_to(ROOT_FAMILIES).as_posix()
        for folder in ("envcheck", "probes")
        for path in (ROOT_FAMILIES / folder).rglob("*.py")
        if _named(path.read_text(), words) > _FEW and any(_named(text, words) > _FEW for text in _lists(tree(path)))
    }
    assert found == set(OF_OTHERS_FAMILIES)


def _named(text: str, words: set[str]) -> int:
    return len(set(re.findall(r"[a-z]+(?:_host)?", text.lower())) & words)


def _lists(tree: ast.Module) -> Iterator[str]:
    """Texts and collections of texts, without docstrings."""
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant | ast.JoinedStr | ast.Tuple | ast.List | ast.Set | ast.Dict)
            and id(node) not in said
        ):
            parts = (part for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str))
            yield " ".join(str(part.value) for part in parts)


@cases("family", "cublas", "cudart", "cufft", "curand", "cusolver", "cusparse", "nppc")
@cases("cuda", "8.0", "9.0", "9.1", "9.2", "10.0")
def test_files_of_old_toolkits_carry_the_number_of_the_toolkit(family: str, cuda: str) -> None:
    assert cuda_majors(load_matrix(), family, cuda) == {int(cuda.partition(".")[0])}


def test_files_with_a_number_of_their_own_belong_to_the_toolkits_that_bring_them() -> None:
    assert cuda_majors(load_matrix(), "cufft", "10") == {11}
    assert cuda_majors(load_matrix(), "curand", "10.3") == {11, 12, 13}
