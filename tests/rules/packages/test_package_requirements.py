"""What packages that are no frameworks require: judged as ``pip check`` does, and mended for all that ask."""

from typing import Any

from envcheck.model.snapshot import Distribution, Environment
from tests.every import cases
from tests.rules.engine.test_rules_offered import offered
from tests.rules.machines import VENV, but, check_of, framework, statuses, torch
from tests.rules.packages.packages_here import dist, having, on

RULE = "package-requirement-broken"
PIP = (f"{VENV}/bin/python", "-m", "pip", "install")


def transformers(*lines: str, **changes: Any) -> Distribution:
    return dist("transformers", "99.1", requires=lines, **changes)


def env(*distributions: Distribution, **changes: Any) -> Environment:
    return having(torch(), distributions=distributions, **changes)


HUB = dist("huggingface-hub", "1.0.1")


@cases("line, there, expected",
    ("huggingface-hub<1.0,>=0.23.2", (HUB,), "warn"),
    ("huggingface-hub", (), "warn"),
    ("huggingface-hub>=0.23", (HUB,), "pass"),
    ("huggingface-hub>=1.0.2", (HUB,), "warn"),
    ("huggingface_hub (>=1.0)", (HUB,), "pass"),
    ("huggingface-hub~=1.0", (dist("huggingface-hub", "1.1.0rc1"),), "pass"),
    ("huggingface-hub<1.0; python_version < '3.9'", (HUB,), "pass"),
    ("setuptools", (), "pass"),
    ("numpy>=3", (dist("numpy", "2.1.3"),), "warn"),
    ("opencv-python", (dist("opencv-python-headless", "4.11.0"),), "pass"),
    ("onnxruntime", (dist("onnxruntime-gpu", "1.20.1"),), "pass"),
)  # fmt: skip
def test_what_another_package_requires(line: str, there: tuple[Distribution, ...], expected: str) -> None:
    assert statuses(RULE, on(env(transformers(line), *there))) == (expected,)


@cases("changes", {"editable": True}, {"channel": "conda"}, {"requires": None},
    {"requires": ("huggingface-hub<1.0; extra == 'dev'",)},
)  # fmt: skip
def test_what_is_not_pips_to_check(changes: dict[str, Any]) -> None:
    owner = but(transformers("huggingface-hub<1.0"), **changes)
    assert statuses(RULE, on(env(owner, HUB))) == ()


@cases("there, expected", ({"installer": "pip"}, ("warn",)), ({"installer": "conda"}, ("pass",)),
    ({"channel": "conda", "installer": "conda"}, ("pass",)))  # fmt: skip
def test_conda_keeps_what_it_requires_but_not_from_pip(there: dict[str, Any], expected: tuple[str, ...]) -> None:
    owner = transformers("huggingface-hub<1.0", installer="conda")
    assert statuses(RULE, on(env(owner, but(HUB, **there)))) == expected


def test_where_not_all_packages_are_known_none_is_missing() -> None:
    assert statuses(RULE, on(env(transformers("huggingface-hub"), distributions_complete=False))) == ()


def test_the_fix_is_for_all_that_ask() -> None:
    """And not for what the release requires that it replaces."""
    tokenizers = dist("tokenizers", "0.20.3", requires=("huggingface-hub<1.0,>=0.16.4",))
    hub = but(HUB, requires=("httpx>=0.23",))
    check = check_of(RULE, on(env(transformers("huggingface-hub<1.0,>=0.23.2"), tokenizers, hub)))
    assert check.title == (
        "transformers 99.1 requires huggingface-hub<1.0,>=0.23.2, but 1.0.1 is installed (and 2 more)"
    )
    assert [fix.command for fix in check.fixes] == [(*PIP, "huggingface-hub>=0.23.2,<1.0")]


def test_where_no_release_serves_both_no_command_breaks_the_other() -> None:
    old, new = (dist(name, "1", requires=(f"huggingface-hub{bounds}",)) for name, bounds in (("a", "<1"), ("b", ">=1")))
    check = offered(on(env(old, new, HUB)))[RULE]
    assert check.status == "warn"
    assert not any(fix.command for fix in check.fixes)


def test_an_installed_fix_ends_it() -> None:
    assert statuses(RULE, on(env(transformers("huggingface-hub<1.0"), dist("huggingface-hub", "0.36.0")))) == ("pass",)


@cases("required, expected", ("torch<2", "warn"), ("torch>=2", "pass"))
def test_what_only_asks_for_another_pytorch_is_not_called_compiled_for_it(required: str, expected: str) -> None:
    found = on(env(dist("some-trainer", "1.0", requires=(required,))))
    rule = "extension-built-for-other-torch"
    assert [each for each in statuses(rule, found) if each != "pass"] == ([expected] if expected == "warn" else [])


@cases("owner, there, expected",
    (("datasets", "2.14.0"), ("pyarrow", "21.0.0"), ["pyarrow>=0.17.1,<21", "datasets"]),
    (("datasets", "2.14.0"), ("pyarrow", "20.0.0"), []),
    (("datasets", "2.14.7"), ("pyarrow", "21.0.0"), []),
    (("librosa", "0.9.2"), ("setuptools", "82.0.1"), ["setuptools<82", "librosa"]),
    (("gradio", "4.44.1"), ("huggingface-hub", "1.0.1"), ["huggingface-hub<1.0", "gradio"]),
    (("gensim", "4.3.2"), ("scipy", "1.14.1"), ["scipy<1.13.0", "gensim"]),
    (("flax", "0.7.5"), ("jax", "0.7.2"), ["flax", "jax<0.4.25"]),
)  # fmt: skip
def test_what_code_requires_and_no_metadata(
    owner: tuple[str, str], there: tuple[str, str], expected: list[str]
) -> None:
    """A newer release of the owner ends it too; it comes first where a framework is too new."""
    listed = (dist(*owner, requires=("click",)), dist(*there), dist("click", "8.1"))
    snapshot = on(having(torch(), framework("jax", "0.7.2"), distributions=listed))
    check = check_of(RULE, snapshot)
    assert [fix.command[-1] for fix in check.fixes] == expected
    assert bool(check.sources) is bool(expected)


def test_what_the_code_of_a_framework_requires() -> None:
    jax = framework("jax", "0.4.23", requires=("scipy>=1.9",))
    listed = (dist("jax", "0.4.23", requires=jax.requires), dist("scipy", "1.14.1"))
    check = check_of("requirement-broken", on(having(jax, distributions=listed)))
    assert check.fixes[0].command[-1] == "scipy>=1.9,<1.13"
    assert [each.source for each in check.evidence if each.what == "jax requires"] == [
        "inferred jax/==0.4.23@linux,wsl"
    ]
