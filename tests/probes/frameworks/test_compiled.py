"""GPU code and symbols of PyTorch in compiled files of no framework: small real libraries in constructed trees."""

from pathlib import Path

import msgspec
import pytest

from envcheck.model.snapshot import Extension, Listing
from probes.files.gpu_code.targets import gpu_targets
from probes.files.installations import compiled as reader
from probes.files.installations.catalog import DETAILED
from probes.files.installations.compiled import compiled
from probes.files.python.distributions import installed_in
from probes.files.python.search_path import mapped
from probes.files.python.site import Site
from tests.every import cases
from tests.probes.frameworks.framework_trees import SITE, Frameworks

FILES = Path(__file__).parents[1] / "elf_files"
LINKED, CUBIN, PTX, PLAIN = (
    (FILES / name).read_bytes() for name in ("linked.so", "sm_80-cuda-13.0.cubin", "kernel.ptx", "new.so")
)
CODE = gpu_targets(str(FILES / "linked.so")).targets
SO = "cpython-312-x86_64-linux-gnu.so"


def listed(tree: Frameworks, *before: str, **variables: str) -> Listing[Extension]:
    view = tree.view(variables=variables)
    tree.at(SITE).mkdir(parents=True, exist_ok=True)
    folders = (*before, SITE)
    items = tuple(installed_in(view, folders, DETAILED).items)
    site = Site(view, "/env", folders, len(before), items, mapped(view, folders), (*("PYTHONPATH" for _ in before), ""))
    return msgspec.convert(compiled(site), Listing[Extension])


def found(tree: Frameworks, *before: str, **variables: str) -> dict[str, Extension]:
    listing = listed(tree, *before, **variables)
    assert listing.complete
    return {each.name: each for each in listing.items}


def test_a_package_of_a_wheel(tree: Frameworks) -> None:
    tree.package({"mykernels/__init__.py": "", f"mykernels/_C.{SO}": LINKED}, "my-kernels", "1.0")
    assert found(tree) == {
        "my-kernels": Extension(
            source=f"elf {SITE}/mykernels/_C.{SO}", name="my-kernels", path=f"{SITE}/my_kernels-1.0.dist-info",
            version="1.0", binaries=(f"{SITE}/mykernels/_C.{SO}",), gpu_code=CODE,
            ptx=dict(gpu_targets(str(FILES / "linked.so")).ptx),
        ),
    }  # fmt: skip


@cases("path, name",
    ("mykernels/_C.so", "mykernels"), (f"my_cuda.{SO}", "my_cuda"), ("deep/er/still/_C.so", "deep"),
    ("kernels/kernel.cubin", "kernels"), ("kernels/kernel.ptx", "kernels"),
)  # fmt: skip
def test_what_no_metadata_lists(tree: Frameworks, path: str, name: str) -> None:
    content = CUBIN if path.endswith("cubin") else PTX if path.endswith("ptx") else LINKED
    tree.file(f"{SITE}/{path}", content)
    tree.package({"other/__init__.py": ""}, "other", "1.0")
    assert list(found(tree)) == [name]


def test_code_on_pythonpath_and_of_editable_installations(tree: Frameworks) -> None:
    tree.file("/project/one/_C.so", LINKED)
    tree.file("/src/two/ops/_C.so", LINKED)
    tree.file(f"{SITE}/__editable__.two-1.0.pth", "import __editable___two_1_0_finder; pass\n")
    tree.file(f"{SITE}/__editable___two_1_0_finder.py", "MAPPING = {'two': '/src/two'}\n")
    tree.wheel(SITE, "two", "1.0")
    extensions = found(tree, "/project")
    assert {name: (each.version, each.path) for name, each in extensions.items()} == {
        "one": (None, "/project/one"), "two": ("1.0", "/src/two"),
    }  # fmt: skip


@cases("variables, folder, cache",
    ({"HOME": "/home/ada"}, "/home/ada/.cache/torch_extensions/py312_cu128/fused", "py312_cu128"),
    ({"HOME": "/home/ada", "XDG_CACHE_HOME": "/c"}, "/c/torch_extensions/py312_cu128/fused", "py312_cu128"),
    ({"HOME": "/home/ada", "TORCH_EXTENSIONS_DIR": "/ext"}, "/ext/fused", "TORCH_EXTENSIONS_DIR"),
)  # fmt: skip
def test_the_cache_of_pytorch(tree: Frameworks, variables: dict[str, str], folder: str, cache: str) -> None:
    tree.file(f"{folder}/fused.so", LINKED)
    tree.file("/home/ada/.cache/torch_extensions/py39_cu128/older/older.so", LINKED)
    (each,) = found(tree, **variables).values()
    assert (each.cache, each.path, each.gpu_code) == (cache, folder, CODE)


@cases("files, name",
    ({"plain/_C.so": PLAIN}, "plain"), ({"flash_attn/__init__.py": "", "flash_attn_2_cuda.so": LINKED}, "flash-attn"),
    ({"nvidia/x/lib/libcublas.so.12": LINKED}, "nvidia-x"), ({"some/tests/_C.so": LINKED}, "some"),
    ({"script/_C.so": b"INPUT(libother.so)"}, "script"),
)  # fmt: skip
def test_what_is_no_extension(tree: Frameworks, files: dict[str, str | bytes], name: str) -> None:
    """Without GPU code; a framework, which has its reader; NVIDIA's libraries; tests; a script of the linker."""
    tree.package(files, name, "1.0")
    assert found(tree) == {}


def test_all_files_of_a_package_count_together(tree: Frameworks) -> None:
    tree.package({"k/_C.so": LINKED, "k/old.cubin": CUBIN, "k/plain.so": PLAIN}, "k", "1.0")
    each = found(tree)["k"]
    assert each.gpu_code == tuple(dict.fromkeys((*CODE, "sm_80")))
    assert each.binaries == (f"{SITE}/k/_C.so", f"{SITE}/k/old.cubin")


def test_damaged_code_is_not_known(tree: Frameworks) -> None:
    tree.package({"k/_C.so": LINKED, "k/kernel.cubin": b"no code"}, "k", "1.0")
    assert found(tree)["k"].gpu_code is None


@cases("what", "files", "folders")
def test_too_much_to_look_at_is_told(tree: Frameworks, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    monkeypatch.setitem(reader._MOST, what, 1)
    for name in ("one", "two"):
        tree.file(f"{SITE}/{name}/_C.so", LINKED)
    tree.package({"three/_C.so": LINKED}, "three", "1.0")
    listing = listed(tree)
    assert not listing.complete
    assert {each.name for each in listing.items} == ({"one"} if what == "files" else {"one", "three"})
