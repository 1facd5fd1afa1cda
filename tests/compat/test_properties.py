"""What must hold for every question, whatever the rows say and whoever asks."""

from hypothesis import assume, event, example, given, settings
from hypothesis import strategies as st

from envcheck.compat.answer import ask
from envcheck.compat.choose import evaluate
from envcheck.compat.question import exactly
from envcheck.compat.reading import gpu_of
from envcheck.errors import UsageError
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.names import SETS, canonical
from envcheck.knowledge.relations.driver import architecture_of
from envcheck.knowledge.specifier import Version, parse_specifier
from envcheck.model.components import Component, parse_components
from envcheck.model.versions import DriverRelease
from tests.every import cases
from tests.thorough import examples

MATRIX = load_matrix()
FIXED = ("os", "machine")

DRIVERS = sorted(
    {
        DriverRelease.parse(text) or DriverRelease(0, 0)
        for row in MATRIX.cuda
        for text in (row.driver_linux, row.bundled_driver, row.disputed_linux)
        if text
    }
    | {DriverRelease(row.branch, minor) for row in MATRIX.drivers for minor in (1, 200)}
    | {DriverRelease(900, 10)}
)
NAMES = sorted({row.name for row in MATRIX.releases} - {"cuda-compat", "kernel-module-open", "torch-extension"})


def component(name: str, values: list[str]) -> st.SearchStrategy[Component]:
    return st.sampled_from(values).map(lambda value: exactly(name, value))


def versions(name: str) -> list[str]:
    found = [str(version) for version in MATRIX.known_versions(name)]
    return [*found, *(text.rpartition(".")[0] for text in found if text.count(".") > 1)] or ["1.0"]


GPUS = component(
    "gpu", [row.name for row in MATRIX.gpus] + [f"sm_{row.capability.replace('.', '')}" for row in MATRIX.capabilities]
)
DRIVER = component("driver", [str(driver) for driver in DRIVERS] + ["450", "535", "580"])
CUDA = component("cuda", [row.version for row in MATRIX.cuda] + ["11", "12", "13"])
NVCC = component("nvcc", [row.version for row in MATRIX.cuda])
PYTHON = component("python", [f"3.{minor}" for minor in range(5, 16)] + ["2.7"])
GCC = component("gcc", [str(number) for number in range(4, 18)])
MODULE = component("kernel-module", ["open", "proprietary"])
TORCH = component(
    "torch", versions("torch") + [f"{row.version}+{tag}" for row in MATRIX.torch for tag in ("cu118", "cu128", "cpu")]
)
RELEASE = st.sampled_from(NAMES).flatmap(lambda name: component(name, versions(name)))
ANY = st.one_of(GPUS, DRIVER, CUDA, NVCC, PYTHON, GCC, MODULE, TORCH, RELEASE)
SCATTERED = st.lists(ANY, min_size=1, max_size=4, unique_by=lambda item: canonical(item.name))
SPECIAL = {"driver-linux": "driver", "driver-windows": "driver"}
STRATEGIES = {"gpu": GPUS, "driver": DRIVER, "cuda": CUDA, "nvcc": NVCC, "python": PYTHON, "gcc": GCC, "torch": TORCH}


def admitted(specifier: str) -> list[str]:
    """The versions that a specifier names and admits."""
    bounds = (bound for bound in parse_specifier(specifier).bounds if bound.operator in ("==", ">=", "<="))
    return [str(Version(bound.numbers, post=bound.post)) for bound in bounds]


ROWS = st.sampled_from([row for row in MATRIX.releases if row.name in NAMES and admitted(row.versions)])


@st.composite
def related(draw: st.DrawFn) -> list[Component]:
    """A release, some of what it needs, mostly of the versions that it needs, and what else may stand beside it."""
    row = draw(ROWS)
    tag = f"+{row.build}" if row.build and draw(st.booleans()) else ""
    found = {canonical(row.name): exactly(row.name, draw(st.sampled_from(admitted(row.versions))) + tag)}
    for key in draw(st.lists(st.sampled_from(sorted(row.needs)), max_size=3, unique=True)) if row.needs else ():
        name = canonical(SPECIAL.get(key, key))
        texts = admitted(row.needs[key])
        if texts or name in STRATEGIES:
            found[name] = exactly(name, draw(st.sampled_from(texts))) if texts else draw(STRATEGIES[name])
    for name in draw(st.lists(st.sampled_from(sorted(STRATEGIES)), max_size=2, unique=True)):
        found.setdefault(name, draw(STRATEGIES[name]))
    return list(found.values())


QUESTIONS = st.one_of(SCATTERED, related(), related())
PLATFORMS = st.sampled_from([("linux", "x86_64"), ("linux", "aarch64"), ("windows", "x86_64"), ("wsl", "x86_64")])


def on(platform: tuple[str, str], *components: Component) -> list[Component]:
    """The question with its platform spelled out: naming a component must not change it."""
    return [*components, *(exactly(name, value) for name, value in zip(FIXED, platform, strict=True))]


@settings(max_examples=examples(300))
@given(QUESTIONS, ANY, PLATFORMS)
@example([exactly("torch", "2.5.1"), exactly("driver", "470.57.02")], exactly("cuda", "11.8"), ("linux", "x86_64"))
@example([exactly("torch", "2.5.1"), exactly("gpu", "K80")], exactly("cuda", "11.8"), ("linux", "x86_64"))
@example([exactly("torch", "2.5.1"), exactly("gpu", "RTX 4090")], exactly("cuda", "12.4"), ("windows", "x86_64"))
def test_a_further_component_never_mends_what_does_not_fit(
    question: list[Component], further: Component, platform: tuple[str, str]
) -> None:
    assume(canonical(further.name) not in {canonical(item.name) for item in question})
    assume(canonical(further.name) not in SETS)  # within a set its parts fit together
    without = evaluate(MATRIX, on(platform, *question)).verdict
    assert (without, evaluate(MATRIX, on(platform, *question, further)).verdict) != ("incompatible", "compatible")


@settings(max_examples=examples(300))
@given(related(), PLATFORMS)
@example([exactly("torch", "2.7"), exactly("gpu", "RTX 5090"), exactly("cuda", "12")], ("linux", "x86_64"))
@example([exactly("torch", "2.5"), exactly("torchvision", "0.20"), exactly("torchaudio", "2.5.1")], ("linux", "x86_64"))
def test_what_fits_fits_without_any_of_its_components(question: list[Component], platform: tuple[str, str]) -> None:
    fits = len(question) > 1 and evaluate(MATRIX, on(platform, *question)).verdict == "compatible"
    event(f"compatible: {fits}")
    for place in range(len(question) if fits else 0):
        if canonical(question[place].name) in SETS:
            continue  # within a set its parts fit together
        assert evaluate(MATRIX, on(platform, *[*question[:place], *question[place + 1 :]])).verdict != "incompatible"


def generation_ends(components: list[Component]) -> int:
    """The last driver branch that drives every GPU that is named."""
    gpus = [gpu_of(MATRIX, item) for item in components if item.name == "gpu"]
    rows = [architecture_of(MATRIX, gpu.capability) for gpu in gpus if gpu]
    return min((row.last_branch for row in rows if row and row.last_branch), default=10**6)


@settings(max_examples=examples(300))
@given(QUESTIONS, st.sampled_from(DRIVERS), st.sampled_from(DRIVERS), st.sampled_from(["linux", "windows"]))
def test_a_newer_driver_of_the_generation_loses_nothing(
    question: list[Component], one: DriverRelease, other: DriverRelease, os: str
) -> None:
    rest = [item for item in question if item.name != "driver"]
    older, newer = sorted((one, other))
    assume(newer.branch <= generation_ends(rest))
    verdicts = [
        evaluate(MATRIX, on((os, "x86_64"), *rest, exactly("driver", str(driver)))).verdict for driver in (older, newer)
    ]
    assert verdicts != ["compatible", "incompatible"]


@settings(max_examples=examples(200))
@given(QUESTIONS, PLATFORMS)
def test_an_answer_says_why_and_its_suggestions_are_new(question: list[Component], platform: tuple[str, str]) -> None:
    found = ask(MATRIX, on(platform, *question))
    assert found.reasons
    assert found.verdict in {reason.verdict for reason in found.reasons}
    if found.verdict == "incompatible":
        assert found.reasons[0].verdict == "incompatible"
        assert found.reasons[0].sources
    assert not {f"{item.name} {item.exact}" for item in question} & set(found.suggestions)


@settings(max_examples=examples(150))
@given(QUESTIONS, PLATFORMS, st.randoms(use_true_random=False))
def test_the_order_of_naming_does_not_matter(
    question: list[Component], platform: tuple[str, str], random: object
) -> None:
    shuffled = list(question)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # a random.Random
    assert ask(MATRIX, on(platform, *question)).verdict == ask(MATRIX, on(platform, *shuffled)).verdict


texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=20)


@settings(max_examples=examples(300))
@given(
    st.sampled_from(
        ["driver", "gpu", "cuda", "nvcc", "os", "machine", "kernel-module", "torch", "cudnn", "cuda-compat", "x"]
    ),
    texts,
)
def test_any_value_is_answered(name: str, value: str) -> None:
    found = ask(MATRIX, [exactly(name, value), exactly("driver" if name != "driver" else "cuda", "12.4")])
    assert found.verdict in ("compatible", "incompatible", "unknown")


# --- Questions that nobody means to ask get an answer or one sentence -----------------------------------------------
NAMES_HOSTILE = (
    "cuda", "nvcc", "cuda-compat", "driver", "gpu", "torch", "python", "cudnn", "nccl", "tensorrt", "tensorrt-engine",
    "jax", "mxnet", "jetpack", "os", "machine", "kernel-module", "nothing-of-that-name",
)  # fmt: skip
VERSIONS = (
    *("0", "1", "5", "9.0", "9.1.0", "12", "12.4", "13.4", "535", "550.54.14", "9999", "2.5.1", "2.5.1+cu124"),
    *("3.12", "999999999", "9" * 5000, "1.*", "=12.4", "2.0a1", "1.2.3.4.5.6.7", "1!2", "x", "sm_90", "linux"),
)


def answered(*texts: str) -> str:
    components: list[Component] = []
    try:
        for text in texts:
            components += parse_components(text)
        return ask(load_matrix(), components).verdict
    except UsageError as error:
        return str(error)


@cases("texts",
    ("cuda<9.0", "torch==2.5.1"), ("cuda===12.4", "mxnet<9"), ("cuda~=9.1.0", "mxnet<5"), ("driver>9999", "mxnet<5"),
    ("gpu==NoSuchGPU9999", "driver==1.2.3"),
)  # fmt: skip
def test_what_names_no_known_release_is_unknown(texts: tuple[str, ...]) -> None:
    assert answered(*texts) in ("unknown", "incompatible")


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(NAMES_HOSTILE),
            st.sampled_from(("==", ">=", "<=", "~=", ">", "<", "!=", "===")),
            st.sampled_from(VERSIONS),
        ),
        min_size=1,
        max_size=3,
    )
)
def test_any_operator_with_any_version(asked: list[tuple[str, str, str]]) -> None:
    assert answered(*(f"{name}{operator}{version}" for name, operator, version in asked))
