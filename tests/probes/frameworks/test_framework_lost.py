"""Frameworks of which files are gone, cut off or for another processor, and what is then left open of extensions."""

from pathlib import Path

import pytest

from probes.common.tree import Tree as View
from probes.files.elf.info import ElfInfo, Identity, elf_info
from probes.files.installations.parts import OpenByName, examined
from probes.files.loader.process import LoadedImage, LoaderProcess, LoadRequest
from probes.files.loader.script import Event
from probes.files.loader.setup import LoaderSystem
from probes.files.loader.symbols import unresolved
from probes.files.owners.wheels import decides
from probes.files.python.site import Site
from tests.every import cases
from tests.probes.environment_trees import Laid
from tests.probes.frameworks.framework_trees import SITE, Frameworks, elf_needing
from tests.probes.tiny_elf import tiny_elf

INTERPRETER = Path("/lib64/ld-linux-x86-64.so.2")
_C = "torch/_C.cpython-312-x86_64-linux-gnu.so"
FILES: dict[str, str | bytes] = {
    "torch/__init__.py": "", "torch/version.py": "__version__ = '2.9.1+cu128'\ncuda: str = '12.8'\n", _C: elf_needing(),
    "torch/lib/libtorch_cuda.so": elf_needing(), "torch/lib/libtorch_cuda.so.1.2": "a number behind",
    "torch/lib/libtorchbind_test.so": elf_needing(), "torch/testing/data.txt": "no code",
}  # fmt: skip


@pytest.fixture
def tree(tmp_path: Path) -> Frameworks:
    made = Frameworks(tmp_path)
    made.package(FILES, "torch", "2.9.1")
    return made


RECORD = "torch-2.9.1.dist-info/RECORD"
OUTSIDE = "torch/../../../../../../../../bin/sh.so,,\ntorch/\0.so,,\n"
TAKEN = ("torch/__init__.py", _C, "torch/lib/libtorch_cuda.so", "torch/lib/libtorch_cuda.so.1.2")
UNUSED = ("torch/lib/libtorchbind_test.so", "torch/testing/data.txt")
LISTED = "files that its RECORD lists are gone: "


@cases("about, changes, problem",
    ("a whole package", {}, None),
    *((f"the import takes {name}", {name: None}, f"{LISTED}{name}") for name in TAKEN),
    ("more are counted", dict.fromkeys((*TAKEN, UNUSED[0])), f"{LISTED}{', '.join(TAKEN[:3])} and 1 more"),
    ("what tests alone load, and what is no code", dict.fromkeys(UNUSED), None),
    ("without a record nothing is known to be gone", {RECORD: None, _C: None}, None),
    ("lines that lead out of the package say nothing", {RECORD: OUTSIDE}, None),
)  # fmt: skip
def test_what_is_gone(tree: Frameworks, about: str, changes: Laid, problem: str | None) -> None:
    tree.lay({f"{SITE}/{name}": content for name, content in changes.items()})
    found = tree.found()["torch"]
    assert (found.incomplete, found.problem) == (problem is not None, problem)


def test_a_package_named_testing_is_for_programs_too() -> None:
    """numpy.testing and torch.testing are imported by others; tools that slim images delete what is named test*."""
    assert decides("numpy/testing/__init__.py")
    assert not decides("numpy/tests/__init__.py")


@pytest.mark.skipif(not INTERPRETER.exists(), reason="no x86-64 glibc, whose loader the test borrows")
def test_a_library_for_another_processor_is_refused_and_not_looked_for(tmp_path: Path) -> None:
    tree = Frameworks(tmp_path)
    tree.file("/env/bin/python3.12", tiny_elf(interpreter=str(INTERPRETER)))
    tree.file(str(INTERPRETER), INTERPRETER.read_bytes())
    foreign = bytearray(tiny_elf(soname="libcudart.so.12"))
    foreign[18:20] = b"\xb7\x00"
    place = f"{SITE}/nvidia/cuda_runtime/lib/libcudart.so.12"
    tree.file(place, bytes(foreign))
    part = f"{SITE}/fw/_C.so"
    tree.file(part, tiny_elf(["libcudart.so.12"], runpath="$ORIGIN/../nvidia/cuda_runtime/lib"))
    site = Site(tree.view(), "/env", (SITE,), 0, ())
    (load,) = examined(site, [part], asks=[OpenByName(("libcudart.so.12",))])["loads"]
    assert (load["path"], load["refused"]) == (place, "it is for aarch64, 64 bit")
    assert "unfound" not in load


@cases("kept", 70, 240, -1)
def test_a_file_that_is_cut_off_cannot_be_loaded(tmp_path: Path, kept: int) -> None:
    whole = tiny_elf(["libc.so.6"], soname="libcut.so")
    place = tmp_path / "libcut.so"
    place.write_bytes(whole)
    before = elf_info(str(place))
    assert before
    assert before.refused is None
    place.write_bytes(whole[:kept])
    after = elf_info(str(place))
    assert after
    assert (after.refused or "").startswith(
        ("it is cut off: ", "its ELF header is damaged: its table of segments lies")
    )


# --- Symbols of an extension, where PyTorch itself cannot be loaded ---------------------------------------------------
def image(path: str, *needed: str) -> LoadedImage:
    return LoadedImage(path, ElfInfo(path, Identity(1, hash(path)), needed=needed), None, "rpath")


@pytest.fixture(autouse=True)
def _undefined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a part, one symbol is never found."""
    monkeypatch.setattr("probes.files.loader.symbols._of_part", lambda *_: [b"_ZN3c105ErrorE"])


def asked(tree: Path, *requests: LoadRequest, images: tuple[str, ...]) -> list[str] | None:
    process = LoaderProcess(LoaderSystem(View({"root": str(tree)}), None, None, None), None)
    process.images = [image(path) for path in images]
    return unresolved(process, [Event(list(requests), optional=False)])


def test_symbols_are_not_missed_where_pytorch_is_not_loaded(tmp_path: Path) -> None:
    extension = image("/site/torchvision/_C.so", "libtorch_cpu.so")
    own = LoadRequest("/site/torchvision/_C.so", None, extension)
    lost = LoadRequest("libtorch_cpu.so", extension, None)
    assert asked(tmp_path, own, lost, images=("/site/torch/lib/libtorch_global_deps.so",)) is None


def test_symbols_are_not_missed_where_a_library_of_pytorch_lacks_another(tmp_path: Path) -> None:
    extension = image("/site/torchvision/_C.so", "libtorch_cpu.so")
    base = image("/site/torch/lib/libtorch_cuda.so", "libcublas.so.12")
    own = LoadRequest("/site/torchvision/_C.so", None, extension)
    assert (
        asked(tmp_path, own, LoadRequest("libcublas.so.12", base, None), images=("/site/torch/lib/libc10.so",)) is None
    )


def test_symbols_are_missed_where_pytorch_is_loaded_whole(tmp_path: Path) -> None:
    extension = image("/site/torchvision/_C.so", "libtorch_cpu.so")
    own = LoadRequest("/site/torchvision/_C.so", None, extension)
    other = LoadRequest("libcudart.so.11.0", extension, None)
    assert asked(tmp_path, own, other, images=("/site/torch/lib/libc10.so",)) == ["_ZN3c105ErrorE"]
