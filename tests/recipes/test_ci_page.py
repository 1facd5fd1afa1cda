"""docs/ci.md: each recipe run as far as it goes without its service.

Not run here: what installs from a package index (``pip install`` in the GitLab job and in the Containerfile), the build
of the image, which needs a container engine and a registry, and what GitHub and GitLab do with reports.
"""

import json
import os
import re
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.every import cases
from tests.recipes.running import ACTION, ROOT, run, run_step
from tests.test_release import SOURCE

PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
OWN = Path(sys.executable).parent
FITS, FAILS = "2.5.1", "2.0.1"
"""Releases of torch whose wheels from PyPI have, and have not, code for the GPU of the page's target."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


(TARGET,) = blocks("toml")
GITHUB, GITLAB, PRE_COMMIT = (yaml.safe_load(block) for block in blocks("yaml"))
(CONTAINERFILE,) = blocks("dockerfile")
RUN = re.findall(r"^RUN (.+)$", CONTAINERFILE, re.MULTILINE)


@pytest.fixture
def app(tmp_path: Path) -> Path:
    here = tmp_path / "app"
    here.mkdir()
    (here / "envcheck.toml").write_text(TARGET, encoding="utf-8")
    here.chmod(0o777)  # GitLab's runner clones with umask 0, and a container's user owns no checkout
    return here


def run_line(line: str, cwd: Path, *, path: Path, shell: str = "bash") -> subprocess.CompletedProcess[str]:
    """Run a line of a recipe with ``path`` first on PATH."""
    return run([shell, "-ec", line], cwd, {"PATH": f"{path}:/usr/bin:/bin", "HOME": str(cwd), "CI": "true"})


def plan(app: Path, release: str) -> None:
    (app / "requirements.txt").write_text(f"torch=={release}\n", encoding="utf-8")


@cases("release, status", (FITS, 0), (FAILS, 1))
def test_github(app: Path, release: str, status: int) -> None:
    plan(app, release)
    step: dict[str, Any] = GITHUB["jobs"]["envcheck"]["steps"][-1]
    ran = run_step("check", app, step["with"], {"install.outputs.bin": str(OWN)})
    assert (ran.status, ran.err) == (status, "")
    assert ("::error file=requirements.txt,line=1," in ran.out) == bool(status)


def test_nothing_is_left_to_fill_in() -> None:
    """But the address, until a package index has envcheck: each block can be pasted as it is."""
    texts = re.findall(r"^```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    instructions = {"COPY", "FROM", "WORKDIR"}
    found = {word for text in texts for word in re.findall(r"\b[A-Z]{4,}\b|<[a-z-]+>|\.\.\.", text)}
    assert found - instructions == set(re.findall("[A-Z]{4,}", SOURCE))
    assert GITHUB["jobs"]["envcheck"]["steps"][-1]["uses"].startswith("./")


def test_the_inputs_and_outputs_of_the_action_are_described() -> None:
    part = PAGE.partition("## GitHub Actions")[2].partition("## GitLab")[0]
    assert re.findall(r"^\| `([\w-]+)` \|", part, re.MULTILINE) == list(ACTION["inputs"])
    assert {name for name in ACTION["outputs"] if f"`{name}`" not in part} == set()


@cases("release, status", (FITS, 0), (FAILS, 1))
def test_gitlab(app: Path, release: str, status: int) -> None:
    plan(app, release)
    job = GITLAB["envcheck"]
    install, *lines = job["script"]
    assert install.startswith("pip install")
    done = run_line("\n".join(lines), app, path=OWN)
    assert (done.returncode, done.stderr) == (status, "")
    reports = job["artifacts"]["reports"]
    entries = json.loads((app / reports["codequality"]).read_text(encoding="utf-8"))
    assert ({"path": "requirements.txt", "lines": {"begin": 1}} in [each["location"] for each in entries]) == bool(
        status
    )
    assert ("<failure" in (app / reports["junit"]).read_text(encoding="utf-8")) == bool(status)


@cases("release, status", (f"{FITS}+cu124", 0), (f"{FAILS}+cu117", 1))
def test_containerfile(app: Path, release: str, status: int) -> None:
    """The last RUN; a virtual environment with torch's metadata, without its libraries, stands for the image."""
    venv.create(app.parent / "image", with_pip=False)
    packages = next((app.parent / "image").glob("lib/python3*/site-packages"))
    (packages / "torch").mkdir()
    (packages / "torch" / "__init__.py").touch()
    version = f"__version__ = '{release}'\ncuda = '{release[-3:-1]}.{release[-1]}'\n"
    (packages / "torch" / "version.py").write_text(version, encoding="utf-8")
    number = release.partition("+")[0]
    (packages / f"torch-{number}.dist-info").mkdir()
    metadata = f"Metadata-Version: 2.1\nName: torch\nVersion: {number}\n"
    (packages / f"torch-{number}.dist-info" / "METADATA").write_text(metadata, encoding="utf-8")

    line = RUN[-1].replace("/opt/envcheck/bin", str(OWN))
    assert line != RUN[-1]
    done = run_line(line, app, path=app.parent / "image" / "bin", shell="sh")
    assert (done.returncode, done.stderr) == (status, "")
    assert f"torch {release}" in done.stdout
    assert ("gpu-code-missing" in done.stdout) == bool(status)


def test_containerfile_is_one_that_envcheck_reads(app: Path) -> None:
    plan(app, FAILS)
    (app / "Dockerfile").write_text(CONTAINERFILE, encoding="utf-8")
    done = run_line("envcheck check --config envcheck.toml --plan Dockerfile --target cluster", app, path=OWN)
    assert done.returncode == 1
    assert "gpu-code-missing" in done.stdout


@cases("release, status", (FITS, 0), (FAILS, 1))
def test_pre_commit(app: Path, release: str, status: int) -> None:
    plan(app, release)
    (hook,) = PRE_COMMIT["repos"][0]["hooks"]
    (published,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert {key: hook[key] for key in ("id", "entry", "language")} == {
        key: published[key] for key in ("id", "entry", "language")
    }
    assert re.search(hook["files"], "requirements.txt")
    done = run_line(" ".join([hook["entry"], *hook["args"], "requirements.txt"]), app, path=OWN)
    assert (done.returncode, done.stderr) == (status, "")


def test_pytest(app: Path) -> None:
    (block,) = blocks("python")
    (app / "test_recipe.py").write_text(block, encoding="utf-8")
    options = ["--envcheck", "--strict-markers", "-rs", "-p", "no:cacheprovider"]
    done = run([sys.executable, "-m", "pytest", *options, "."], app, {**os.environ, "CUDA_VISIBLE_DEVICES": "-1"})
    assert done.returncode == 0, done.stdout
    assert re.search(r"^envcheck: \w+ ", done.stdout, re.MULTILINE)
    assert re.search(r"^SKIPPED \[1\] .*pytest_plugin\.py:\d+: .*GPU", done.stdout, re.MULTILINE)
    assert "1 skipped" in done.stdout


def test_readme_names_the_page() -> None:
    assert "(docs/ci.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
