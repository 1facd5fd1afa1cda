from __future__ import annotations

from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from envcheck.compat.load import load_matrix
from envcheck.compat.relations.fit import FitVerdict
from envcheck.compat.relations.gpu_code import code_runs_on, runs_natively
from envcheck.versions import CodeTarget, ComputeCapability, CudaVersion
from tests.every import every

MATRIX = load_matrix()
CAPABILITIES = [parsed for row in MATRIX.capabilities if (parsed := ComputeCapability.parse(row.capability))]


def held(text: str) -> list[CodeTarget]:
    parsed = [CodeTarget.parse(word) for word in text.split()]
    assert None not in parsed
    return [target for target in parsed if target]


def gpu(text: str) -> ComputeCapability:
    parsed = ComputeCapability.parse(text)
    assert parsed is not None
    return parsed


@every(
    [
        # the same major, a minor no newer
        ("sm_86", "8.6", True),
        ("sm_80", "8.6", True),
        ("sm_86", "8.9", True),
        ("sm_86", "8.0", False),
        ("sm_90", "12.0", False),
        ("sm_60", "6.1", True),
        ("sm_61", "6.0", False),
        ("sm_37", "3.5", False),
        ("sm_50", "5.2", True),
        # the Blackwell generation has three majors
        ("sm_100", "10.3", True),
        ("sm_103", "10.0", False),
        ("sm_120", "12.1", True),
        ("sm_121", "12.0", False),
        ("sm_120", "10.0", False),
        ("sm_100", "12.0", False),
        ("sm_100", "11.0", False),
        # Tegra and discrete GPUs do not serve each other, nor one Tegra another
        ("sm_80", "8.7", False),
        ("sm_86", "8.7", False),
        ("sm_87", "8.7", True),
        ("sm_87", "8.9", False),
        ("sm_50", "5.3", False),
        ("sm_60", "6.2", False),
        ("sm_70", "7.2", False),
        ("sm_72", "7.5", False),
        ("sm_100", "10.1", False),
        ("sm_110", "11.0", True),
        # architecture-specific code: exactly its own
        ("sm_90a", "9.0", True),
        ("sm_100a", "10.0", True),
        ("sm_100a", "10.3", False),
        ("sm_120a", "12.1", False),
        # family-specific code: its family
        ("sm_100f", "10.0", True),
        ("sm_100f", "10.3", True),
        ("sm_100f", "10.7", True),
        ("sm_103f", "10.0", False),
        ("sm_100f", "12.0", False),
        ("sm_100f", "11.0", False),
        ("sm_120f", "12.1", True),
        ("sm_121f", "12.0", False),
    ]
)
def test_native_code(targets: str, capability: str, native: object) -> None:
    (target,) = held(targets)
    assert runs_natively(MATRIX, target, gpu(capability)) is native
    fit = code_runs_on(MATRIX, [target], gpu(capability))
    assert fit.ok is native
    if native:
        assert fit.reason == f"it holds native code for {gpu(capability).sm} ({target})"


@every(
    [
        ("sm_50 sm_90 compute_90", "12.0", "12.8", "12.4", "compatible"),
        ("sm_50 sm_90 compute_90", "12.0", "12.4", "12.4", "compatible"),
        ("compute_90", "12.0", "12.2", "12.4", "incompatible"),
        # 12.5 and 12.6 write the same PTX, and 12.7 reads one newer than theirs
        ("compute_90", "12.0", "12.5", "12.6", "compatible"),
        ("compute_90", "12.0", "12.7", "12.6", "compatible"),
        ("compute_100", "12.0", "12.7", "12.8", "incompatible"),
        # PTX serves Tegra too, and never an older GPU
        ("sm_80 compute_80", "8.7", "12.6", "12.6", "compatible"),
        ("compute_90", "8.6", "12.8", "12.4", "incompatible"),
        ("compute_120", "10.0", "13.0", "12.8", "incompatible"),
        # `a` PTX only on its own, `f` PTX in its family
        ("compute_90a", "12.0", "12.8", "12.4", "incompatible"),
        ("compute_90a", "9.0", "12.8", "12.4", "compatible"),
        ("compute_100f", "10.3", "13.0", "12.9", "compatible"),
        ("compute_100f", "12.0", "13.0", "12.9", "incompatible"),
        # one of the two versions is not known
        ("compute_90", "12.0", None, "12.4", "unknown"),
        ("compute_90", "12.0", "12.8", None, "unknown"),
        # newer than the data
        ("compute_90", "20.0", "15.0", "14.1", "compatible"),
        ("compute_90", "20.0", "14.0", "14.1", "incompatible"),
    ]
)
def test_ptx(targets: str, capability: str, speaks: str | None, built: str | None, verdict: str) -> None:
    fit = code_runs_on(
        MATRIX,
        held(targets),
        gpu(capability),
        driver_cuda=CudaVersion.parse(speaks),
        built_with=CudaVersion.parse(built),
    )
    assert fit.verdict == verdict, fit.reason
    if verdict != "incompatible" or capability == "20.0":
        assert "only PTX" in fit.reason


def test_native_code_needs_no_word_of_the_driver() -> None:
    assert code_runs_on(MATRIX, held("sm_90 compute_90"), gpu("9.0"), driver_cuda=CudaVersion(11, 0)).ok


def test_what_is_held_is_named_when_nothing_runs() -> None:
    fit = code_runs_on(MATRIX, held("sm_75 sm_80 sm_86 sm_90"), gpu("12.0"))
    assert fit.reason == "it holds GPU code for sm_75 sm_80 sm_86 sm_90, none of which runs on sm_120"
    assert fit.nearest_change == "a build with code for sm_120"


def test_tegra_is_named_as_the_reason() -> None:
    fit = code_runs_on(MATRIX, held("sm_80 sm_90"), gpu("8.7"))
    assert fit.bad
    assert fit.reason.endswith("; cubins of discrete GPUs and of Tegra systems do not serve each other")
    assert any("Binary Compatibility" in source.title for source in fit.sources)


def test_the_nearest_native_code_is_named() -> None:
    fit = code_runs_on(MATRIX, held("sm_86 sm_37 sm_80"), gpu("8.9"))
    assert fit.reason == "it holds native code for sm_89 (sm_86)"


def test_nothing_known_is_unknown() -> None:
    assert code_runs_on(MATRIX, [], gpu("9.0")).verdict == "unknown"


def test_a_renamed_capability_is_not_judged() -> None:
    fit = code_runs_on(MATRIX, held("sm_90 sm_101"), gpu("11.0"))
    assert fit.verdict == "unknown"
    assert "former name" in fit.reason


def test_an_unlisted_capability_follows_the_general_rule() -> None:
    assert code_runs_on(MATRIX, held("sm_130"), gpu("13.2")).ok
    assert code_runs_on(MATRIX, held("sm_132"), gpu("13.0")).bad


some_target = st.builds(
    CodeTarget, st.sampled_from(CAPABILITIES), st.booleans(), st.sampled_from(["", "", "", "a", "f"])
)
some_cuda = st.builds(CudaVersion, st.integers(9, 14), st.integers(0, 9))
MORE: dict[str, int] = {"incompatible": 0, "unknown": 1, "compatible": 2}


@given(st.lists(some_target, min_size=1, max_size=6), some_target, st.sampled_from(CAPABILITIES), some_cuda, some_cuda)
def test_more_code_never_runs_on_less(
    targets: list[CodeTarget], extra: CodeTarget, capability: ComputeCapability, speaks: CudaVersion, built: CudaVersion
) -> None:
    less = code_runs_on(MATRIX, targets, capability, driver_cuda=speaks, built_with=built)
    more = code_runs_on(MATRIX, [*targets, extra], capability, driver_cuda=speaks, built_with=built)
    assert set(MORE) == set(get_args(FitVerdict))
    if less.ok:
        assert more.ok


@given(st.lists(some_target, min_size=1, max_size=6), st.sampled_from(CAPABILITIES), some_cuda, some_cuda, some_cuda)
def test_a_driver_that_speaks_a_newer_cuda_never_runs_less(
    targets: list[CodeTarget], capability: ComputeCapability, one: CudaVersion, other: CudaVersion, built: CudaVersion
) -> None:
    older, newer = sorted((one, other))
    before = code_runs_on(MATRIX, targets, capability, driver_cuda=older, built_with=built)
    after = code_runs_on(MATRIX, targets, capability, driver_cuda=newer, built_with=built)
    assert MORE[before.verdict] <= MORE[after.verdict]
