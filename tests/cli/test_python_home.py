"""PYTHONHOME that leads to another Python's standard library, on which envcheck itself runs."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import msgspec

import envcheck
from envcheck.errors import ExitCode
from tests.every import cases


def home(folder: Path, *, without: str) -> Path:
    """A prefix with all modules of this Python but one."""
    own = Path(sysconfig.get_path("stdlib"))
    library = folder / own.relative_to(sys.base_prefix)
    library.mkdir(parents=True)
    for path in own.iterdir():
        if path.name not in (without, "site-packages"):
            (library / path.name).symlink_to(path)
    return folder


def checked(prefix: Path | None) -> subprocess.CompletedProcess[str]:
    set_here = {"PYTHONHOME": str(prefix)} if prefix else {}
    places = [Path(envcheck.__file__).parents[1], Path(msgspec.__file__).parents[1]]
    variables = {**os.environ, **set_here, "PYTHONPATH": os.pathsep.join(map(str, places))}
    command = [sys.executable, "-m", "envcheck", "rule", "no-such-rule"]
    return subprocess.run(command, env=variables, cwd="/", capture_output=True, text=True, check=False)


def test_a_home_that_lacks_modules_is_named_in_one_line(tmp_path: Path) -> None:
    done = checked(home(tmp_path / "other", without="textwrap.py"))
    assert done.returncode == ExitCode.BROKEN
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"envcheck: PYTHONHOME='{tmp_path / 'other'}' gives this Python")
    assert line.endswith("run env -u PYTHONHOME envcheck")


@cases("set_to", None, Path(sys.base_prefix))
def test_it_is_not_blamed_where_it_is_not_set_or_right(set_to: Path | None) -> None:
    done = checked(set_to)
    assert done.returncode == ExitCode.USAGE
    assert "PYTHONHOME" not in done.stderr
