"""What is shipped is what is in the tree, and a wheel is built wherever there is no NVRTC."""

import importlib
import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from envcheck import bundle
from envcheck.bundle import COMPILED, DATE
from envcheck.knowledge.load import load_matrix
from envcheck.rules.documentation import FOLDER, LINES, SOURCES
from tests.installed import ROWS
from tests.packaging.installing import Built, Environment, build, run


def python_and_data(folder: Path) -> set[str]:
    return {
        str(file.relative_to(folder))
        for file in folder.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts and file.name != "compiled.json"
    }


def test_the_wheel_holds_envcheck_and_its_metadata_alone(built: Built) -> None:
    names = [PurePosixPath(name) for name in zipfile.ZipFile(built.wheel).namelist()]
    tops = {name.parts[0] for name in names}
    assert {top for top in tops if not top.endswith((".dist-info", ".data"))} == {"envcheck"}
    assert len(tops) == 3
    data = ["/".join(name.parts[1:]) for name in names if name.parts[0].endswith(".data")]
    assert sorted(data) == [
        "data/share/bash-completion/completions/envcheck",
        "data/share/fish/vendor_completions.d/envcheck.fish",
        "data/share/man/man1/envcheck.1",
        "data/share/zsh/site-functions/_envcheck",
    ]


def test_the_wheel_holds_every_file_of_the_tree(built: Built) -> None:
    shipped = {name for name in zipfile.ZipFile(built.wheel).namelist() if name.startswith("envcheck/")}
    expected = {f"envcheck/{name}" for name in python_and_data(built.tree / "envcheck")}
    for folder in ("probes", "docs/rules"):
        expected |= {f"envcheck/{folder}/{name}" for name in python_and_data(built.tree / folder)}
    made = {
        f"envcheck/matrix/{COMPILED}",
        f"envcheck/matrix/{DATE}",
        *(f"envcheck/{FOLDER}/{name}" for name in (SOURCES, LINES)),
    }
    assert shipped - made == expected
    assert made <= shipped


def test_the_build_compiles_the_rows_into_the_wheel_alone(built: Built) -> None:
    """As they were compiled where this session started."""
    with zipfile.ZipFile(built.wheel) as archive:
        shipped = {name: archive.read(f"envcheck/matrix/{name}").decode() for name in (COMPILED, DATE)}
    assert shipped[COMPILED] == (ROWS / COMPILED).read_text(encoding="utf-8")
    assert shipped[DATE] == f"{max(row.read for row in load_matrix().sources.values())}\n"
    assert not {COMPILED, DATE} & {file.name for file in (built.tree / "matrix").iterdir()}


def test_the_sdist_can_be_tested(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        names = {str(PurePosixPath(*PurePosixPath(name).parts[1:])) for name in archive.getnames()}
    needed = {
        "scripts/new.py", "docs/rules.md", "pyproject.toml", "README.md", "LICENSE", "constraints.txt", "budget.toml",
        "action.yml", "tests/test_merge.py", "tests/golden/corpus/cases.xz", "probes/common/tree.py",
    }  # fmt: skip
    assert needed <= names


def test_an_editable_installation_copies_nothing_that_could_become_stale(built: Built, tmp_path: Path) -> None:
    pytest.importorskip("editables")  # what hatchling needs for it
    build = f"import hatchling.build; print(hatchling.build.build_editable({str(tmp_path)!r}))"
    wheel = tmp_path / run([sys.executable, "-c", build], cwd=built.tree).splitlines()[-1]
    names = [name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name]
    assert [PurePosixPath(name).suffix for name in names] == [".pth"]
    assert zipfile.ZipFile(wheel).read(names[0]).decode().strip() == str(built.tree)


def test_a_checkout_reads_its_own_folders() -> None:
    """A copy inside the package, or what a build compiles of the rows and pages, would be read in their place."""
    root = Path(__file__).resolve().parents[2]
    for name in ("matrix", "probes", FOLDER):
        assert bundle.folder(name) == root / name
    assert not (root / "matrix" / COMPILED).exists()
    assert {file.suffix for file in (root / FOLDER).iterdir()} == {".md"}


def test_the_wheel_runs_outside_the_checkout(installed: Environment, fresh: Environment, tmp_path: Path) -> None:
    added = site_packages(installed) - site_packages(fresh)
    own = {name for name in added if name.startswith(("envcheck", "gpu_envcheck", "matrix", "probes"))}
    assert {name for name in own if not name.endswith(".dist-info")} == {"envcheck"}
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for script in ("envcheck", "gpu-envcheck"):
        command = [str(installed.place / "bin" / script), "check", "--json", "--python", str(installed.python)]
        result = subprocess.run(command, cwd=elsewhere, capture_output=True, text=True, check=False)
        assert result.returncode in (0, 1, 3), result.stderr
        report = json.loads(result.stdout)
        assert report["schema_version"] == "1.0"
        assert {probe["name"]: probe["status"] for probe in report["probes"]}["environments"] == "ok"
    assert list(elsewhere.iterdir()) == []


def site_packages(environment: Environment) -> set[str]:
    (folder,) = (environment.place / "lib").glob("python*/site-packages")
    return {entry.name for entry in folder.iterdir()}


# --- A wheel is built wherever there is no NVRTC --------------------------------------------------------------------
ROOT = Path(__file__).resolve().parents[2]
LACKING = "GPU code for machines without NVRTC is lacking: "


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The build steps where no installed package is on the path, and so no NVRTC wheel."""
    found = importlib.import_module("hatch_build")
    monkeypatch.setattr(sys, "path", [str(ROOT), *(entry for entry in sys.path if "site-packages" not in entry)])
    return found


def test_a_wheel_without_gpu_code_says_so(built: Built) -> None:
    assert f"{LACKING}the build environment holds no NVRTC wheel" in built.printed
    assert not [name for name in zipfile.ZipFile(built.wheel).namelist() if "/prepared/" in name]


def test_a_release_is_not_built_without_gpu_code(built: Built, tmp_path: Path) -> None:
    done = build(built.tree, tmp_path, "--wheel", ENVCHECK_REQUIRE_PREPARED="1")
    assert done.returncode != 0
    assert f"{LACKING}the build environment holds no NVRTC wheel" in done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_nvrtc_that_cannot_be_loaded_ends_no_build(
    steps: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "nvidia/cuda_nvrtc/lib/libnvrtc.so.12"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"\x7fELF of another machine")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    files, (reason,) = steps.prepared_code(tmp_path)
    assert files == {}
    assert reason.startswith("NVRTC cannot be loaded: ")


class Weak:
    """An NVRTC that knows a GPU and fails on a source."""

    version = "11.8"

    def __init__(self, *known: int) -> None:
        self._known = known

    def architectures(self) -> tuple[int, ...]:
        return self._known

    def cubin(self, source: str, name: str, *_: object) -> bytes:
        from probes.measuring.kernels import CompileError  # noqa: PLC0415 - the path is the test's

        if "mma.sync" in source:
            raise CompileError("ptxas: no such instruction\nmore")
        return b"\x7fELF of 11.8"


class Strong(Weak):
    version = "12.9"

    def cubin(self, *_: object) -> bytes:
        return b"\x7fELF of 12.9"


def test_the_next_compiler_is_asked_where_one_fails(steps: Any) -> None:
    from probes.measuring.variants import Variant  # noqa: PLC0415 - the path is the test's

    memory, compute = Variant("memory", (), (5, 0)), Variant("compute", ("-DMMA",), (8, 0))
    both = [Weak(90), Strong(90)]
    assert steps.compiled(both, memory, "cubin", 90) == b"\x7fELF of 11.8"
    assert steps.compiled(both, compute, "cubin", 90) == b"\x7fELF of 12.9"
    with pytest.raises(LookupError, match=r"^NVRTC 11\.8: ptxas: no such instruction$"):
        steps.compiled(both[:1], compute, "cubin", 90)
    with pytest.raises(LookupError, match="no NVRTC of the build environment knows it"):
        steps.compiled(both, memory, "cubin", 100)
