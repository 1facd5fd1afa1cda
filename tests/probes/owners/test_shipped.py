"""What was installed against what lies there: presence, size, whether a file changed, and who imports it."""

import base64
import hashlib
import os
import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from envcheck.model.snapshot import DamagedFile, Shipped
from probes.common.tree import Tree
from probes.files.installations.catalog import COMPILING, DETAILED
from probes.files.owners import wheels
from probes.files.owners.shipped import Own, closure, joined, shipped
from probes.files.python.distributions import installed_in
from tests.every import cases
from tests.probes.conftest import RunProbe
from tests.probes.environment_trees import Laid
from tests.probes.frameworks.framework_trees import SITE, Frameworks, elf_needing, requires

UMATH = "numpy/_core/_multiarray_umath.cpython-38-x86_64-linux-gnu.so"
NUMPY: dict[str, str | bytes] = {
    "numpy/__init__.py": "from . import _core\n", "numpy/version.py": "version = '2.4.6'\n",
    "numpy/_core/__init__.py": "from . import multiarray\n",
    "numpy/_core/multiarray.py": "from . import _multiarray_umath\n", UMATH: elf_needing("libc.so.6"),
    "numpy/tests/__init__.py": "import pytest\n", "numpy/empty/__init__.py": "",
    "numpy/_core/include/numpy/ndarrayobject.h": "/* */\n",
}  # fmt: skip
CUPY: dict[str, str | bytes] = {"cupy/__init__.py": "import numpy\n", "cupy/_version.py": "__version__ = '14.2.0'\n"}
OF_TRITON = "triton/backends/nvidia"
PTXAS: dict[str, str | bytes] = {
    "triton/__init__.py": "", f"{OF_TRITON}/bin/ptxas": elf_needing(), f"{OF_TRITON}/driver.c": "/* */",
    f"{OF_TRITON}/include/Openacc/cupti.h": "/* */", f"{OF_TRITON}/include/cuda.h": "/* */",
    "triton/tests/one.c": "/* */",
}  # fmt: skip


@pytest.fixture
def tree(tmp_path: Path) -> Frameworks:
    made = Frameworks(tmp_path)
    made.package(CUPY, "cupy-cuda12x", "14.2.0", requires("numpy>=2.0", "left-out>=1"))
    made.package(NUMPY, "numpy", "2.4.6")
    made.package(PTXAS, "triton", "3.5.0")
    made.package({"alone/__init__.py": "x = 1\n"}, "alone", "1.0")
    return made


def looked_at(tree: Tree, items: list[dict[str, Any]], own: Own) -> dict[str, Any]:
    return shipped(tree, items, closure(tree, items, DETAILED), own, COMPILING)


def look(tree: Frameworks, python: str | None = "3.8", own: Own | None = None) -> Shipped:
    found = installed_in(tree.view(), (SITE,), DETAILED)
    return msgspec.convert(looked_at(tree.view(), found.items, own or Own(python)), Shipped)


@pytest.mark.parametrize("of", [1, 2, 3, 9])
def test_shares_of_an_environment_are_the_whole(tree: Frameworks, of: int) -> None:
    tree.at(f"{SITE}/cupy/_version.py").unlink()
    tree.at(f"{SITE}/numpy/__init__.py").write_text("")
    view = tree.view()
    items = installed_in(view, (SITE,), DETAILED).items
    compare = partial(shipped, view, items, closure(view, items, DETAILED), Own("3.8"), COMPILING)
    assert joined([compare(share=(number, of)) for number in range(of)]) == compare()
    assert len(compare()["damaged"]) == 2


def differing(tree: Frameworks) -> dict[str, tuple[str, str, str | None]]:
    return {file.path.removeprefix(f"{SITE}/"): (file.package, file.kind, file.problem) for file in look(tree).damaged}


def test_a_whole_environment(tree: Frameworks) -> None:
    found = look(tree)
    assert (found.damaged, found.complete, found.bytes) == ((), True, None)
    assert set(found.packages) == {"cupy-cuda12x", "numpy", "triton"}
    assert found.files == len(CUPY) + len(PTXAS) - len(("cuda.h", "one.c")) + 6


def test_what_is_required_says_what_it_requires_itself(tree: Frameworks) -> None:
    lines = ["numpy", "alone ; extra == 'x'"]
    tree.package({}, "left-out", "1.0", requires(*lines))
    items = installed_in(tree.view(), (SITE,), DETAILED).items
    assert "alone" not in looked_at(tree.view(), items, Own(None))["packages"]
    assert {item["name"]: item.get("requires") for item in items}["left-out"] == lines


PROGRAM = f"{OF_TRITON}/bin/ptxas"
CONDAS = {"numpy-2.4.6.dist-info/INSTALLER": "conda\n"}
PREFIX = "version = '2.4.6'  # /opt/conda/envs/a\n"


@cases("about, files, found",
    ("a folder is gone", {"numpy": None},
     {f"numpy/{path}": "numpy" for path in ("__init__.py", "version.py", "_core/__init__.py", UMATH[6:])}),
    ("of what no framework requires a lost package is named", {"alone/__init__.py": None},
     {"alone/__init__.py": "alone"}),
    ("a program is gone", {PROGRAM: None}, {PROGRAM: "triton"}),
    ("what is compiled where it runs is gone", {f"{OF_TRITON}/driver.c": None, f"{OF_TRITON}/include": None,
                                                "triton/tests/one.c": None},
     dict.fromkeys((f"{OF_TRITON}/driver.c", f"{OF_TRITON}/include/Openacc/cupti.h"), "triton")),
    *((f"without harm {path} is gone", {f"numpy/{path}": None}, {})
      for path in ("tests/__init__.py", "empty/__init__.py", "_core/include/numpy/ndarrayobject.h")),
    ("conda writes its prefix into files, so that sizes say nothing", {**CONDAS, "numpy/version.py": PREFIX}, {}),
    ("a file of conda's is gone", {**CONDAS, "numpy/version.py": None}, {"numpy/version.py": "numpy"}),
    ("a link counts for what it leads to", {"umath": NUMPY[UMATH], UMATH: f"-> {SITE}/umath"}, {}),
)  # fmt: skip
def test_what_is_missing(tree: Frameworks, about: str, files: Laid, found: dict[str, str]) -> None:
    tree.lay({f"{SITE}/{path}": content for path, content in files.items()})
    assert differing(tree) == {path: (package, "missing", None) for path, package in found.items()}


@cases("files, found",
    ({}, {}),
    ({"native/core.abi3.so": bytes(700)}, {"native/core.abi3.so": ("native", "size", "it is not an ELF file")}),
    ({"native/core.abi3.so": None}, {"native/core.abi3.so": ("native", "missing", None)}),
    ({"native/deep/a.py": "x = 'changed'\n"}, {}),
)  # fmt: skip
def test_of_what_no_framework_requires_only_compiled_parts_are_compared(
    tree: Frameworks, files: Laid, found: dict[str, Any]
) -> None:
    tree.package(
        {"native/__init__.py": "", "native/deep/a.py": "", "native/core.abi3.so": elf_needing()}, "native", "1.0"
    )
    tree.lay({f"{SITE}/{path}": content for path, content in files.items()})
    assert differing(tree) == found


@cases("path, content, kind, problem",
    (UMATH, b"", "size", "it is empty"), (UMATH, bytes(700), "size", "it is not an ELF file"),
    (UMATH, elf_needing("libc.so.6")[:150], "size", "its ELF header is damaged"),
    (UMATH, elf_needing("libc.so.6")[:200], "size", "it is cut off"),
    (UMATH, bytes(64) + elf_needing("libc.so.6")[64:], "content", "it is not an ELF file"),
    (UMATH, elf_needing("libm.so.6", "libc.so.6"), "size", None),
    ("numpy/__init__.py", "from . import _core\nx = 1\n", "size", None),
    ("numpy/__init__.py", "", "size", "it is empty"), ("numpy/__init__.py", b"\0" * 5, "size", "it holds zeros"),
    ("numpy/__init__.py", b"from . import _cor\0\0", "content", "it holds zeros"),
    ("numpy/_core/multiarray.py", "<html>", "size", "it is not Python: line 1"),
    ("numpy/__init__.py", "from . import (\n", "size", "it is not Python: line 1"),
    ("triton/backends/nvidia/bin/ptxas", b"", "size", "it is empty"),
)  # fmt: skip
def test_a_changed_file(tree: Frameworks, path: str, content: str | bytes, kind: str, problem: str | None) -> None:
    tree.file(f"{SITE}/{path}", content)
    ((found, (_, said, why)),) = differing(tree).items()
    assert (found, said) == (path, kind)
    assert why == problem or (problem and (why or "").startswith(problem))


def test_a_list_that_was_published_wrong_is_told_from_a_later_change(tree: Frameworks) -> None:
    tree.file(f"{SITE}/{UMATH}", elf_needing("libm.so.6", "libc.so.6"))
    (record,) = tree.at(SITE).glob("numpy-*.dist-info/RECORD")
    installed = record.stat().st_mtime_ns
    for moment, published in ((installed + 1, False), (installed, True), (installed - 10**9, True)):
        os.utime(tree.at(f"{SITE}/{UMATH}"), ns=(moment, moment))
        assert [file.as_published for file in look(tree).damaged] == [published]
    tree.file(f"{SITE}/{UMATH}", elf_needing("libc.so.6")[:200])
    os.utime(tree.at(f"{SITE}/{UMATH}"), ns=(0, 0))
    assert [file.as_published for file in look(tree).damaged] == [False]


def test_a_newer_python_than_this_one_may_take_what_this_one_does_not(tree: Frameworks) -> None:
    tree.file(f"{SITE}/numpy/__init__.py", "import from the future\n")
    assert [file.problem for file in look(tree, "3.99").damaged if file.kind == "size"] == [None]


@cases("module, own, problem",
    ("cpython-38-x86_64-linux-gnu.so", Own("3.8.20", "x86_64", "gnu"), None),
    ("cpython-38-x86_64-linux-gnu.so", Own(None), None), ("abi3.so", Own("3.8.20", "x86_64", "gnu"), None),
    ("so", Own("3.8.20", "x86_64", "gnu"), None),
    ("cpython-312-x86_64-linux-gnu.so", Own("3.11.7", "x86_64", "gnu"), "it is built for Python 3.12, not Python 3.11"),
    ("cpython-311-x86_64-linux-musl.so", Own("3.11", "x86_64", "gnu"), "it is built for musl, not glibc"),
    ("cpython-311-x86_64-linux-gnu.so", Own("3.11", "x86_64", "musl"), "it is built for glibc, not musl"),
    ("cpython-311-x86_64-linux-musl.so", Own("3.11", "x86_64", None), None),
    ("cpython-311-aarch64-linux-gnu.so", Own("3.11", "x86_64", "gnu"), "it is built for aarch64, not x86_64"),
    ("cpython-38-darwin.so", Own("3.8", "x86_64", "gnu"), "it is built for macOS, not Linux"),
    ("so", Own("3.8", "aarch64", "gnu"), "it is built for x86_64, not aarch64"),
    ("abi3.so", Own("3.8", "aarch64", "gnu"), "it is built for x86_64, not aarch64"),
)  # fmt: skip
def test_a_package_of_another_python_or_machine(tree: Frameworks, module: str, own: Own, problem: str | None) -> None:
    site = tree.at(SITE)
    shutil.rmtree(site / "numpy")
    shutil.rmtree(next(site.glob("numpy-*.dist-info")))
    other = f"numpy/_core/_multiarray_umath.{module}"
    tree.package(
        {**{name: text for name, text in NUMPY.items() if name != UMATH}, other: NUMPY[UMATH]}, "numpy", "2.4.6"
    )
    found = [(file.path, file.kind, file.problem) for file in look(tree, own=own).damaged if file.package == "numpy"]
    assert found == ([(f"{SITE}/{other}", "foreign", problem)] if problem else [])


@cases("names", ("cpython-312-x86_64-linux-gnu", "cpython-38-x86_64-linux-gnu"),
    ("cpython-312-x86_64-linux-gnu", "abi3"),  # sglang-kernel 0.4.10
)  # fmt: skip
def test_a_package_with_parts_for_several_machines_is_not_foreign(tree: Frameworks, names: tuple[str, str]) -> None:
    parts = {f"lib.{name}.so": elf_needing() for name in names}
    tree.package(
        {"left_out/__init__.py": "", **{f"left_out/{name}": part for name, part in parts.items()}}, "left-out", "1"
    )
    assert look(tree, own=Own("3.8", "x86_64", "gnu")).damaged == ()


def test_a_wheel_for_another_system_alone(tree: Frameworks) -> None:
    tree.package({"left_out/__init__.py": "", "left_out/liba.dylib": b"\xcf\xfa\xed\xfe"}, "left-out", "1")
    (wheel,) = tree.at(SITE).glob("left_out-*.dist-info")
    (wheel / "WHEEL").write_text("Wheel-Version: 1.0\nTag: cp311-cp311-macosx_11_0_arm64\n")
    (found,) = look(tree).damaged
    assert (found.kind, found.problem) == ("foreign", "it is built for macOS, not Linux")
    (wheel / "WHEEL").write_text("Wheel-Version: 1.0\nTag: py3-none-macosx_11_0_arm64\nTag: py3-none-any\n")
    assert look(tree).damaged == ()


@cases("path, mode, problem",
    ("triton/backends/nvidia/bin/ptxas", 0o644, "its mode does not allow running"),
    ("triton/backends/nvidia/bin/ptxas", 0o700, None), (UMATH, 0, None), (UMATH, 0o444, None),
    ("numpy/__init__.py", 0o311, None),
)  # fmt: skip
def test_a_program_whose_mode_keeps_it_from_use(tree: Frameworks, path: str, mode: int, problem: str | None) -> None:
    tree.at(f"{SITE}/{path}").chmod(mode)
    assert [problem for _, _, problem in differing(tree).values()] == ([problem] if problem else [])


def test_files_that_another_package_wrote_over_are_that_ones(tree: Frameworks) -> None:
    other = {**CUPY, "cupy/_version.py": "__version__ = '13.0.0'  # the other\n"}
    tree.package(other, "cupy-cuda11x", "13.0.0")
    assert differing(tree) == {}
    tree.file(f"{SITE}/cupy/_version.py", "neither\n")
    assert {package for package, _, _ in differing(tree).values()} <= {"cupy-cuda11x", "cupy-cuda12x"}
    assert differing(tree)


def test_editable_and_unlisted_packages_are_not_compared(tree: Frameworks) -> None:
    tree.file(f"{SITE}/cupy_cuda12x-14.2.0.dist-info/direct_url.json", '{"dir_info": {"editable": true}}')
    tree.at(f"{SITE}/numpy-2.4.6.dist-info/RECORD").unlink()
    tree.remove(f"{SITE}/numpy")
    found = look(tree)
    assert (found.damaged, found.packages) == ((), ("triton",))
    assert set(found.unlisted) == {"cupy-cuda12x", "numpy"}


@cases("place", f"{SITE}/{UMATH}", f"{SITE}/numpy")
def test_a_link_that_leads_nowhere_is_named(tree: Frameworks, place: str) -> None:
    tree.at(place).rename(tree.at("/gone"))
    tree.link(place, "/nowhere")
    assert {each.path: each.dead_link for each in look(tree).damaged}[f"{SITE}/{UMATH}"] == place


@pytest.mark.skipif(os.geteuid() == 0, reason="root may list every folder")
def test_what_may_not_be_looked_at_is_not_called_missing(tree: Frameworks) -> None:
    tree.at(f"{SITE}/numpy/_core").chmod(0)
    try:
        assert differing(tree) == {}
    finally:
        tree.at(f"{SITE}/numpy/_core").chmod(0o755)


# --- Hashes -----------------------------------------------------------------------------------------------------------
def hashed(content: str | bytes) -> str:
    data = content.encode() if isinstance(content, str) else content
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")


@pytest.fixture
def verified(tree: Frameworks, run_probe: RunProbe, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Damage, and what is then found: path to kind and problem. The probe lowers its priority, and not the tests'."""
    site = tree.venv("/env2", tree.base("/usr", "3.12.1"), "3.12.1")
    for name, version, files in (("cupy-cuda12x", "14.2.0", CUPY), ("numpy", "2.4.6", NUMPY)):
        for path, content in files.items():
            tree.file(f"{site}/{path}", content)
        info = tree.wheel(site, name.replace("-", "_"), version, requires("numpy") if name != "numpy" else "")
        lines = [f"{path},{hashed(content)},{len(content)}" for path, content in files.items()]
        lines += [
            "numpy/__pycache__/x.cpython-312.pyc,,",
            "../../../bin/f2py,sha256=x,3",
            f"{info[len(site) + 1 :]}/RECORD,,",
        ]
        tree.file(f"{info}/RECORD", "\r\n".join(lines) + "\r\n")

    lowered: list[int] = []
    monkeypatch.setattr(os, "nice", lowered.append)

    def look() -> tuple[Shipped, dict[str, tuple[str, str | None]]]:
        snapshot, run = run_probe("verify", tree.view(python=["/env2"]))
        assert run["status"] == "ok"
        assert lowered.pop() > 0
        assert snapshot.environments
        found = snapshot.environments.items[0].verified
        assert found
        return found, {each.path.removeprefix(f"{site}/"): (each.kind, each.problem) for each in found.damaged}

    return site, look


def test_all_files_are_hashed(verified: Any) -> None:
    found, damaged = verified[1]()
    sizes = [len(content) for files in (CUPY, NUMPY) for path, content in files.items() if "/tests/" not in path]
    assert (damaged, found.complete) == ({}, True)
    assert (found.files, found.bytes) == (len(sizes), sum(sizes))


def test_bytes_that_differ_and_files_that_are_gone_are_named(tree: Frameworks, verified: Any) -> None:
    site, look = verified
    whole = tree.at(f"{site}/{UMATH}").read_bytes()
    tree.file(f"{site}/{UMATH}", whole[:-1] + bytes([whole[-1] ^ 1]))
    tree.file(f"{site}/numpy/_core/multiarray.py", "from . import _multiarray_umatH\n")
    tree.file(f"{site}/numpy/_core/include/numpy/ndarrayobject.h", "/*+*/\n")
    tree.at(f"{site}/numpy/version.py").unlink()
    tree.at(f"{site}/numpy/tests/__init__.py").unlink()
    assert look()[1] == {
        UMATH: ("hash", None), "numpy/_core/multiarray.py": ("hash", None),
        "numpy/_core/include/numpy/ndarrayobject.h": ("hash", None), "numpy/version.py": ("missing", None),
    }  # fmt: skip


def test_a_file_of_several_packages_is_right_if_it_is_that_of_any(tree: Frameworks, verified: Any) -> None:
    site, look = verified
    content = "version = '0.0.0'\n"
    tree.file(f"{site}/numpy/version.py", content)
    assert look()[1] == {"numpy/version.py": ("hash", None)}
    for number, line in enumerate(
        (f"{hashed(content)},{len(content)}", ",", "sha512=unlike,", f"md5=unlike,{len(content)}")
    ):
        info = tree.wheel(site, f"over{number}", "1.0")
        tree.file(f"{info}/RECORD", f"numpy/version.py,{line}\n")
        assert look()[1] == {}, line
        tree.file(f"{info}/RECORD", f"numpy/version.py,{hashed('neither')},{len(content)}\n")
        assert look()[1] == {"numpy/version.py": ("hash", None)}


def test_another_length_is_told_as_such(tree: Frameworks, verified: Any) -> None:
    site, look = verified
    tree.file(f"{site}/numpy/_core/multiarray.py", "")
    tree.file(f"{site}/numpy/_core/include/numpy/ndarrayobject.h", "/* longer */\n")
    assert look()[1] == {
        "numpy/_core/multiarray.py": ("size", "it is empty"),
        "numpy/_core/include/numpy/ndarrayobject.h": ("size", None),
    }


@cases("algorithm, size", ("sha256", "3"), ("sha384", "3"), ("sha512", "3"), ("sha256", ""))
def test_every_kind_of_entry_is_compared(tree: Frameworks, verified: Any, algorithm: str, size: str) -> None:
    site, look = verified
    digest = base64.urlsafe_b64encode(hashlib.new(algorithm, b"was").digest()).decode().rstrip("=")
    for name, quoted in (("numpy/data.bin", False), ("numpy/a,b.py", True)):
        tree.file(f"{site}/{name}", b"is_")
        shown = f'"{name}"' if quoted else name
        record = tree.at(f"{site}/numpy-2.4.6.dist-info/RECORD")
        record.write_text(record.read_text() + f"{shown},{algorithm}={digest},{size}\n")
    assert look()[1] == {"numpy/data.bin": ("hash", None), "numpy/a,b.py": ("hash", None)}


@pytest.mark.skipif(shutil.which("gcc") is None or shutil.which("strip") is None, reason="no compiler")
def test_a_stripped_library_is_told_from_an_overwritten_one(tree: Frameworks, tmp_path: Path) -> None:
    source = tmp_path / "a.c"
    source.write_text("static int helper(int a) { return a * 3; }\nint f(int a) { return helper(a); }\n")
    built = tmp_path / "a.so"
    subprocess.run(["gcc", "-g", "-shared", "-fPIC", "-o", built, source], check=True)
    whole = built.read_bytes()
    tree.package({"numpy/_core/f.so": whole, "numpy/__init__.py": "x = 1\n"}, "numpy", "2.4.6")
    assert not [file for file in look(tree).damaged if file.path.endswith("f.so")]
    subprocess.run(["strip", built], check=True)
    tree.file(f"{SITE}/numpy/_core/f.so", built.read_bytes())
    (found,) = (file for file in look(tree).damaged if file.path.endswith("f.so"))
    assert (found.kind, found.problem, found.stripped) == ("size", None, True)
    tree.file(f"{SITE}/numpy/_core/f.so", whole + b"appended")
    (found,) = (file for file in look(tree).damaged if file.path.endswith("f.so"))
    assert (found.kind, found.stripped) == ("size", None)


# --- Modules deep in a package: those that differ are named, and told apart by who imports them ---------------------
JAX: dict[str, str | bytes] = {
    "jax/__init__.py": "try:\n    from jax import numpy as numpy\nexcept ImportError:\n    raise\n# manager\n",
    "jax/numpy/__init__.py": (
        "from typing import TYPE_CHECKING\nfrom jax.numpy import (\n    linalg as linalg,\n)\n"
        "if TYPE_CHECKING:\n    from jax.numpy import typing_only\n\n"
        "def __getattr__(name):\n    from jax.numpy import when_asked\n"
    ),
    "jax/numpy/linalg.py": "x = 1\n",
    "jax/numpy/typing_only.py": "x = 2\n",
    "jax/numpy/when_asked.py": "x = 3\n",
    "jax/numpy/tests/test_linalg.py": "x = 4\n",
    "jax/tools/aot/__init__.py": "from . import compile\n",
    "jax/tools/aot/compile.py": "x = 5\n",
    "jax/tools/aot/by_name.py": "x = 6\n",
    "jax/bin/manager": b"\x7fELF",
    "jax/bin/helper": b"\x7fELF",
    "jax/tools/__init__.py": "def compile(x):\n    from . import aot\n",
}


@pytest.fixture
def tree_modules(tmp_path: Path) -> Frameworks:
    made = Frameworks(tmp_path)
    made.package(JAX, "jax", "0.11.2")
    return made


def look_modules(tree_modules: Frameworks) -> Shipped:
    found = installed_in(tree_modules.view(), (SITE,), DETAILED)
    return msgspec.convert(looked_at(tree_modules.view(), found.items, Own("3.8")), Shipped)


def damaged(tree_modules: Frameworks) -> dict[str, DamagedFile]:
    return {file.path.removeprefix(f"{SITE}/jax/"): file for file in look_modules(tree_modules).damaged}


@cases("path, aside",
    ("numpy/linalg.py", False), ("numpy/typing_only.py", True), ("numpy/when_asked.py", True),
    ("tools/aot/compile.py", False), ("tools/aot/by_name.py", True), ("bin/manager", False), ("bin/helper", True),
)  # fmt: skip
def test_who_imports_it_decides(tree_modules: Frameworks, path: str, *, aside: bool) -> None:
    tree_modules.at(f"{SITE}/jax/{path}").unlink()
    (found,) = damaged(tree_modules).items()
    assert (found[0], found[1].kind, found[1].aside) == (path, "missing", aside)


@cases("path", "numpy/linalg.py", "numpy/__init__.py")
def test_bytecode_beside_it_is_imported_without_the_source(tree_modules: Frameworks, path: str) -> None:
    tree_modules.at(f"{SITE}/jax/{path}").rename(tree_modules.at(f"{SITE}/jax/{path}c"))
    assert not damaged(tree_modules)


def test_another_size_is_seen_however_deep_the_module_lies(tree_modules: Frameworks) -> None:
    tree_modules.file(f"{SITE}/jax/tools/aot/by_name.py", "x = (\n\n")
    (found,) = damaged(tree_modules).values()
    assert (found.kind, found.aside) == ("size", True)
    assert (found.problem or "").startswith("it is not Python")


@cases("target", "/nowhere", "linalg.py")
def test_a_link_to_nothing_or_to_itself_in_its_place(tree_modules: Frameworks, target: str) -> None:
    tree_modules.at(f"{SITE}/jax/numpy/linalg.py").unlink()
    tree_modules.link(f"{SITE}/jax/numpy/linalg.py", target)
    (found,) = damaged(tree_modules).values()
    assert (found.kind, found.dead_link) == ("missing", f"{SITE}/jax/numpy/linalg.py")


def test_a_folder_that_nothing_imports_may_be_left_out_of_an_image(tree_modules: Frameworks) -> None:
    tree_modules.remove(f"{SITE}/jax/tools/aot")
    assert damaged(tree_modules) == {}


@cases("line", "from jax.tools.aot import compile\n", "from .aot import compile\n", "from jax.tools import x, aot\n")
def test_a_folder_that_a_module_beside_it_imports_is_missed(tree_modules: Frameworks, line: str) -> None:
    tree_modules.remove(f"{SITE}/jax/tools/aot")
    tree_modules.file(f"{SITE}/jax/tools/run.py", line)
    assert {path: each.aside for path, each in damaged(tree_modules).items()} == {
        "tools/aot/__init__.py": True,
        "tools/aot/by_name.py": True,
        "tools/aot/compile.py": True,
    }


def test_files_for_tests_may_be_gone(tree_modules: Frameworks) -> None:
    tree_modules.at(f"{SITE}/jax/numpy/tests/test_linalg.py").unlink()
    assert damaged(tree_modules) == {}


def test_no_more_time_than_allowed(tree_modules: Frameworks, monkeypatch: pytest.MonkeyPatch) -> None:
    tree_modules.at(f"{SITE}/jax/numpy/linalg.py").unlink()
    monkeypatch.setattr(wheels, "SECONDS", -1.0)
    found = look_modules(tree_modules)
    assert (found.damaged, found.complete) == ((), False)
