"""Releases that go together, and GPUs, by documents and by measured GPU code: the bounds of rows, and single facts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from envcheck.compat.load import load_matrix
from envcheck.compat.question.package_needs import release_for
from envcheck.compat.question.wheels import published
from envcheck.compat.relations.gpu_code import read_targets
from envcheck.compat.specifier import Version, covered, parse_specifier, parse_version
from envcheck.compat.tables import ReleaseRow
from envcheck.versions import ComputeCapability
from tests.compat.asking import assert_does_not_fit, assert_fits, assert_nobody_can_tell, judged, questions, shown
from tests.every import every
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
    listed = [version for version in releases(row.name) if covered(row.versions, version) == "all"]
    bound = next(one for one in parse_specifier(row.versions).bounds if one.operator in ("==", ">="))
    padded = Version((*bound.numbers, 0, 0)[: max(len(bound.numbers), 3)], post=bound.post)
    return f"{row.name}=={listed[0] if listed else padded}"


def releases(name: str) -> list[Version]:
    """The releases of a component that are known, ascending."""
    if name == "torch":
        return sorted(version for row in MATRIX.torch if (version := parse_version(row.version)))
    return [version for version in published(MATRIX, name) if not version.pre and version.post is None]


def needs_with_neighbours() -> Iterator[tuple[ReleaseRow, str, Version | None, Version | None]]:
    """Each need, with the newest release before it and the oldest one that is within it."""
    for row in PAIRED:
        for key, spec in row.needs.items():
            known = releases(key)
            within = [version for version in known if covered(spec, version) == "all"]
            before = [version for version in known if within and version < within[0]]
            yield row, key, before[-1] if before else None, within[0] if within else None


def told(question: str, key: str) -> set[str]:
    """What the answer says of one need."""
    return {reason.verdict for reason in judged(question).reasons if key in reason.message.partition(";")[0].split()}


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


@every(
    itertools.chain(
        questions("""
pytorch3d==0.7.4 torch==2.0.1
dgl==2.1.0 torch==2.2.1
pyg-lib==0.5.0 torch==2.8.0
transformer-engine==1.5 gpu==A100
mmcv==2.1.0 torch==1.8.0
mmsegmentation==1.2.2 mmcv==2.1.0
mmpose==0.28.0 mmcv-full==1.6.0
mmdet3d==1.4.0 mmdet==3.3.0
torch-geometric==2.7.0 torch==2.6.0
transformers==4.44.0 torch==1.13.1
spconv-cu120==2.3.6 torch==2.1.0
mamba-ssm==2.2.4 causal-conv1d==1.4.0
onnx==1.16.0 onnxruntime==1.18.0
onnxruntime-genai==0.9.0 onnxruntime==1.22.0
vllm==0.11.0 flashinfer-python==0.3.1
torchrec==1.0.0 fbgemm-gpu==1.0.0
cupy-cuda12x==13.4.0 cutensor==2.2
"""),
        questions("""
exllamav3==0.0.5 gpu==RTX,3090
exllamav3==1.6.0 gpu==T4
auto-gptq==0.7.1 gpu==V100
auto-gptq==0.7.1 gpu==RTX,5090
onnxruntime-genai-cuda==0.12.0 gpu==P40
cuda-quantum-cu13==0.14.2 gpu==RTX,5090
isaacsim==4.5.0 gpu==L40S
mamba-ssm==2.2.4 gpu==T4
sglang==0.4.6 gpu==T4
nvmath-python==0.5.0 gpu==V100
spconv-cu102==2.3.6 gpu==A100
"""),
    )
)
def test_fits(question: str) -> None:
    assert_fits(question)


@every(
    itertools.chain(
        questions("""
pytorch3d==0.7.0 torch==1.7.1
dgl==2.1.0 torch==2.2.2
pyg-lib==0.5.0 torch==2.5.0
mmcv==2.2.0 torch==1.7.1
mmsegmentation==1.2.2 mmcv==2.2.0
mmpose==0.28.0 mmcv-full==1.7.0
mmdet3d==1.3.0 mmdet==3.3.0
torch-geometric==2.6.1 torch==1.10.0
transformers==4.40.0 torch==1.10.0
mamba-ssm==2.2.4 torch==1.11.0
gptqmodel==5.0.0 torch==2.7.1
onnxruntime-genai==0.9.0 onnxruntime==1.21.0
vllm==0.11.0 flashinfer-python==0.2.14
exllamav3==0.0.5 torch==2.6.0+cu118
nvmath-python==0.7.0 cuda==11.8
cupy-cuda12x==12.3.0 cutensor==2.0
cuda-quantum-cu12==0.12.0 driver==470.57.02
"""),
        questions("""
exllamav3==0.0.5 gpu==RTX,2080
exllamav3==1.6.0 gpu==V100
sageattention==2.2.0 gpu==T4
nunchaku==1.0.0 gpu==H100
deep-gemm==2.1.0 gpu==RTX,5090
isaacsim==4.5.0 gpu==A100
cuda-quantum-cu12==0.14.2 gpu==B200
mamba-ssm==2.2.4 gpu==RTX,5090
onnxruntime-genai-cuda==0.18.0 gpu==V100
spconv-cu102==2.1.25 gpu==A100
pennylane-lightning-gpu==0.38.0 gpu==P100
"""),
    )
)
def test_does_not_fit(question: str) -> None:
    assert_does_not_fit(question)


@every(
    questions("""
pytorch3d==0.7.8 torch==2.5.1
pytorch3d==0.7.4 python==3.11
torchrec==1.0.0 torch==2.6.0
onnx==1.17.0 onnxruntime==1.18.0
natten==0.21.5 torch==2.7.0
mamba-ssm==2.2.4 causal-conv1d==1.2.0
custatevec-cu12==1.12.0 gpu==V100
sglang==0.5.3 gpu==T4
unsloth==2025.9.1 gpu==GTX,1080
isaacsim==4.5.0 gpu==RTX,2080
auto-gptq==0.7.1 gpu==RTX,4090 os==windows
""")
)
def test_nobody_can_tell(question: str) -> None:
    assert_nobody_can_tell(question)


def test_the_newest_release_is_chosen_whichever_file_speaks_of_it() -> None:
    bounds = release_for(MATRIX, "transformers", "torch", "2.5.1")
    assert bounds
    assert parse_specifier(bounds).bounds[0].numbers > (5,)
