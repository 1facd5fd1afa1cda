"""action.yml: its steps, run with bash as a runner does, on a machine without a GPU.

Not run here, because they need the service: the upload of the artifact, and the evaluation of ``if``. The job "action"
of .github/workflows/ci.yml runs both.
"""

import json
import re
import shutil
import sys
import venv
from pathlib import Path

import pytest
import yaml

from tests.every import cases
from tests.recipes.running import ACTION, ROOT, STEPS, Ran, run_step

PLAN = (ROOT / "tests" / "recipes" / "plans" / "requirements.txt").read_text(encoding="utf-8")
FITS, FAILS = "--assume gpu==A100,driver==515.43.04", "--assume gpu==B200,driver==570.86.10"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """The repository in which the steps run."""
    place = tmp_path / "repository"
    place.mkdir()
    return place


def check(folder: Path, **inputs: str) -> Ran:
    """Run the step "check" beside ``requirements.txt`` with this test's own envcheck."""
    here = folder / "repository"
    here.mkdir(exist_ok=True)
    (here / "requirements.txt").write_text(PLAN, encoding="utf-8")
    given = {key.replace("_", "-"): value for key, value in inputs.items()}
    return run_step("check", here, given, {"install.outputs.bin": str(Path(sys.executable).parent)})


def test_a_plan_that_fits_passes(tmp_path: Path) -> None:
    ran = check(tmp_path, plan="requirements.txt", args=FITS)
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.startswith("::notice title=envcheck%3A pass::")
    assert "::error" not in ran.out
    assert "A100" in ran.summary
    assert ran.outputs["status"] == "0"
    assert json.loads(Path(ran.outputs["report"]).read_text(encoding="utf-8"))["verdict"] == "pass"


def test_a_plan_that_does_not_fit_fails_at_its_line(tmp_path: Path) -> None:
    ran = check(tmp_path, plan="requirements.txt", args=FAILS)
    assert ran.status == 1
    line = PLAN.splitlines().index("torch==2.0.1") + 1
    assert ran.out.startswith(f"::error file=requirements.txt,line={line},title=envcheck%3A torch 2.0.1 has no code")
    assert "gpu-code-missing" in ran.summary
    assert ran.outputs["status"] == "1"
    report = json.loads(Path(ran.outputs["report"]).read_text(encoding="utf-8"))
    assert (report["verdict"], report["primary"]) == ("fail", "gpu-code-missing")


def test_targets_and_the_configuration_count(tmp_path: Path, here: Path) -> None:
    (here / "gpus.toml").write_text(
        '[target.old]\ngpu = "A100"\ndriver = "515.43.04"\n[target.new]\ngpu = "B200"\ndriver = "570.86.10"\n',
        encoding="utf-8",
    )
    (here / "requirements of others.txt").write_text("numpy==1.26.4\n", encoding="utf-8")
    plans = "requirements.txt\n\nrequirements of others.txt\n"
    assert check(tmp_path, plan=plans, config="gpus.toml", target="old").status == 0
    assert check(tmp_path, plan=plans, config="gpus.toml", target="old\nnew\n").status == 1
    wrong = check(tmp_path, plan=plans, config="gpus.toml", target="old", fail_on="always")
    assert (wrong.status, "report" in wrong.outputs) == (2, False)
    assert "--fail-on" in wrong.err


@cases("name, text",
    ("envcheck.toml", "[target.old]\n"), ("pyproject.toml", "[tool.other]\n[ tool . envcheck.target.old ]\n"),
)  # fmt: skip
def test_a_configuration_in_a_checkout_of_another_user_counts(tmp_path: Path, here: Path, name: str, text: str) -> None:
    (here / name).write_text(f'{text}gpu = "A100"\ndriver = "515.43.04"\n', encoding="utf-8")
    (here / name).chmod(0o666)
    here.chmod(0o777)
    assert check(tmp_path, plan="requirements.txt", target="old").status == 0
    without = check(tmp_path, plan="requirements.txt", target="old", args="--no-config")
    assert (without.status, "old" in without.err) == (2, True)
    assert check(tmp_path, plan="requirements.txt", args=FITS + " --no-config").status == 0


def test_another_tools_configuration_in_a_checkout_does_not_matter(tmp_path: Path, here: Path) -> None:
    (here / "pyproject.toml").write_text("[tool.other]\n", encoding="utf-8")
    here.chmod(0o777)
    assert check(tmp_path, plan="requirements.txt", args=FITS).status == 0


@cases("text", '$(touch ran) `touch ran`; touch ran; "; touch ran; "', "*.txt", "--version")
@cases("name", "plan", "target", "config", "fail_on", "args")
def test_inputs_are_never_run_nor_expanded(tmp_path: Path, name: str, text: str) -> None:
    ran = check(tmp_path, **{"plan": "requirements.txt", "args": FITS, name: text})
    assert not (tmp_path / "repository" / "ran").exists()
    assert (ran.status, ran.outputs) == (2, {"status": "2"})
    if text == "*.txt":
        assert text in ran.err


def test_words_in_quotation_marks_stay_together(tmp_path: Path) -> None:
    assert check(tmp_path, plan="requirements.txt", args=FITS + " --require 'torch >= 2.0'").status == 0
    assert check(tmp_path, plan="requirements.txt", args=FITS + " --require 'torch >= 2.4'").status == 1
    broken = check(tmp_path, plan="requirements.txt", args=FITS + " --require 'torch")
    assert (broken.status, broken.out) == (2, "::error title=envcheck::the input args has a quotation without an end\n")


def test_modules_of_the_repository_are_not_imported(tmp_path: Path, here: Path) -> None:
    for name in ("shlex", "venv", "pip", "envcheck"):
        (here / f"{name}.py").write_text("open('ran', 'w')\nraise SystemExit(0)\n", encoding="utf-8")
    assert check(tmp_path, plan="requirements.txt", args=FAILS).status == 1
    assert not (here / "ran").exists()


def test_the_report_names_no_user(tmp_path: Path, here: Path) -> None:
    home = tmp_path / "home" / "adalovelace"
    venv.create(home / "env", with_pip=False)
    known = {"install.outputs.bin": str(Path(sys.executable).parent)}
    inputs = {"args": f"--python {home}/env --scope env --require 'torch>=2.4'"}
    ran = run_step("check", here, inputs, known, {"HOME": str(home)})
    assert ran.status == 1
    assert "adalovelace" not in Path(ran.outputs["report"]).read_text(encoding="utf-8") + ran.out + ran.summary
    named = run_step("check", here, {"args": f"{inputs['args']} --no-redact"}, known, {"HOME": str(home)})
    assert "adalovelace" in Path(named.outputs["report"]).read_text(encoding="utf-8")


def test_no_expression_is_part_of_a_script() -> None:
    assert {name for name, step in STEPS.items() if "${{" in step["run"]} == set()
    assert {step["shell"] for step in STEPS.values()} == {"bash"}


def test_every_input_is_used_and_described() -> None:
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    assert {name for name in ACTION["inputs"] if f"${{{{ inputs.{name} }}}}" not in text} == set()
    assert all(given["description"] for given in (*ACTION["inputs"].values(), *ACTION["outputs"].values()))


def test_the_report_is_kept_after_a_failed_check_too() -> None:
    upload = ACTION["runs"]["steps"][-1]
    assert upload["uses"].startswith("actions/upload-artifact@")
    assert "!cancelled()" in upload["if"]
    assert upload["with"]["path"] == "${{ steps.check.outputs.report }}"


def test_the_own_workflow_runs_the_action_on_a_plan_that_fits_and_one_that_does_not() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    steps = [step for step in workflow["jobs"]["action"]["steps"] if step.get("uses") == "./"]
    assert [step["with"]["args"] for step in steps] == [FITS, FAILS]
    assert all((ROOT / step["with"]["plan"]).is_file() for step in steps)
    assert all(set(step["with"]) <= set(ACTION["inputs"]) for step in steps)


def test_every_action_is_pinned_and_leaves_no_credentials_behind() -> None:
    """A tag can be moved to other code. The token of a checkout would lie in .git for every later step to read."""
    pages = [ROOT / "action.yml", ROOT / "docs" / "ci.md", *(ROOT / ".github" / "workflows").glob("*.yml")]
    texts = [page.read_text(encoding="utf-8") for page in pages]
    used = [line for text in texts for line in re.findall(r"^ +(?:- )?uses: (.+)$", text, re.MULTILINE)]
    others = [line for line in used if not line.startswith("./")]
    assert len(others) >= 13
    assert [line for line in others if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v[0-9.]+", line)] == []
    checkouts = [text.split("uses: actions/checkout@")[1:] for text in texts]
    for after in (part for parts in checkouts for part in parts):
        assert re.match(r".*\n +with:\n +persist-credentials: false\n", after)


def test_an_old_python_is_named(tmp_path: Path, here: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "python3").write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    (tools / "python3").chmod(0o755)
    ran = run_step("install", here, {}, {}, {"PATH": f"{tools}:/usr/bin:/bin"})
    assert ran.status == 2
    assert ran.out.startswith("::error title=envcheck::Python 3.10 or newer is needed")


@pytest.mark.lab
def test_the_install_step_installs_what_the_check_needs(tmp_path: Path, here: Path) -> None:
    """Builds a wheel and asks the package index: minutes without a cache, so not in every run."""
    (here / "pip.py").write_text("raise SystemExit(9)\n", encoding="utf-8")
    shutil.copy(ROOT / "tests" / "recipes" / "plans" / "requirements.txt", here)
    (here / "environment.yml").write_text("dependencies:\n  - pip:\n      - torch==2.0.1\n", encoding="utf-8")
    installed = run_step("install", here, {}, {})
    assert installed.status == 0, installed.err
    known = {"install.outputs.bin": installed.outputs["bin"]}
    for plan, args, status in (("requirements.txt", FITS, 0), ("environment.yml", FAILS, 1)):
        ran = run_step("check", here, {"plan": plan, "args": args}, known)
        assert ran.status == status, ran.err
