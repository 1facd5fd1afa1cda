"""Which files a failure names, who installed them, and what became of them: real packages, RECORDs and libraries."""

import base64
import hashlib
import importlib
import importlib.machinery
import itertools
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from probes.trials.failure import cut_off, files_named
from probes.trials.trial import packages_not_loaded, watch_loading
from tests.every import cases

NUMBER = itertools.count()


class Site:
    """A site folder with one distribution, ``toy-part`` 1.2, whose package has a name of its own in each test."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.package = folder, f"toy_part_{next(NUMBER)}"
        (folder / self.package).mkdir(parents=True)

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.folder / self.package / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def record(self, installer: str = "pip") -> None:
        lines = []
        for path in sorted(self.folder.glob(f"{self.package}/*")):
            digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).rstrip(b"=").decode()
            lines.append(f"{path.relative_to(self.folder)},sha256={digest},{path.stat().st_size}")
        info = self.folder / "toy_part-1.2.dist-info"
        info.mkdir()
        (info / "RECORD").write_text("\n".join([*lines, "toy_part-1.2.dist-info/RECORD,,", ""]))
        (info / "INSTALLER").write_text(f"{installer}\n")

    def fails(self, module: str | None = None) -> list[dict[str, Any]]:
        importlib.invalidate_caches()
        with pytest.raises(BaseException) as raised:
            importlib.import_module(module or self.package)
        return files_named(raised.value)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    folder = tmp_path / "lib" / "site-packages"
    folder.mkdir(parents=True)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return Site(folder)


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A real library that asks for another that is nowhere."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc")
    folder = tmp_path_factory.mktemp("built")
    (folder / "a.c").write_text("int answer(void) { return 42; }\n")
    subprocess.run(("gcc", "-shared", "-fPIC", "-o", str(folder / "liba.so"), str(folder / "a.c")), check=True)
    return (folder / "liba.so").read_bytes()


LOAD = "import ctypes, os\nctypes.CDLL(os.path.join(os.path.dirname(__file__), 'liba.so'))\n"


def test_an_edited_module_that_no_longer_compiles(site: Site) -> None:
    path = site.write("__init__.py", "x = 1\n")
    site.record()
    path.write_text("x = 1\nif x\n    y = 2\n")
    (found,) = site.fails()
    assert found == {
        "source": "trial", "path": str(path), "role": "error", "line": 2, "owner": "toy-part==1.2", "state": "differs",
        "detail": "it has 21 bytes, 6 were installed",
    }  # fmt: skip


def test_a_module_edited_to_the_same_size_that_raises(site: Site) -> None:
    site.write("__init__.py", "from . import inner\n")
    path = site.write("inner.py", "value = 1 / 1\n")
    site.record()
    path.write_text("value = 1 / 0\n")
    first, second = site.fails()
    assert (first["path"], first["role"], first["line"], first["state"]) == (str(path), "frame", 1, "differs")
    assert first["detail"] == "its content is not what was installed"
    assert second["state"] == "as installed", "who imported it is no culprit"


@cases("left", 0, 100)
def test_a_library_that_was_cut_off(site: Site, library: bytes, left: int) -> None:
    site.write("__init__.py", LOAD)
    path = site.write("liba.so", library)
    site.record()
    path.write_bytes(library[:left])
    found = site.fails()[0]
    assert (found["path"], found["role"], found["owner"]) == (str(path), "error", "toy-part==1.2")
    assert found["state"] == "differs"


def test_a_library_that_conda_changed_is_not_called_changed(site: Site, library: bytes) -> None:
    site.write("__init__.py", "")
    path = site.write("liba.so", library)
    site.record("conda")
    path.write_bytes(library + b"more")
    (site.folder / site.package / "__init__.py").write_text(f"raise ImportError('{path}: undefined symbol: f')\n")
    found = site.fails()[0]
    assert (found["path"], found["owner"]) == (str(path), "toy-part==1.2")
    assert "state" not in found


def test_a_package_of_which_only_the_metadata_is_left(site: Site) -> None:
    site.write("__init__.py", "")
    site.record()
    shutil.rmtree(site.folder / site.package)
    (found,) = site.fails()
    assert (found["role"], found["owner"], found["state"]) == ("module", "toy-part==1.2", "gone")
    assert found["path"] == str(site.folder / site.package / "__init__.py")


@cases("suffix", importlib.machinery.EXTENSION_SUFFIXES[0], ".abi3.so")
def test_a_compiled_module_belongs_to_the_package_that_brings_it(site: Site, tmp_path: Path, suffix: str) -> None:
    """Gone, it is the fault; where another copy of the package is imported, nothing is wrong with the installed one."""
    compiled = site.write(f"_part{suffix}", b"not loaded here")
    site.write("__init__.py", "")
    site.record()
    other = tmp_path / "other"
    (other / site.package).mkdir(parents=True)
    (other / site.package / "__init__.py").write_text("")
    sys.path.insert(0, str(other))
    found = site.fails(f"{site.package}._part")[0]
    assert (found["path"], found["role"], found["owner"]) == (str(compiled), "module", "toy-part==1.2")
    assert found["state"] == "as installed"
    compiled.unlink()
    assert site.fails(f"{site.package}._part")[0]["state"] == "gone"


def test_a_module_that_nothing_brings(site: Site) -> None:
    site.write("__init__.py", "import no_such_toy.part\n")
    site.record()
    first, second = site.fails()
    assert first == {"source": "trial", "path": "no_such_toy", "role": "module"}
    assert (second["role"], second["state"]) == ("frame", "as installed")


def test_a_library_by_its_bare_name_is_the_one_that_was_installed(site: Site, library: bytes) -> None:
    site.write(
        "__init__.py", "raise ImportError('liba.so: cannot open shared object file: No such file or directory')\n"
    )
    path = site.write("liba.so", library)
    site.record()
    path.unlink()
    found = site.fails()[0]
    assert (found["path"], found["owner"], found["state"]) == (str(path), "toy-part==1.2", "gone")


def test_a_package_whose_import_failed_is_known_although_nobody_says_so(site: Site) -> None:
    site.write("__init__.py", "try:\n    from . import inner\nexcept ValueError:\n    raise ImportError from None\n")
    site.write("inner.py", "raise ValueError\n")
    site.record()
    with watch_loading(lambda _: None):
        assert [found["role"] for found in site.fails()] == ["frame"]
    assert site.package in packages_not_loaded()


def test_what_was_handled_before_is_no_cause(site: Site) -> None:
    code = "try:\n    import no_such_toy\nexcept ImportError:\n    raise RuntimeError('something else')\n"
    site.write("__init__.py", code)
    site.record()
    assert [found["role"] for found in site.fails()] == ["frame"]


def test_what_a_later_error_quotes_is_its_cause(site: Site) -> None:
    code = (
        "try:\n    raise ImportError('/nowhere/libq.so: file too short')\n"
        "except ImportError as e:\n    raise RuntimeError(f'cannot go on: {e}')\n"
    )
    site.write("__init__.py", code)
    site.record()
    assert site.fails()[0]["path"] == "/nowhere/libq.so"


def test_a_library_that_ends_too_early_is_told_before_it_is_loaded(site: Site, library: bytes) -> None:
    path = site.write("liba.so", library)
    assert cut_off(str(path)) == []
    site.record()
    path.write_bytes(library[: len(library) // 2])
    (found,) = cut_off(str(path))
    assert (found["owner"], found["state"]) == ("toy-part==1.2", "differs")
    assert cut_off(str(site.write("libb.so", library[: len(library) // 2])))[0]["detail"] == "it is cut off"
    assert cut_off(str(site.write("libc.so", b"no library" * 10))) == []


def test_the_library_that_is_about_to_be_loaded_is_told(site: Site, library: bytes) -> None:
    site.write("__init__.py", LOAD)
    path = site.write("liba.so", library)
    told: list[str] = []
    importlib.invalidate_caches()
    with watch_loading(told.append):
        importlib.import_module(site.package)
    assert told == [str(path)]
    importlib.import_module("ctypes").CDLL(str(path))
    assert told == [str(path)], "nobody listens any more"
