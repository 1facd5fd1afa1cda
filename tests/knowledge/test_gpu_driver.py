"""Which driver drives which GPU, and which GPU code runs on it."""

from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.relations.driver import architecture_of, driver_supports, module_supports
from envcheck.knowledge.relations.fit import FitVerdict
from envcheck.knowledge.relations.gpu_code import code_runs_on, runs_natively
from envcheck.knowledge.tables import Os
from envcheck.model.versions import CodeTarget, ComputeCapability, CudaVersion, DriverRelease, Flavour
from tests.every import cases, every, every_tabled, tabled
from tests.known import known

MATRIX = load_matrix()
DISCRETE = [
    parsed for row in MATRIX.capabilities if not row.tegra and (parsed := ComputeCapability.parse(row.capability))
]


def gpu(text: str) -> ComputeCapability:
    return known(ComputeCapability.parse(text))


def release(text: str) -> DriverRelease:
    return known(DriverRelease.parse(text))


@every_tabled
def test_which_drives_which(capability: str, driver: str, os: Os, flavour: Flavour | None, verdict: str) -> None:
    fit = driver_supports(MATRIX, gpu(capability), release(driver), os, flavour)
    assert fit.verdict == verdict, fit.reason


def test_a_dropped_generation_is_told_its_last_branch() -> None:
    fit = driver_supports(MATRIX, gpu("7.0"), release("595.58.03"))
    assert fit.reason == "driver 595.58.03 has dropped Volta GPUs (sm_70); R580 is its last branch"
    assert fit.nearest_change == "driver R580"
    assert fit.sources


def test_grace_hopper_needs_the_open_module_though_hopper_does_not() -> None:
    model = MATRIX.find_gpu("NVIDIA GH200 480GB")
    fit = driver_supports(MATRIX, gpu("9.0"), release("550.54.14"), flavour="proprietary", model=model)
    assert fit.bad
    assert fit.reason == "only the open kernel module supports GH200 480GB"
    plain = MATRIX.find_gpu("NVIDIA H100 80GB HBM3")
    assert driver_supports(MATRIX, gpu("9.0"), release("550.54.14"), flavour="proprietary", model=plain).ok


@given(st.sampled_from(DISCRETE), st.integers(367, 700), st.integers(367, 700))
def test_while_supported_a_newer_driver_drives_no_less(capability: ComputeCapability, one: int, other: int) -> None:
    architecture = known(architecture_of(MATRIX, capability))
    older, newer = sorted((one, other))
    if newer > (architecture.last_branch or 9999):
        return
    if driver_supports(MATRIX, capability, DriverRelease(older, 10)).ok:
        assert driver_supports(MATRIX, capability, DriverRelease(newer, 10)).ok


@tabled
def test_a_flavour_alone(capability: str, flavour: Flavour, verdict: str) -> None:
    assert module_supports(MATRIX, known(ComputeCapability.parse(capability)), flavour).verdict == verdict


@every_tabled
def test_a_model_may_come_later_than_its_generation(model: str, driver: str, os: Os, verdict: str) -> None:
    row = known(MATRIX.find_gpu(model))
    fit = driver_supports(MATRIX, gpu(row.compute_capability), release(driver), os, model=row)
    assert fit.verdict == verdict, fit.reason
    assert fit.ok or row.first_drivers == () or fit.nearest_change.startswith("driver >= ")


FIRST_GENERATION = [row for row in MATRIX.gpus if row.compute_capability.startswith("1.")]


def test_r340_is_the_last_branch_of_the_first_generation() -> None:
    assert len(FIRST_GENERATION) > 100
    for row in FIRST_GENERATION:
        for text, verdict in (("340.108", "compatible"), ("343.36", "incompatible"), ("550.163.01", "incompatible")):
            fit = driver_supports(MATRIX, gpu(row.compute_capability), release(text), model=row)
            assert fit.verdict == verdict, (row.name, text)


def test_a_model_may_end_before_its_generation() -> None:
    ended = [row for row in MATRIX.gpus if row.last_branch]
    branches = sorted(row.branch for row in MATRIX.drivers if row.os == "linux")
    assert ended
    for row in ended:
        assert row.last_branch is not None
        after = branches[branches.index(row.last_branch) + 1]
        capability = gpu(row.compute_capability)
        assert row.last_branch < (known(architecture_of(MATRIX, capability)).last_branch or after)
        assert driver_supports(MATRIX, capability, release(f"{row.last_branch}.99"), model=row).verdict == "compatible"
        fit = driver_supports(MATRIX, capability, release(f"{after}.10"), model=row)
        assert fit.verdict == "incompatible"
        assert f"R{row.last_branch} is its last branch" in fit.reason


@every([row.branch for row in MATRIX.drivers if row.capabilities])
def test_a_branch_that_is_known_by_its_capabilities_drives_those_alone(branch: int) -> None:
    (row,) = (row for row in MATRIX.drivers if row.branch == branch and row.os == "linux")
    for capability in DISCRETE:
        fit = driver_supports(MATRIX, capability, release(f"{branch}.108"))
        assert fit.verdict == ("compatible" if str(capability) in row.capabilities else "incompatible"), capability


@every("341.10", "352.63", "361.42", "364.19")
def test_of_other_old_branches_nobody_can_tell(text: str) -> None:
    for capability in ("2.1", "3.5", "5.0", "5.2", "6.0"):
        assert driver_supports(MATRIX, gpu(capability), release(text)).verdict == "unknown", capability


def test_a_release_adds_a_model_to_its_branch() -> None:
    rows = [row for row in MATRIX.gpus if row.added_by]
    branches = {row.branch for row in MATRIX.drivers if row.os == "linux"}
    assert len(rows) > 100
    for row in rows:
        added, capability = release(row.added_by), gpu(row.compute_capability)
        assert added.branch in branches
        assert not row.first_drivers, row.name
        assert driver_supports(MATRIX, capability, added, model=row).verdict == "compatible", row.name
        before = driver_supports(MATRIX, capability, release(f"{added.branch}.01"), model=row)
        assert before.verdict == ("incompatible" if row.lacked_by else "unknown"), row.name
        if row.lacked_by:
            assert release(row.lacked_by) < added
            assert driver_supports(MATRIX, capability, release(row.lacked_by), model=row).verdict == "incompatible"
        for branch in branches:
            if branch < added.branch:
                lower = driver_supports(MATRIX, capability, release(f"{branch}.999"), model=row)
                assert lower.verdict != "compatible", (row.name, branch)


CAPABILITIES = [parsed for row in MATRIX.capabilities if (parsed := ComputeCapability.parse(row.capability))]


def held(text: str) -> list[CodeTarget]:
    parsed = [CodeTarget.parse(word) for word in text.split()]
    assert None not in parsed
    return [target for target in parsed if target]


@every_tabled
def test_native_code(targets: str, capability: str, native: object) -> None:
    (target,) = held(targets)
    assert runs_natively(MATRIX, target, gpu(capability)) is native
    fit = code_runs_on(MATRIX, [target], gpu(capability))
    assert fit.ok is native
    if native:
        assert fit.reason == f"it holds native code for {gpu(capability).sm} ({target})"


@every_tabled
def test_ptx(targets: str, capability: str, speaks: str | None, built: str | None, verdict: str) -> None:
    versions = {"driver_cuda": CudaVersion.parse(speaks), "built_with": CudaVersion.parse(built)}
    fit = code_runs_on(MATRIX, held(targets), gpu(capability), **versions)
    assert fit.verdict == verdict, fit.reason
    if verdict != "incompatible" or capability == "20.0":
        assert "only PTX" in fit.reason


@cases("about, targets, capability, verdict, reason",
    ("what is held is named when nothing runs", "sm_75 sm_80 sm_86 sm_90", "12.0", "incompatible",
     "it holds GPU code for sm_75 sm_80 sm_86 sm_90, none of which runs on sm_120"),
    ("the nearest native code is named", "sm_86 sm_37 sm_80", "8.9", "compatible",
     "it holds native code for sm_89 (sm_86)"),
    ("nothing known", "", "9.0", "unknown", ""),
    ("a renamed capability is not judged", "sm_90 sm_101", "11.0", "unknown", "former name"),
    ("an unlisted capability follows the general rule", "sm_130", "13.2", "compatible", ""),
    ("and does so below", "sm_132", "13.0", "incompatible", ""),
    ("Tegra is named as the reason", "sm_80 sm_90", "8.7", "incompatible",
     "; cubins of discrete GPUs and of Tegra systems do not serve each other"),
)  # fmt: skip
def test_code_on_a_gpu(about: str, targets: str, capability: str, verdict: str, reason: str) -> None:
    fit = code_runs_on(MATRIX, held(targets), gpu(capability))
    assert fit.verdict == verdict
    assert reason in fit.reason


def test_native_code_needs_no_word_of_the_driver() -> None:
    assert code_runs_on(MATRIX, held("sm_90 compute_90"), gpu("9.0"), driver_cuda=CudaVersion(11, 0)).ok


def test_what_would_do_and_who_says_so() -> None:
    assert code_runs_on(MATRIX, held("sm_75 sm_80"), gpu("12.0")).nearest_change == "a build with code for sm_120"
    sources = code_runs_on(MATRIX, held("sm_80 sm_90"), gpu("8.7")).sources
    assert any("Binary Compatibility" in source.title for source in sources)


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
