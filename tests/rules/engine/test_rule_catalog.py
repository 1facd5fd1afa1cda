"""What holds for every rule."""

import ast
import re
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest

import envcheck.rules
import probes
from envcheck.knowledge.load import load_matrix
from envcheck.model.checks import LAYERS
from envcheck.model.snapshot import Environment, Framework, Gpu, Listing, Snapshot
from envcheck.report.answers.rule import rule_page
from envcheck.rules.api import EVERYTHING, Facts, Rule, elsewhere, never
from envcheck.rules.catalog import all_rules, find_rule
from envcheck.rules.facts.machine import _OWN_SECTION, _overlap
from envcheck.rules.packages.shipped import FOLLOWS_FROM_FILES
from tests.every import cases, every

RULES = all_rules()
NAMES = {rule.name for rule in RULES}
HEADINGS = ["What it checks", "Why it matters", "How to fix", "Severity", "Example", "Related rules", "Sources"]
COMMAND = " " * 6
"""How a command begins, which is copied whole."""

ROOTS: dict[str, Any] = {"gpu": Gpu, "environment": Environment, "framework": Framework}

by_rule = every(RULES)


def test_a_verdict_needs_these_rules() -> None:
    assert {rule.name for rule in RULES if rule.required} >= {
        "no-nvidia-gpu",
        "gpu-init-failed",
        "driver-too-old",
        "gpu-code-missing",
    }


def test_names_are_unique_and_in_kebab_case() -> None:
    assert len(NAMES) == len(RULES)
    for name in NAMES:
        assert re.fullmatch(r"[a-z]+(-[a-z]+)+", name)
        assert find_rule(name) is not None


@by_rule
def test_the_documentation_has_a_title_and_the_headings(rule: Rule) -> None:
    lines = rule_page(rule).splitlines()
    assert lines[0].endswith(".")
    assert lines[1] == ""
    assert lines[2].startswith("Layer: ")
    assert [line for line in lines[3:] if line and not line.startswith(" ") and line != "Error lines"] == HEADINGS
    assert max(len(line) for line in lines if not line.startswith(COMMAND)) <= 100
    assert len(rule.title) <= 80
    for heading in HEADINGS:
        assert lines[lines.index(heading) + 1].startswith("    ")


@by_rule
def test_sources_are_titles_and_addresses(rule: Rule) -> None:
    below = rule_page(rule).partition("\nSources\n")[2]
    assert len(rule.sources) == below.count("https://") > 0
    for source in rule.sources:
        assert source.title
        below = below.replace(source.title, "").replace(source.address, "")
    assert below.replace(":", "").split() == []


def field_type(record: Any, name: str) -> Any:
    """The type of a field without its ``None``, and of a Listing the record in it when a further step is taken."""
    kind = get_type_hints(record)[name]
    options = [option for option in get_args(kind) if option is not type(None)]
    return options[0] if get_origin(kind) is not Listing and type(None) in get_args(kind) else kind


def follow(path: str) -> None:
    """Raise KeyError unless every step of ``path`` is a field of the Snapshot's types."""
    root, *steps = path.split(".")
    record = ROOTS[root] if root in ROOTS else field_type(Snapshot, root)
    for step in steps:
        if get_origin(record) is Listing:
            record = Listing
        record = field_type(record, step)


@by_rule
def test_every_need_is_a_field_of_the_snapshot(rule: Rule) -> None:
    for need in rule.needs:
        follow(need)
        root = need.partition(".")[0]
        assert root not in ROOTS or root == rule.per or (root == "environment" and rule.per == "framework")


def test_a_need_that_is_no_field_is_noticed() -> None:
    with pytest.raises(KeyError):
        follow("driver.colour")
    with pytest.raises(KeyError):
        follow("gpu.ecc.colour")


@cache
def fills() -> set[str]:
    """What the probes say that they fill."""
    found: set[str] = set()
    for path in Path(str(probes.__file__)).parent.glob("[!_]*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "PROBE":
                found |= set(ast.literal_eval(node.value)["fills"])
    return found


@by_rule
def test_a_probe_fills_every_need(rule: Rule) -> None:
    filled = fills()
    assert filled
    for need in rule.needs:
        root, _, rest = need.partition(".")
        section = ".".join(part for part in (_OWN_SECTION.get(root, root), rest) if part)
        assert any(_overlap(fill, section) for fill in filled), need


@by_rule
def test_what_is_explained_exists(rule: Rule) -> None:
    assert {*rule.explains, *rule.explains_failing, *rule.told_by, *rule.yields_to} <= {*NAMES, *EVERYTHING}


def consequences(rule: Rule) -> set[str]:
    """The rules whose findings its own may explain, by any of the ways."""
    told = {other.name for other in RULES if rule.name in other.told_by}
    others = NAMES - {rule.name} if rule.explains == EVERYTHING else set()
    return ({*rule.explains, *rule.explains_failing, *told} - {*EVERYTHING}) | others


def test_explanations_have_no_circle() -> None:
    assert set(TopologicalSorter({rule.name: consequences(rule) for rule in RULES}).static_order()) == NAMES


@cases("name",
    "builds-over-each-other", "cupy-multiple-packages", "damaged-distribution", "file-stops-framework",
    "imported-elsewhere", "onnxruntime-cpu-and-gpu", "package-shadowed", "search-path-changed",
)  # fmt: skip
def test_damage_overlay_and_redirection_explain_the_same(name: str) -> None:
    rule = find_rule(name)
    assert rule is not None
    assert set(FOLLOWS_FROM_FILES) <= consequences(rule)


def test_what_is_missing_or_misfit_of_a_framework_follows_from_its_files() -> None:
    """A rule that a library is missing, too old or of another CUDA joins the list with its name."""
    kinds = re.compile(r".*(?:-missing|-mismatch|-mixed-copies|-not-found|library-too-old|cudnn-too-old)")
    found = {rule.name for rule in RULES if rule.per == "framework" and kinds.fullmatch(rule.name)}
    assert found - set(FOLLOWS_FROM_FILES) <= {"jit-compiler-missing"}


def test_every_answer_of_the_driver_is_explained_by_a_rule() -> None:
    assert {error.problem for error in load_matrix().answers} <= NAMES
    init = find_rule("gpu-init-failed")
    for error in load_matrix().answers:
        cause = find_rule(error.problem)
        assert cause is not None
        assert cause == init or "gpu-init-failed" in cause.explains or error.problem == "driver-too-old"


def test_error_lines_name_rules_and_rules_that_never_arise_have_one() -> None:
    assert {row.problem for row in load_matrix().errors} <= NAMES
    assert sum(len(rule.says) for rule in RULES) == len(load_matrix().errors)
    assert all(rule.says for rule in RULES if rule.arises is never)


def test_the_row_of_a_problem_states_its_fixes() -> None:
    rows = load_matrix().problems
    assert all(row.fixes for row in rows)
    assert {row.layer for row in rows} <= {*LAYERS}
    assert {row.name for row in rows} == {rule.name for rule in RULES if rule.arises is never}


def test_a_row_of_a_rule_is_for_one_with_a_function_and_gives_fixes_where_no_function_does() -> None:
    judging = {rule.name: rule for rule in RULES if rule.arises not in (never, elsewhere)}
    rows = load_matrix().rules
    assert {row.name for row in rows} <= judging.keys()
    for row in rows:
        assert row.explains or row.explains_failing or row.told_by or row.yields_to or row.fixes, row.name
        shown = [fix.text for fix in judging[row.name].remedies(Facts(Snapshot(), load_matrix()))] if row.fixes else []
        assert shown == [fix.text for fix in row.fixes], row.name


def test_no_module_lists_error_lines_or_statuses_of_the_driver() -> None:
    """They are knowledge: ``errors.toml`` has them, with sources. Lines that name no problem by themselves have no row
    there, nor has how nvidia-smi writes a status.
    """
    root = Path(__file__).parents[3] / "envcheck"
    wording = re.compile(r"CUDA_ERROR_[A-Z]|cudaError[A-Z]|NVML_ERROR_[A-Z]")
    found = {
        path.relative_to(root).as_posix(): wording.findall(code)
        for path in root.rglob("*.py")
        if (code := re.sub(r'""".*?"""', "", path.read_text(), flags=re.DOTALL)) and wording.search(code)
    }
    assert set(found) <= {"rules/gpu/mig.py", "importers/formats/nvidia_smi/fields.py"}


def test_codes_are_those_of_the_libraries() -> None:
    pynvml = pytest.importorskip("pynvml")
    driver = pytest.importorskip("cuda.bindings.driver")
    runtime_only = {35}
    for error in load_matrix().answers:
        if error.api == "nvml":
            assert any(name.startswith("NVML_ERROR_") and value == error.code for name, value in vars(pynvml).items())
        elif error.code not in runtime_only:
            driver.CUresult(error.code)


def test_no_rule_holds_a_version_number() -> None:
    """Versions live in the matrix. Dotted numbers with three parts, and driver branches, are versions."""
    for path in Path(str(envcheck.rules.__file__)).parent.rglob("*.py"):
        assert not re.findall(r"\b\d+\.\d+\.\d+\b|\bcu\d\d|\bR\d{3}\b|\bsm_\d|CUDA \d", path.read_text()), path.name


def test_rule_files_are_a_sitting_long() -> None:
    for path in Path(str(envcheck.rules.__file__)).parent.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 420, path.name
