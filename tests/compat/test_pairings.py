"""Releases that go together, by documents, by measured GPU code, and by what an extension is compiled against."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from envcheck.compat.package_needs import release_for
from envcheck.compat.wheels import published
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.names import scheme
from envcheck.knowledge.relations.gpu_code import read_targets
from envcheck.knowledge.specifier import Version, covered, parse_specifier, parse_version, speaks_of
from envcheck.knowledge.tables.software import ReleaseRow
from envcheck.model.versions import ComputeCapability
from tests.documents import texts
from tests.every import every
from tests.knowledge.asking import answer, judged, shown, verdict
from tests.thorough import sample

MATRIX = load_matrix()
PAIRED = [row for row in MATRIX.releases if row.source[0].startswith("pairings/")]
MEASURED = [row for row in MATRIX.releases if row.source[0].startswith("gpu-code/") and row.targets]
DESCRIBED = [
    row
    for row in MATRIX.releases
    if row.source[0].startswith("documented-gpus/") and (row.capability_min or row.capabilities)
]
CAPABILITIES = sorted(MATRIX.capability_rows)


def asked(row: ReleaseRow) -> str:
    """A release of a row as a question names it: one that PyPI lists, where it lists any."""
    listed = [version for version in releases(row.name) if speaks_of(row.versions, version) == "all"]
    bound = next(one for one in parse_specifier(row.versions).bounds if one.operator in ("==", ">="))
    padded = Version((*bound.numbers, 0, 0)[: max(len(bound.numbers), 3)], post=bound.post)
    return f"{row.name}=={listed[0] if listed else padded}"


def releases(name: str) -> list[Version]:
    """The releases of a component that are known, ascending."""
    if name == "torch":
        return sorted(version for row in MATRIX.torch if (version := parse_version(row.version)))
    return [version for version in published(MATRIX, name) if not version.pre and version.post is None]


def needs_with_neighbours() -> Iterator[tuple[ReleaseRow, str, Version | None, Version | None]]:
    """Each need that has a beginning, with the newest release before it and the oldest one that is within it."""
    for row in PAIRED:
        for key, spec in row.needs.items():
            if spec.startswith("<"):
                continue
            known = releases(key)
            within = [version for version in known if covered(spec, version) == "all"]
            before = [version for version in known if within and version < within[0]]
            yield row, key, before[-1] if before else None, within[0] if within else None


def told(question: str, key: str) -> set[str]:
    """What the answer says of one need, whatever the Pythons of both."""
    reasons = [each for each in judged(question).reasons if not each.message.startswith("no Python can have both")]
    return {reason.verdict for reason in reasons if key in reason.message.partition(";")[0].split()}


@every(sample([each for each in needs_with_neighbours() if each[3]], 2))
def test_a_need_begins_with_the_release_that_documents_name(
    row: ReleaseRow, key: str, before: Version | None, first: Version
) -> None:
    doubted = key in row.disputed or covered(f"<={row.known.get(key, first)}", first) == "none"
    found = told(f"{asked(row)} {key}=={first}", key)
    assert found <= {"compatible", "unknown"}
    assert ("unknown" if doubted else "compatible") in found
    if before:
        assert "incompatible" in told(f"{asked(row)} {key}=={before}", key)


@every([(row, key, spec) for row in PAIRED for key, spec in row.needs.items() if "," not in spec and spec[:2] != ">="])
def test_a_need_ends_with_the_release_that_lost_what_is_imported(row: ReleaseRow, key: str, spec: str) -> None:
    beyond = [version for version in releases(key) if covered(spec, version) == "none"]
    assert not beyond or "incompatible" in told(f"{asked(row)} {key}=={beyond[-1]}", key)


@every(sample(MEASURED, 2))
def test_the_gpus_of_a_wheel_are_those_that_its_code_is_for(row: ReleaseRow) -> None:
    held = [target.capability for target in read_targets(row.targets) if not target.ptx]
    native = [each for each in held if not MATRIX.capability_rows[each].tegra]
    for capability in native:
        found = judged(f"{asked(row)} gpu=={capability.sm}")
        assert found.verdict == "compatible", shown(found)
    older = [each for each in CAPABILITIES if each < min(native) and not MATRIX.capability_rows[each].tegra]
    if older:
        found = judged(f"{asked(row)} gpu=={older[-1].sm}")
        assert found.verdict == "incompatible", shown(found)


@every(sample(DESCRIBED, 2))
def test_documents_refuse_an_older_gpu_than_they_name(row: ReleaseRow) -> None:
    least = ComputeCapability.parse(row.capability_min or row.capabilities[0])
    older = [each for each in CAPABILITIES if least and each < least and not MATRIX.capability_rows[each].tegra]
    if older:
        found = judged(f"{asked(row)} gpu=={older[-1].sm}")
        assert found.verdict == "incompatible", shown(found)


@every([row for row in DESCRIBED if "capability" in row.disputed])
def test_a_gpu_about_which_sources_disagree_is_left_open(row: ReleaseRow) -> None:
    named = [each for text in row.capabilities if (each := ComputeCapability.parse(text))]
    least = ComputeCapability.parse(row.capability_min)
    inside = [each for each in CAPABILITIES if least and each >= least and (not named or each in named)]
    doubted = [each for each in inside if covered(row.disputed["capability"], Version(tuple(each))) != "none"]
    assert doubted
    found = judged(f"{asked(row)} gpu=={doubted[0].sm}")
    assert found.verdict == "unknown", shown(found)
    assert row.note in found.reasons[0].message


def test_the_newest_release_is_chosen_whichever_file_speaks_of_it() -> None:
    bounds = release_for(MATRIX, "transformers", "torch", "2.5.1")
    assert bounds
    assert parse_specifier(bounds).bounds[0].numbers > (5,)


# --- Packages that are compiled against PyTorch ---------------------------------------------------------------------
ROWS = (Path(__file__).with_name("data") / "extensions.toml").read_text(encoding="utf-8")


_DOCUMENT = (Path(__file__).with_name("data") / "compiled.txt").read_text(encoding="utf-8")
COMPILED = {name: text.splitlines() for name, _, text in texts(_DOCUMENT)}


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Matrix:
    folder = tmp_path_factory.mktemp("own")
    (folder / "rows.toml").write_text(ROWS)
    return load_matrix((str(folder),))


@pytest.mark.parametrize("question", COMPILED["another major of CUDA"])
def test_pytorch_refuses_another_major(matrix: Matrix, question: str) -> None:
    found = answer(question, matrix)
    assert found.verdict == "incompatible", shown(found)
    assert "PyTorch refuses nvcc" in found.reasons[0].message
    assert found.reasons[0].sources
    if "cuda==" not in question:
        assert any(each.startswith(("nvcc ", "torch ")) for each in found.suggestions)


@pytest.mark.parametrize("question", COMPILED["another minor of CUDA"])
def test_another_minor_is_none(matrix: Matrix, question: str) -> None:
    found = answer(question, matrix)
    assert found.verdict == "compatible", shown(found)


def test_apex_refuses_another_minor_too(matrix: Matrix) -> None:
    found = answer("apex==0.1 nvcc==12.6 torch==2.5.1+cu124", matrix)
    assert found.verdict == "incompatible", shown(found)
    assert "it refuses nvcc 12.6, which has another minor version" in found.reasons[0].message
    assert "nvcc 12.4" in found.suggestions


@pytest.mark.parametrize("question", COMPILED["what nvcc itself needs"])
def test_what_nvcc_itself_needs_holds_for_an_extension(matrix: Matrix, question: str) -> None:
    assert answer(question, matrix).verdict == "incompatible"


@pytest.mark.parametrize("question", COMPILED["nothing is compiled, or no row tells"])
def test_where_nothing_is_compiled_or_no_row_tells_it_is_open(matrix: Matrix, question: str) -> None:
    found = answer(question, matrix)
    assert found.verdict != "incompatible", shown(found)


def test_what_is_open_says_why(matrix: Matrix) -> None:
    found = answer("nvcc==12.4 torch==2.5.1+cu118", matrix)
    assert found.verdict == "unknown"
    assert "runs without nvcc" in found.reasons[0].message


def compiled() -> list[ReleaseRow]:
    """What is compiled against PyTorch 2.5.1, and by nvcc 12.6."""
    found: list[ReleaseRow] = []
    for row in load_matrix().releases:
        needs = [(row.needs.get(name, ""), parse_version(text, scheme(name))) for name, text in BESIDE]
        if all(spec and version and covered(spec, version) == "all" for spec, version in needs):
            found.append(row)
    return [row for row in found if published(load_matrix(), row.name)]


BESIDE = (("torch", "2.5.1"), ("nvcc", "12.6"))


@every(compiled)
def test_a_toolkit_beside_another_cuda_of_pytorch_is_not_refused(row: ReleaseRow) -> None:
    version = next(one for one in published(load_matrix(), row.name) if speaks_of(row.versions, one) == "all")
    asked = f"{row.name}=={version} torch==2.5.1"
    assert verdict(f"{asked} cuda==12.6") == "unknown"
    assert verdict(f"{asked} cuda==13.0") == "incompatible"
