"""``cost.toml``: what a command may cost in calls, files, bytes, modules and patterns: slower is a decision.

The commands run as a user's do, from an installed wheel, and are counted with their children. After a change that makes
one cheaper, write the file anew: ``ENVCHECK_WRITE_COST=1 python -m pytest tests/packaging/test_cost.py``.
"""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from importlib.metadata import distributions
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest

from envcheck.model.snapshot import Snapshot
from envcheck.pipeline.session import Request, judge
from envcheck.report import Options, render
from envcheck.text.toml import loads
from tests.packaging.installing import Environment, run

HERE = Path(__file__).parent
MACHINES = HERE.parent / "machines"
MARGIN = 1.03
PYTHON = "{}.{}".format(*sys.version_info)
BUDGET = loads((HERE / "cost.toml").read_text(encoding="utf-8"))
WRITING = "ENVCHECK_WRITE_COST" in os.environ

COMMANDS: dict[str, tuple[str, ...]] = {
    "version": ("--version",),
    "matrix-check": ("matrix", "check", "cuda==12.4", "driver==550.54.14"),
    "explain": ("explain", str(HERE.parent / "importers" / "data" / "h200_collect_env.txt")),
    "check-h200": ("check", "--from", "h200.json"),
    "check-h200x4": ("check", "--from", "h200x4.json"),
    "check-h100-tried-and-measured": ("check", "--from", "h100-tried-and-measured.json"),
    "check-small": ("check", "--scope", "env", "--python", "small/bin/python"),
    "check-of-tests": ("check", "--scope", "env", "--python", "of-tests/bin/python"),
}
"""Each is run in a folder with the reports of recorded machines and two environments: that of envcheck alone, and one
with the distributions that these tests need.
"""

pytestmark = [
    pytest.mark.skipif(
        not WRITING and BUDGET["python"] != PYTHON, reason=f"counted with Python {BUDGET['python']}, this is {PYTHON}"
    ),
    pytest.mark.skipif(not Path("/proc/self/io").is_file(), reason="no /proc/self/io, which counts the bytes"),
]
_OF_TESTS = ("pytest", "hypothesis", "jsonschema", "PyYAML", "textual", "rich", "pyelftools", "attrs", "pluggy")


@pytest.fixture(scope="session")
def folder(installed: Environment) -> Path:
    """The two environments and the reports."""
    place = installed.place.parent
    of_tests = Environment(place / "of-tests")
    (site,) = (of_tests.place / "lib").glob("python*/site-packages")
    wanted = {name.lower() for name in _OF_TESTS}
    for each in distributions():
        if each.metadata["Name"].lower() in wanted:
            for file in each.files or ():
                if ".." not in file.parts and file.suffix != ".pyc":
                    (site / file).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(str(each.locate_file(file)), site / file)
    for name in ("h200", "h200x4", "h100-tried-and-measured"):
        snapshot = msgspec.convert(json.loads((MACHINES / f"{name}.json").read_text())["snapshot"], Snapshot)
        (place / f"{name}.json").write_text(render(judge(snapshot, Request()), "json", Options()))
    return place


def counted(command: tuple[str, ...], folder: Path) -> dict[str, int]:
    """What ``command`` did, with its children; of one over a report, also the peak of its memory."""
    variables = {"PATH": os.defpath, "HOME": str(folder), "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}
    if "--from" in command:
        variables["MEMORY"] = "1"
    found = Counter[str]()
    with TemporaryDirectory() as out:
        program = [str(folder / "small" / "bin" / "python"), str(HERE / "counting.py"), out, *command]
        ended = subprocess.run(program, cwd=folder, env=variables, capture_output=True, text=True, check=False)
        assert ended.returncode in (0, 1, 3), ended.stderr
        for file in Path(out).iterdir():
            found.update(json.loads(file.read_text(encoding="utf-8")))
    return dict(found)


def test_no_command_costs_more(folder: Path) -> None:
    found = {name: counted(command, folder) for name, command in COMMANDS.items()}
    if WRITING:
        head = (HERE / "cost.toml").read_text(encoding="utf-8").partition("\n\n")[0]
        rows = (
            f"\n[{name}]\n" + "".join(f"{what} = {number:_}\n" for what, number in row.items())
            for name, row in found.items()
        )
        (HERE / "cost.toml").write_text(f'{head}\n\npython = "{PYTHON}"\n{"".join(rows)}', encoding="utf-8")
        return
    above = [
        f"{name}: {number:,} {what}, was {BUDGET[name][what]:,}"
        for name, row in found.items()
        for what, number in row.items()
        if number > BUDGET[name][what] * MARGIN
    ]
    assert not above, "costs more than cost.toml says:\n" + "\n".join(above)


def test_what_is_counted_is_what_runs(tmp_path: Path) -> None:
    """A program of known cost: the counter sees its calls, its files, its module and its pattern."""
    program = tmp_path / "program.py"
    (tmp_path / "out").mkdir()
    program.write_text(
        f"import sys\nsys.path.insert(0, {str(HERE)!r})\nfrom counting import COUNTER\nexec(COUNTER)\nimport re\n"
        f"def nothing(): pass\nwrite = count_into({str(tmp_path / 'out')!r})\n"
        "for _ in range(1000): nothing()\nfor _ in range(7): open(__file__).close()\n"
        "re.compile('a pattern of its own')\nimport colorsys\nwrite()\n"
    )
    run([sys.executable, str(program)])
    (file,) = (tmp_path / "out").iterdir()
    found = json.loads(file.read_text())
    assert 1000 <= found["calls"] < 1400
    assert 7 <= found["opened"] < 12
    assert (found["patterns"], found["modules"]) == (1, 1)
