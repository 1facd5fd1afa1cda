"""The public API: what it costs to import, what its functions take, and what they return."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import envcheck
from envcheck.model.snapshot import Driver, Gpu, Listing, Snapshot
from tests.cli.calling import ROOT
from tests.every import cases
from tests.known import known

_HEAVY = ("msgspec", "packaging", "argparse", "torch", "pynvml", "cuda", "textual", "subprocess")


def imported_by(code: str) -> set[str]:
    """What a fresh interpreter imports for ``code`` beyond what it starts with."""
    program = f"import sys; before = set(sys.modules)\n{code}\nprint(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, check=True, timeout=120)
    return set(done.stdout.decode().split())


def test_importing_envcheck_imports_nothing_else() -> None:
    assert imported_by("import envcheck") <= {"envcheck", "__future__"}


def test_every_public_name_is_there() -> None:
    assert {name: getattr(envcheck, name, None) for name in envcheck.__all__ if not hasattr(envcheck, name)} == {}
    assert not hasattr(envcheck, "no_such_name")


def test_a_requirement_imports_nothing_of_what_it_is_about() -> None:
    names = imported_by("import envcheck; envcheck.require('python>=3.10', 'msgspec>=0.1')")
    assert "envcheck.requirements" in names
    assert names.isdisjoint(_HEAVY)
    assert {name for name in names if name.startswith("envcheck.")} <= {
        "envcheck.requirements",
        "envcheck.knowledge",
        "envcheck.knowledge.names",
        "envcheck.knowledge.specifier",
        "envcheck.model",
        "envcheck.model.bounds",
        "envcheck.model.components",
        "envcheck.errors",
        "envcheck.text",
        "envcheck.text.lazy",
    }


def test_a_requirement_on_a_gpu_imports_neither_rules_nor_drivers() -> None:
    names = imported_by("from envcheck.knowledge.gpu_names import find_model; find_model('H100')")
    assert "envcheck.knowledge.tables" in names
    assert names.isdisjoint(
        {"pynvml", "cuda", "textual", "envcheck.rules.api", "envcheck.pipeline", "envcheck.collect"}
    )


def test_snapshot_returns_what_is_here() -> None:
    facts = envcheck.snapshot(timeout=60)
    assert isinstance(facts, envcheck.Snapshot)
    judged = next(env for env in known(facts.environments).items if env.judged)
    assert judged.python == ".".join(map(str, sys.version_info[:3]))
    assert Path(judged.prefix or "") == Path(sys.prefix)


def test_given_facts_are_judged() -> None:
    facts = Snapshot(
        driver=Driver(source="file", release="550.54.14"),
        gpus=Listing(
            items=(Gpu(source="nvml", uuid="GPU-1", name="NVIDIA T4", compute_capability="7.5"),), complete=True
        ),
    )
    report = envcheck.check(given=facts, require="gpu>=sm_80", scopes={"node"})
    assert (report.exit_code, report.primary) == (1, "requirement-not-met")
    assert "gpu>=sm_80 is required; found NVIDIA T4" in {check.message for check in report.checks}
    met = envcheck.check(given=facts, require=["gpu>=sm_75", "driver>=550"], scopes={"node"})
    held = {check.id: check.status for check in met.checks if check.rule == "requirement-not-met"}
    assert held == {"requirement-not-met@gpu>=sm_75": "pass", "requirement-not-met@driver>=550": "pass"}


def test_an_unknown_capability_is_neither_met_nor_missed() -> None:
    nameless = Snapshot(gpus=Listing(items=(Gpu(source="pci", uuid="GPU-1", name="NVIDIA Z9"),), complete=True))
    report = envcheck.check(given=nameless, require="gpu!=sm_80", scopes={"node"})
    assert next(check for check in report.checks if check.rule == "requirement-not-met").status == "unknown"
    assert report.exit_code != 0


@cases("arguments, words",
    ({"scopes": ["cluster"]}, "choose from container, env, node"), ({"scopes": []}, "choose from"),
    ({"require": "torch"}, "require: cannot read 'torch'"), ({"require": "gpu~=sm_80"}, "not with ~="),
    ({"assume": "gpu"}, "assume: cannot read 'gpu'"), ({"only": "no-such-rule"}, "there is no rule 'no-such-rule'"),
    ({"python": ""}, "python: an empty path"), ({"given": Snapshot(), "deep": True}, "use one of them"),
    ({"given": {}}, "given: write a Snapshot"), ({"fail_on": "never"}, "fail_on: choose from fail, warn"),
    ({"timeout": "5"}, "timeout: write seconds"), ({"timeout": 0}, "timeout: write seconds"),
    ({"python": 3}, "python: write a path"), ({"require": 3}, "require: write a text"),
    ({"require": [None]}, "require: write a text"), ({"skip": 3}, "skip: write a text"),
)  # fmt: skip
def test_what_cannot_be_carried_out_is_one_sentence(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(envcheck.UsageError, match=words):
        envcheck.check(**arguments)  # type: ignore[arg-type]


def test_a_report_of_the_api_is_the_report_of_the_command_line() -> None:
    facts = msgspec.json.decode((ROOT / "tests/machines/h200.json").read_bytes())["snapshot"]
    report = envcheck.check(given=msgspec.convert(facts, Snapshot))
    assert (report.verdict, report.exit_code) == ("pass", 0)
