"""What reads foreign bytes, as functions that take any bytes: they raise nothing but what each reader may refuse by."""

import atexit
import contextlib
import io
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from envcheck.cli.main import main
from envcheck.errors import EnvcheckError, ExitCode
from envcheck.importers import read_text
from envcheck.knowledge.load import read_folder
from envcheck.redact import redact
from envcheck.report import render, saved
from envcheck.report.saved import read_report
from envcheck.text.inert import inert
from probes.common.tree import Tree
from probes.files.elf.library import Elf, ElfError
from probes.files.gpu_code.targets import gpu_targets
from probes.files.python.distributions import installed_in
from tests.probes.gpu_code.listing import gpu_code
from tests.report.examples import EXAMPLES
from tests.test_machines import report_on

ROOT = Path(__file__).resolve().parents[2]
_DATA = ROOT / "tests" / "probes" / "elf_files"
_ASKED = ("soname", "needed", "rpath", "runpath", "version_needs", "version_definitions", "sections")

_place = Path(tempfile.mkdtemp(prefix="envcheck-fuzz-"))
atexit.register(shutil.rmtree, _place, ignore_errors=True)


def importers(data: bytes) -> None:
    with contextlib.suppress(EnvcheckError):
        read_text(data.decode("utf-8", "replace"))


def reports(data: bytes) -> None:
    try:
        report = read_report(data)
    except EnvcheckError:
        return
    for form in ("text", "json", "summary"):
        inert(render(redact(report), form))


def baselines(data: bytes) -> None:
    with contextlib.suppress(EnvcheckError):
        saved.read_baseline(data, "a file")


def overlays(data: bytes) -> None:
    (_place / "overlay").mkdir(exist_ok=True)
    (_place / "overlay" / "own.toml").write_bytes(data)
    with contextlib.suppress(EnvcheckError):
        read_folder(_place / "overlay")


def matrix_check(data: bytes) -> None:
    words = data.decode("utf-8", "replace").replace("\0", "").split("\n")[:6]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as told:
        status = main(["matrix", "check", "--", *words])
    if status not in (ExitCode.OK, ExitCode.FOUND, ExitCode.USAGE, ExitCode.UNKNOWN):
        raise AssertionError(f"{status}: {told.getvalue()}")


def elf(data: bytes) -> None:
    with contextlib.suppress(ElfError), Elf(_file(data)) as opened:
        for name in _ASKED:
            with contextlib.suppress(ElfError):
                getattr(opened, name)


def fatbins(data: bytes) -> None:
    path = _file(data)
    gpu_code(path)
    gpu_targets(path)


def metadata(data: bytes) -> None:
    """METADATA, and RECORD after a NUL."""
    said, _, record = data.partition(b"\0")
    folder = _place / "site" / "some-1.0.dist-info"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "METADATA").write_bytes(said)
    (folder / "RECORD").write_bytes(record)
    found = installed_in(Tree({"root": os.fspath(_place)}), ("/site",), frozenset({"some"}))
    assert len(found.items) + len(found.damaged) >= 1


def _file(data: bytes) -> str:
    path = _place / "file"
    path.write_bytes(data)
    return os.fspath(path)


TARGETS: Mapping[str, Callable[[bytes], None]] = {
    function.__name__: function
    for function in (importers, reports, baselines, overlays, matrix_check, elf, fatbins, metadata)
}


def seeds(target: str) -> list[bytes]:
    """What a target reads in good order, to start from."""
    if target in ("elf", "fatbins"):
        return [path.read_bytes() for path in sorted(_DATA.iterdir()) if path.is_file() and path.stat().st_size < 8000]
    if target == "reports":
        return [msgspec.json.encode(make()) for make in EXAMPLES.values()]
    if target == "baselines":
        saved.save_baseline(report_on("h100-tried-and-measured"), os.fspath(_place / "baseline.json"))
        return [(_place / "baseline.json").read_bytes()]
    if target == "importers":
        files = sorted((ROOT / "tests" / "importers" / "data").iterdir())
        return [path.read_bytes() for path in files if path.is_file() and path.stat().st_size < 30_000]
    if target == "overlays":
        starts = [path.read_bytes()[:6000] for path in sorted((ROOT / "matrix").glob("*.toml"))]
        return [start.rpartition(b"\n\n")[0] for start in starts]
    return {
        "matrix_check": [b"torch==2.5.1\ncuda==12.4", b"gpu==H100\ntorch~=2.4", b"cudnn==9.1.0.70\nnumpy"],
        "metadata": [b"Metadata-Version: 2.1\nName: some\nVersion: 1.0\n\nText\0a/b.so,sha256=x,12\n"],
    }[target]
