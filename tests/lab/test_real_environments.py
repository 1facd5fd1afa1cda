"""Environments examined as files against what the same environments say when they are started.

The tests start interpreters; the probe does not. Whatever cannot be allocated here is skipped with its name.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from envcheck.model.merge import merge
from envcheck.model.snapshot import Environment, Framework, Snapshot
from probes import environments
from probes.common.out import Out
from probes.common.tree import Tree
from tests.every import cases
from tests.probes.trials.test_deep_end_to_end import PYENV, python_of

pytestmark = pytest.mark.lab

CPU_BUILD = "2.13.0+cpu"
VARIABLES = {"HOME": "/nowhere", "PATH": os.environ["PATH"], "PYTHONNOUSERSITE": "1"}

OF_THE_LIBRARY = {"python", "wsgiref"}  # What Python 2.7 lists of its own standard library

SAYS = """
import json, os, platform, sys
try:
    from importlib.metadata import distributions
    found = sorted({(d.metadata["Name"], d.version) for d in distributions()})
except ImportError:
    try:
        import pkg_resources
        found = sorted({(d.project_name, d.version) for d in pkg_resources.working_set})
    except ImportError:  # an environment without setuptools, which is empty in these tests
        found = []
print(json.dumps({
    "prefix": os.path.realpath(sys.prefix),
    "base_prefix": os.path.realpath(getattr(sys, "base_prefix", sys.prefix)),
    "python": platform.python_version(),
    "implementation": platform.python_implementation().lower(),
    "site_packages": [path for path in sys.path if path.endswith("-packages")],
    "distributions": found,
}))
"""


def examine(asked: Path | str, variables: Mapping[str, str] = VARIABLES, cwd: str = "/") -> Environment:
    """The environment that ``--python`` names."""
    lines: list[bytes] = []
    request = {"root": "/", "cwd": cwd, "python": [str(asked)], "own_prefix": "", "variables": dict(variables)}
    environments.collect(Tree(request), Out("environments", lines.append))
    facts = [message["fact"] for message in map(json.loads, lines) if "fact" in message]
    snapshot = merge(msgspec.convert(fact, Snapshot) for fact in facts)
    assert snapshot.environments
    return snapshot.environments.items[0]


def started(program: Path | str, **variables: str) -> dict[str, Any]:
    """What the interpreter says of itself."""
    command = [str(program), "-B", "-c", SAYS]
    env = {**VARIABLES, **variables}
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env=env, cwd="/")
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def agrees(found: Environment, said: dict[str, Any]) -> None:
    assert found.problem is None
    for name in ("prefix", "base_prefix", "python", "implementation"):
        assert getattr(found, name) == said[name], name
    assert list(map(os.path.realpath, found.site_packages)) == list(map(os.path.realpath, said["site_packages"]))
    assert found.distributions_complete
    ours = {(item.name, item.version) for item in found.distributions or ()}
    theirs = {(name.lower().replace("_", "-").replace(".", "-"), version) for name, version in said["distributions"]}
    assert ours == {(name, version) for name, version in theirs if name not in OF_THE_LIBRARY}


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, timeout=600)


def need(*command: str | Path) -> None:
    """Run what a test stands on; skip with its reason when it cannot be allocated."""
    done = run(*command)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        pytest.skip(f"{Path(command[0]).name} {' '.join(map(str, command[1:4]))}: {last}")


# --- installations ------------------------------------------------------------------------------------------------
@cases("version", "2.7", "3.6", "3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13")
def test_an_interpreter_of_pyenv(version: str) -> None:
    program = python_of(version)
    found = examine(program)
    assert found.manager == "pyenv"
    agrees(found, started(program))


def test_the_python_of_the_system() -> None:
    program = Path("/usr/bin/python3")
    if not program.exists():
        pytest.skip("no /usr/bin/python3")
    found = examine(program)
    assert found.manager == "system"
    assert found.externally_managed == any(Path("/usr/lib").glob("python3.*/EXTERNALLY-MANAGED"))
    agrees(found, started(program))


def test_python_path_and_user_folder(tmp_path: Path) -> None:
    program = python_of("3.12")
    user = tmp_path / "lib" / "python3.12" / "site-packages"
    (user / "mine-1.0.dist-info").mkdir(parents=True)
    (user / "mine-1.0.dist-info" / "METADATA").write_text("Name: mine\nVersion: 1.0\n")
    (tmp_path / "first-packages").mkdir()
    extra = {"PYTHONPATH": f"/gone:{tmp_path}/first-packages", "PYTHONUSERBASE": str(tmp_path), "PYTHONNOUSERSITE": ""}
    agrees(examine(program, {**VARIABLES, **extra}), started(program, **extra))


# --- virtual environments -----------------------------------------------------------------------------------------
@cases("options", [], ["--copies"], ["--system-site-packages"])
@cases("version", "3.7", "3.11", "3.13")
def test_a_virtual_environment_of_venv(tmp_path: Path, version: str, options: list[str]) -> None:
    need(python_of(version), "-m", "venv", "--without-pip", *options, tmp_path / "env")
    found = examine(tmp_path / "env")
    assert (found.manager, found.externally_managed) == ("venv", False)
    agrees(found, started(tmp_path / "env" / "bin" / "python"))


@cases("version", "3.9", "3.12")
def test_a_virtual_environment_of_uv(tmp_path: Path, version: str) -> None:
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if uv is None:
        pytest.skip("no uv")
    need(uv, "venv", "--no-config", "--offline", "-p", python_of(version), tmp_path / "env")
    found = examine(tmp_path / "env")
    assert found.manager == "uv"
    agrees(found, started(tmp_path / "env" / "bin" / "python"))


def test_a_virtual_environment_of_virtualenv(tmp_path: Path) -> None:
    need(sys.executable, "-m", "pip", "install", "-q", "--target", tmp_path / "tool", "virtualenv")
    tool = f"import sys; sys.path.insert(0, {str(tmp_path / 'tool')!r}); "
    code = tool + "import virtualenv; virtualenv.cli_run(sys.argv[1:])"
    need(sys.executable, "-c", code, "--no-download", "-p", python_of("3.12"), tmp_path / "env")
    found = examine(tmp_path / "env")
    assert found.manager == "virtualenv"
    agrees(found, started(tmp_path / "env" / "bin" / "python"))


def test_an_interpreter_linked_from_elsewhere_is_not_judged_as_its_base(tmp_path: Path) -> None:
    """Python runs the base there, and whoever made the link meant the environment: neither is judged in silence."""
    need(python_of("3.12"), "-m", "venv", "--without-pip", tmp_path / "env")
    (tmp_path / "python").symlink_to(tmp_path / "env" / "bin" / "python")
    found = examine(tmp_path / "python")
    assert started(tmp_path / "python")["prefix"] != str(tmp_path / "env")
    assert found.prefix == str(tmp_path / "env")
    (part,) = found.unreadable or ()
    assert part.problem == f"Python uses its base there; name {tmp_path / 'env' / 'bin' / 'python'}"


def test_a_distribution_installed_in_editable_mode(tmp_path: Path) -> None:
    need(sys.executable, "-m", "venv", tmp_path / "env")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "pyproject.toml").write_text("[project]\nname = 'Mine.Own'\nversion = '1.5'\n")
    need(tmp_path / "env" / "bin" / "python", "-m", "pip", "install", "-q", "-e", tmp_path / "src")
    found = examine(tmp_path / "env")
    agrees(found, started(tmp_path / "env" / "bin" / "python"))
    (mine,) = (item for item in found.distributions or () if item.name == "mine-own")
    assert (mine.version, mine.editable, mine.installer) == ("1.5", True, "pip")


def test_a_virtual_environment_whose_base_is_gone(tmp_path: Path) -> None:
    base = tmp_path / "base" / "bin" / "python3.11"
    base.parent.mkdir(parents=True)
    base.symlink_to(python_of("3.11"))
    need(base, "-m", "venv", "--without-pip", tmp_path / "env")
    assert examine(tmp_path / "env").problem is None
    shutil.rmtree(tmp_path / "base")
    found = examine(tmp_path / "env")
    assert found.problem == f"its base interpreter {base} is gone"
    assert (found.prefix, found.base_prefix, found.manager) == (str(tmp_path / "env"), None, "venv")
    assert found.frameworks is not None
    with pytest.raises(FileNotFoundError):
        started(tmp_path / "env" / "bin" / "python")


# --- pyenv's shims ------------------------------------------------------------------------------------------------
@cases("chosen", {"variable": "3.9"}, {"file": "3.12"}, {"variable": "3.6:3.11"}, {})
def test_a_shim_leads_where_pyenv_says(tmp_path: Path, chosen: dict[str, str]) -> None:
    shim = PYENV / "shims" / "python3"
    if not shim.exists():
        pytest.skip("no pyenv shims")
    variables = dict(VARIABLES, HOME=str(Path.home()))
    (tmp_path / "deep" / "er").mkdir(parents=True)
    if "file" in chosen:
        (tmp_path / ".python-version").write_text(f"{chosen['file']}\n")
    if "variable" in chosen:
        variables["PYENV_VERSION"] = chosen["variable"]
    cwd = tmp_path / "deep" / "er"
    which = [str(PYENV / "libexec" / "pyenv"), "which", "python3"]
    said = subprocess.run(which, cwd=cwd, env=variables, capture_output=True, text=True, check=True, timeout=60)
    found = examine(shim, variables, str(cwd))
    assert found.problem is None
    assert found.executable == said.stdout.strip()


# --- PyTorch ------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def cpu_torch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the CPU build of PyTorch, without what it depends on."""
    folder = tmp_path_factory.mktemp("torch") / "env"
    need(sys.executable, "-m", "venv", folder)
    need((folder / "bin" / "pip"), "install", "-q", "--no-deps", "--only-binary=:all:", f"torch=={CPU_BUILD}")
    return folder


def torch_of(found: Environment) -> Framework:
    assert found.frameworks is not None
    assert found.frameworks.complete
    (framework,) = found.frameworks.items
    return framework


def test_the_cpu_build_of_pytorch(cpu_torch: Path) -> None:
    found = examine(cpu_torch)
    agrees(found, started(cpu_torch / "bin" / "python"))
    torch = torch_of(found)
    assert (torch.version, torch.cpu_only, torch.cuda, torch.gpu_code) == (CPU_BUILD, True, None, None)
    assert torch.problem is None
    assert torch.path == f"{found.site_packages[0]}/torch"


def test_its_version_file_says_the_same_when_it_is_run(cpu_torch: Path) -> None:
    torch = torch_of(examine(cpu_torch))
    code = "import json, runpy, sys; said = runpy.run_path(sys.argv[1]); print(json.dumps(said, default=str))"
    said = json.loads(run(cpu_torch / "bin" / "python", "-c", code, f"{torch.path}/version.py").stdout)
    assert (said["__version__"], said["cuda"], said["hip"]) == (torch.version, torch.cuda, torch.hip)


def test_pytorch_that_was_half_removed(cpu_torch: Path, tmp_path: Path) -> None:
    site = tmp_path / "env" / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    shutil.copytree(cpu_torch, tmp_path / "env", symlinks=True, ignore=shutil.ignore_patterns("torch", "torch-*"))
    (site / "torch" / "lib").mkdir(parents=True)
    (site / "torch" / "lib" / "libtorch_cpu.so").touch()
    torch = torch_of(examine(tmp_path / "env"))
    assert torch.version is None
    assert torch.problem == f"{site}/torch holds no version.py: an incomplete or shadowing torch"


def test_the_pytorch_of_debian(tmp_path: Path) -> None:
    """Its version file and its egg-info call the version by two names, which do not contradict each other."""
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        pytest.skip("no apt-get and dpkg")
    done = subprocess.run(
        ["apt-get", "download", "python3-torch"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    archives = list(tmp_path.glob("*.deb"))
    if not archives:
        pytest.skip(f"python3-torch: {(done.stderr.strip().splitlines() or ['not to be had'])[-1]}")
    need("dpkg", "-x", archives[0], tmp_path / "root")
    site = tmp_path / "root" / "usr" / "lib" / "python3" / "dist-packages"
    torch = torch_of(examine(python_of("3.11"), {**VARIABLES, "PYTHONPATH": str(site)}))
    assert (torch.path, torch.cpu_only, torch.problem) == (f"{site}/torch", True, None)
    assert (
        torch.version
        == run("sed", "-n", "s/^__version__ = '\\(.*\\)'/\\1/p", site / "torch" / "version.py").stdout.strip()
    )
