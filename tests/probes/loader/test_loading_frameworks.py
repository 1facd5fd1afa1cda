"""What a framework's import loads, in an environment of libraries linked for the purpose.

The environment's "Python" is a program that opens what it is told, so that what is predicted for the framework can be
held against what really happens.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from envcheck.model.snapshot import Framework
from probes.common.tree import Tree
from probes.files.installations.compiled import compiled
from probes.files.installations.parts import OpenByName, Preload, examined
from probes.files.loader.script import caller_of_ctypes, started
from probes.files.python.site import Site
from tests.every import cases
from tests.known import known
from tests.probes.conftest import unknown_keys
from tests.probes.loader.loading_builds import GCC, REASON, Workshop, rpath, runpath

pytestmark = pytest.mark.skipif(GCC is None, reason=REASON)

SITE = "lib/python3.11/site-packages"
CUDART = "nvidia/cuda_runtime/lib/libcudart.so.12"


class Bench:
    """An environment with a framework ``fw`` in it."""

    def __init__(self, folder: Path) -> None:
        self.shop = Workshop(folder)
        self.folder = folder
        self.program = self.shop.program("bin/python3.11")
        self.distributions: tuple[dict[str, Any], ...] = ()

    def library(self, path: str, needed: Sequence[str] = (), *flags: str, soname: str | None = "") -> str:
        """A library below ``site-packages``, linked to others there; returns its path."""
        return str(self.shop.library(f"{SITE}/{path}", [f"{SITE}/{one}" for one in needed], *flags, soname=soname))

    def site(self, **variables: str) -> Site:
        tree = Tree({"cwd": str(self.folder), "variables": variables})
        return Site(tree, str(self.folder), (str(self.folder / SITE),), 0, self.distributions)

    def examine(self, parts: Sequence[str], *, variables: dict[str, str] | None = None, **steps: Any) -> Framework:
        fields = {"name": "fw", "source": "elf", **examined(self.site(**(variables or {})), parts, **steps)}
        assert unknown_keys(fields, msgspec.inspect.type_info(Framework)) == []
        return msgspec.convert(fields, Framework)

    def truth(self, opened: Sequence[str], **variables: str) -> set[str]:
        """The files that the program really maps, by their path in ``site-packages``."""
        seen = self.shop.truth(self.program, opened, variables)
        return {os.path.relpath(path, self.folder / SITE) for path in seen.mapped}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def taken(framework: Framework, bench: Bench) -> dict[str, tuple[str | None, str | None]]:
    """Name to (path in ``site-packages``, how it was found); the C library and the driver's are this machine's."""
    return {
        load.name: (load.path and os.path.relpath(load.path, bench.folder / SITE), load.found_by)
        for load in known(framework.loads)
        if not load.name.startswith(("libc.", "libcuda.", "libnvidia-ml."))
    }


# --- Preloading -----------------------------------------------------------------------------------------------------
def two_copies(bench: Bench) -> tuple[str, dict[str, str]]:
    """A part with RUNPATH to the wheel's copy, and a variable that leads to another one."""
    bench.library(CUDART)
    bench.library("system/libcudart.so.12")
    part = bench.library("fw/_C.so", [CUDART], *runpath("$ORIGIN/../nvidia/cuda_runtime/lib"))
    return part, {"LD_LIBRARY_PATH": str(bench.folder / SITE / "system")}


def test_without_preloading_the_variable_shadows_the_wheel(bench: Bench) -> None:
    part, variables = two_copies(bench)
    found = bench.examine([part], variables=variables)
    assert taken(found, bench) == {"libcudart.so.12": ("system/libcudart.so.12", "LD_LIBRARY_PATH")}
    (load,) = [load for load in found.loads or () if load.name == "libcudart.so.12"]
    assert load.others == (str(bench.folder / SITE / CUDART),)
    assert (load.needed_by, load.optional, found.loads_complete, found.binaries) == (part, False, True, (part,))
    assert bench.truth([part], **variables) == {"fw/_C.so", "system/libcudart.so.12"}


def test_what_is_preloaded_wins(bench: Bench) -> None:
    part, variables = two_copies(bench)
    preload = Preload(("libcudart.so.*[0-9]",), ("nvidia/cu13/lib", "nvidia/cuda_runtime/lib"))
    found = bench.examine([part], variables=variables, preloads=[preload])
    assert taken(found, bench) == {"libcudart.so.12": (CUDART, "preloaded")}
    (load,) = [load for load in found.loads or () if load.name == "libcudart.so.12"]
    assert (load.others, load.needed_by) == ((str(bench.folder / SITE / "system/libcudart.so.12"),), part)
    assert bench.truth([str(bench.folder / SITE / CUDART), part], **variables) == {"fw/_C.so", CUDART}


CUDNN = "nvidia/cudnn/lib"


@cases("old_is_whole", True, False)
def test_another_release_that_is_preloaded_and_used_by_nobody_is_left_out(bench: Bench, *, old_is_whole: bool) -> None:
    """cuDNN 8 and 9 in one folder, as of wheels for two CUDAs: a pattern meets both, the framework needs 9."""
    bench.library("nvidia/cublas/lib/libcublas.so.11")
    ops = bench.library(f"{CUDNN}/libcudnn_ops_infer.so.8")
    bench.library(
        f"{CUDNN}/libcudnn.so.8",
        [f"{CUDNN}/libcudnn_ops_infer.so.8", "nvidia/cublas/lib/libcublas.so.11"],
        *runpath("$ORIGIN:$ORIGIN/../../cublas/lib"),
    )
    bench.library(f"{CUDNN}/libcudnn_ops.so.9")
    bench.library(f"{CUDNN}/libcudnn.so.9", [f"{CUDNN}/libcudnn_ops.so.9"], *runpath("$ORIGIN"))
    part = bench.library("fw/_C.so", [f"{CUDNN}/libcudnn.so.9"], *rpath("$ORIGIN/../nvidia/cudnn/lib"))
    if not old_is_whole:
        Path(ops).unlink()
    for every in (True, False):
        found = taken(bench.examine([part], preloads=[Preload(("libcudnn.so.*[0-9]",), (CUDNN,), every=every)]), bench)
        assert found["libcudnn.so.9"][0] == f"{CUDNN}/libcudnn.so.9"
        assert {name.rpartition(".")[2] for name in found} == {"9"}


def test_a_preloaded_release_that_the_framework_needs_or_nothing_replaces_stays(bench: Bench) -> None:
    bench.library(f"{CUDNN}/libcudnn.so.8")
    bench.library("nvidia/nccl/lib/libnccl.so.2")
    part = bench.library("fw/_C.so", [f"{CUDNN}/libcudnn.so.8"])
    preloads = [Preload(("libcudnn.so.*[0-9]",), (CUDNN,)), Preload(("libnccl.so.*[0-9]",), ("nvidia/nccl/lib",))]
    found = taken(bench.examine([part], preloads=preloads), bench)
    assert found["libcudnn.so.8"] == (f"{CUDNN}/libcudnn.so.8", "preloaded")
    assert found["libnccl.so.2"] == ("nvidia/nccl/lib/libnccl.so.2", "preloaded")


@cases("fails", True, False)
def test_preloading_after_a_failure_only(bench: Bench, *, fails: bool) -> None:
    """As older releases of PyTorch do it."""
    bench.library(CUDART)
    first = bench.library("fw/libdeps.so", [CUDART], *(() if fails else rpath("$ORIGIN/../nvidia/cuda_runtime/lib")))
    part = bench.library("fw/_C.so", ["fw/libdeps.so"], *rpath("$ORIGIN"))
    preload = Preload(("libcudart.so.*",), ("nvidia/cuda_runtime/lib",), after="libdeps.so", when="failed")
    found = bench.examine([first, part], preloads=[preload])
    assert taken(found, bench) == {"libcudart.so.12": (CUDART, "preloaded" if fails else "rpath")}
    assert bench.truth([first, *([str(bench.folder / SITE / CUDART)] if fails else []), first, part]) >= {CUDART}


@cases("said", "nvidia/cuda_runtime/lib/libcudart.so", "nvidia/cu13/lib/libcudart.so")
def test_preloading_where_something_is_mapped(bench: Bench, said: str) -> None:
    bench.library(CUDART)
    bench.library("nvidia/nvjitlink/lib/libnvJitLink.so.12")
    first = bench.library("fw/libdeps.so", [CUDART], *rpath("$ORIGIN/../nvidia/cuda_runtime/lib"))
    preload = Preload(
        ("libnvJitLink.so.*[0-9]",), ("nvidia/nvjitlink/lib",), after="libdeps.so", when="mapped", mapped=said
    )
    found = bench.examine([first], preloads=[preload])
    assert ("libnvJitLink.so.12" in taken(found, bench)) == ("cuda_runtime" in said)


@cases("required", True, False)
def test_code_that_gives_up_where_a_library_is_not_there(bench: Bench, *, required: bool) -> None:
    bench.library(CUDART)
    preloads = [
        Preload(("libcublas.so.*",), ("nvidia/cublas/lib",), required=required),
        Preload(("libcudart.so.*",), ("nvidia/cuda_runtime/lib",)),
    ]
    found = bench.examine([bench.library("fw/_C.so")], preloads=preloads)
    assert ("libcudart.so.12" in taken(found, bench)) is not required


def test_preloading_in_its_variants(bench: Bench) -> None:
    bench.library("libs/libnccl.so.2")
    bench.library("libs/libnccl.so.2.1", soname="libnccl.so.3")
    bench.library("system/libcurand.so.10")
    part = bench.library("fw/_C.so")
    preloads = [
        Preload(("libnccl.so.*",), (str(bench.folder / SITE / "libs"),), every=True),
        Preload(("libcufft.so.11", "libcurand.so.10")),
        Preload(("libnccl.so.2",), ("elsewhere",), unless_found=True),
    ]
    variables = {"LD_LIBRARY_PATH": str(bench.folder / SITE / "system")}
    bench.library("elsewhere/libnccl.so.2")
    found = bench.examine([part], preloads=preloads, variables=variables)
    assert taken(found, bench) == {
        "libnccl.so.2": ("libs/libnccl.so.2", "preloaded"), "libnccl.so.2.1": ("libs/libnccl.so.2.1", "preloaded"),
        "libcufft.so.11": (None, None), "libcurand.so.10": ("system/libcurand.so.10", "preloaded"),
    }  # fmt: skip


@cases("found", True, False)
def test_preloading_where_the_loader_finds_nothing(bench: Bench, *, found: bool) -> None:
    """The one that the loader finds is told as what the part asks for, and not as preloaded."""
    bench.library("system/libcurand.so.10")
    bench.library("toolkit/libcurand.so.10")
    part = bench.library("fw/_C.so", ["system/libcurand.so.10"])
    preload = Preload(
        ("libcurand.so.11", "libcurand.so.10"), (str(bench.folder / SITE / "toolkit"),), unless_found=True
    )
    variables = {"LD_LIBRARY_PATH": str(bench.folder / SITE / "system")} if found else {}
    held = taken(bench.examine([part], preloads=[preload], variables=variables), bench)
    expected = ("system/libcurand.so.10", "LD_LIBRARY_PATH") if found else ("toolkit/libcurand.so.10", "preloaded")
    assert held == {"libcurand.so.10": expected}


def test_preloaded_builtins_of_nvrtc(bench: Bench) -> None:
    """NVRTC asks for them by name once it is called, and is given those that are loaded."""
    bench.library("nvidia/cu13/lib/libnvrtc.so.13")
    bench.library("nvidia/cu13/lib/libnvrtc-builtins.so.13.0")
    bench.library("system/libnvrtc-builtins.so.13.0")
    part = bench.library("fw/_C.so", ["nvidia/cu13/lib/libnvrtc.so.13"], *runpath("$ORIGIN/../nvidia/cu13/lib"))
    variables = {"LD_LIBRARY_PATH": str(bench.folder / SITE / "system")}
    preload = Preload(("libnvrtc-builtins.so.*[0-9]",), ("nvidia/cuda_nvrtc/lib", "nvidia/cu13/lib"))
    without = taken(bench.examine([part], variables=variables), bench)
    assert without["libnvrtc-builtins.so.13.0"] == ("system/libnvrtc-builtins.so.13.0", "LD_LIBRARY_PATH")
    held = taken(bench.examine([part], preloads=[preload], variables=variables), bench)
    assert held["libnvrtc-builtins.so.13.0"] == ("nvidia/cu13/lib/libnvrtc-builtins.so.13.0", "preloaded")
    opened = [str(bench.folder / SITE / "nvidia/cu13/lib/libnvrtc-builtins.so.13.0"), part, "libnvrtc-builtins.so.13.0"]
    assert "system/libnvrtc-builtins.so.13.0" not in bench.truth(opened, **variables)


# --- What code asks for by name ---------------------------------------------------------------------------------------
def test_asking_by_name_counts_the_asking_librarys_path(bench: Bench) -> None:
    bench.library("fw/libs/libnvinfer.so.10")
    inner = bench.library("fw/libframework.so", [], *runpath("$ORIGIN/libs"))
    part = bench.library("fw/_C.so", ["fw/libframework.so"], *runpath("$ORIGIN"))
    asks = [
        OpenByName(("libnvinfer.so.11", "libnvinfer.so.10"), by="libframework.so"),
        OpenByName(("libnvinfer_plugin.so.10",), by="libframework.so", optional=False),
        OpenByName(("libnvonnxparser.so.10",), by="never_loaded.so"),
    ]
    found = bench.examine([part], asks=asks)
    assert taken(found, bench) == {
        "libnvinfer.so.10": ("fw/libs/libnvinfer.so.10", "runpath"),
        "libnvinfer_plugin.so.10": (None, None),
    }
    by_name = {load.name: load for load in found.loads or ()}
    assert {by_name[name].needed_by for name in taken(found, bench)} == {inner}
    assert [by_name[name].optional for name in sorted(taken(found, bench))] == [True, False]


def test_a_plugin_that_may_fail(bench: Bench) -> None:
    """ONNX Runtime's providers: without what they need, the framework goes on upon the CPU."""
    bench.library("nvidia/cublas/lib/libcublas.so.12")
    plugin = bench.library("fw/libproviders_cuda.so", ["nvidia/cublas/lib/libcublas.so.12"])
    found = bench.examine([bench.library("fw/_C.so")], asks=[OpenByName((plugin,))])
    (load,) = [load for load in found.loads or () if load.name.startswith("libcublas")]
    assert (load.path, load.optional, load.needed_by) == (None, True, plugin)
    assert load.unfound == (str(bench.folder / SITE / "nvidia/cublas/lib/libcublas.so.12"),)


def cudnn(bench: Bench, folder: str) -> str:
    """cuDNN 9 by its names; its parts link what NVIDIA's link."""
    for part in ("graph", "heuristic", "engines_precompiled", "engines_runtime_compiled", "ops", "cnn", "adv"):
        needed = [] if part == "graph" else [f"{folder}/libcudnn_graph.so.9"]
        bench.library(f"{folder}/libcudnn_{part}.so.9", needed, *runpath("$ORIGIN"))
    return bench.library(f"{folder}/libcudnn.so.9", [], *runpath("$ORIGIN"))


def test_the_parts_of_cudnn_come_from_wherever_the_variable_leads(bench: Bench) -> None:
    """libcudnn.so.9 itself comes by the framework's RPATH, which outranks the variable; its parts by RUNPATH."""
    cudnn(bench, "nvidia/cudnn/lib")
    cudnn(bench, "system")
    part = bench.library("fw/_C.so", ["nvidia/cudnn/lib/libcudnn.so.9"], *rpath("$ORIGIN/../nvidia/cudnn/lib"))
    found = taken(bench.examine([part], variables={"LD_LIBRARY_PATH": str(bench.folder / SITE / "system")}), bench)
    assert found.pop("libcudnn.so.9") == ("nvidia/cudnn/lib/libcudnn.so.9", "rpath")
    assert len(found) == 7
    assert {(str(Path(path or "").parent), how) for path, how in found.values()} == {("system", "LD_LIBRARY_PATH")}
    found = taken(bench.examine([part]), bench)
    assert {str(Path(path or "").parent) for path, _ in found.values()} == {"nvidia/cudnn/lib"}


def test_cudnn_asks_for_its_own_version_first(bench: Bench) -> None:
    cudnn(bench, "nvidia/cudnn/lib")
    exact = bench.library("fw/libcudnn_ops.so.9.10.2", soname="libcudnn_ops.so.9")
    part = bench.library("fw/_C.so", ["nvidia/cudnn/lib/libcudnn.so.9"], *rpath("$ORIGIN/../nvidia/cudnn/lib"))
    variables = {"LD_LIBRARY_PATH": str(bench.folder / SITE / "fw")}
    assert "libcudnn_ops.so.9.10.2" not in taken(bench.examine([part], variables=variables), bench)
    bench.distributions = ({"name": "nvidia-cudnn-cu12", "version": "9.10.2.21"},)
    found = bench.examine([part], variables=variables)
    assert {load.path for load in found.loads or () if "_ops" in load.name} == {exact}


# --- What is wrong with what is found -------------------------------------------------------------------------------
def versioned(bench: Bench, path: str, versions: Sequence[str]) -> str:
    script = bench.shop.at("versions.map")
    script.write_text("".join(f"{one} {{ global: of_{number}; }};\n" for number, one in enumerate(versions)))
    source = bench.shop.at("versions.c")
    source.write_text("".join(f"int of_{number}(void) {{ return 0; }}\n" for number in range(len(versions))))
    return bench.library(path, [], "-fPIC", str(source), f"-Wl,--version-script={script}")


def test_a_libstdcxx_that_is_too_old(bench: Bench) -> None:
    versions = ["GLIBCXX_3.4", "GLIBCXX_3.4.9", "GLIBCXX_3.4.30", "GLIBCXX_3.4.32", "CXXABI_1.3.15"]
    versioned(bench, "built/libstdc++.so.6", versions)
    versioned(bench, "old/libstdc++.so.6", versions[:3])
    source = bench.shop.at("uses.c")
    source.write_text("int of_0(void), of_3(void), of_4(void); int f(void) { return of_0() + of_3() + of_4(); }\n")
    part = bench.library("fw/_C.so", ["built/libstdc++.so.6"], "-fPIC", str(source))
    variables = {"LD_LIBRARY_PATH": str(bench.folder / SITE / "old")}
    (load,) = [load for load in bench.examine([part], variables=variables).loads or () if load.name == "libstdc++.so.6"]
    assert load.path == str(bench.folder / SITE / "old/libstdc++.so.6")
    assert (load.lacks, load.offers, load.needed_by) == (("CXXABI_1.3.15", "GLIBCXX_3.4.32"), "GLIBCXX_3.4.30", part)
    assert bench.truth([part], **variables) == set()


def test_a_file_at_which_the_loader_gives_up(bench: Bench) -> None:
    bench.library(CUDART)
    part = bench.library("fw/_C.so", [CUDART], *rpath("$ORIGIN/../nvidia/cuda_runtime/lib"))
    place = bench.folder / SITE / CUDART
    place.write_bytes(b"")
    (load,) = [load for load in bench.examine([part]).loads or () if load.name == "libcudart.so.12"]
    assert (load.path, load.refused, load.found_by) == (str(place), "it is empty", None)


def test_such_a_file_says_which_variable_leads_to_it(bench: Bench) -> None:
    bench.library(CUDART)
    part = bench.library("fw/_C.so", [CUDART])
    place = bench.folder / "first" / "libcudart.so.12"
    place.parent.mkdir()
    place.write_bytes(b"")
    found = bench.examine([part], variables={"LD_LIBRARY_PATH": str(place.parent)})
    (load,) = [load for load in found.loads or () if load.name == place.name]
    assert (load.refused, load.found_by) == ("it is empty", "LD_LIBRARY_PATH")


def test_a_missing_part_and_one_for_another_processor(bench: Bench) -> None:
    gone, foreign = bench.library("fw/gone.so"), bench.library("fw/foreign.so")
    Path(gone).unlink()
    data = bytearray(Path(foreign).read_bytes())
    data[18:20] = b"\xb7\0"
    Path(foreign).write_bytes(data)
    found = bench.examine([gone, foreign])
    assert [(load.name, load.path, load.refused) for load in found.loads or ()] == [
        ("gone.so", None, None),
        ("foreign.so", foreign, "it is for aarch64, 64 bit"),
    ]


def test_a_part_that_cannot_be_loaded_by_itself(bench: Bench) -> None:
    """Libraries that were copied into a wheel are found by the RPATH of the extension that needs them."""
    bench.library("fw.libs/libcudnn-1a2b3c4d.so.9")
    inner = bench.library("fw.libs/libinner.so", ["fw.libs/libcudnn-1a2b3c4d.so.9"])
    part = bench.library("fw/_C.so", ["fw.libs/libinner.so"], *rpath("$ORIGIN/../fw.libs"))
    found = taken(bench.examine([inner, part]), bench)
    assert found["libcudnn-1a2b3c4d.so.9"] == ("fw.libs/libcudnn-1a2b3c4d.so.9", "rpath")
    assert taken(bench.examine([inner]), bench) == {"libcudnn-1a2b3c4d.so.9": (None, None)}


# --- Extensions -----------------------------------------------------------------------------------------------------
def torch(bench: Bench, *functions: str) -> str:
    source = bench.shop.at("torch.cpp")
    source.write_text("".join(f"namespace c10 {{ int {name}() {{ return 0; }} }}\n" for name in functions))
    return bench.library("torch/lib/libtorch.so", [], "-fPIC", "-x", "c++", str(source))


def extension(bench: Bench, path: str, *functions: str, needed: Sequence[str] = ("torch/lib/libtorch.so",)) -> str:
    source = bench.shop.at("extension.cpp")
    calls = "".join(
        f"namespace c10 {{ int {name}(); }}\nint f_{name}() {{ return c10::{name}(); }}\n" for name in functions
    )
    extra = '\nextern "C" { int PyLong_AsLong(void*); int elsewhere(void); __attribute__((weak)) int maybe(void); }'
    extra += "\nint g() { return PyLong_AsLong(nullptr) + elsewhere() + (maybe ? maybe() : 0); }\n"
    source.write_text(calls + extra)
    return bench.library(path, needed, "-fPIC", "-x", "c++", str(source))


def test_symbols_that_the_framework_met_does_not_define(bench: Bench) -> None:
    built = torch(bench, "kept", "renamed")
    part = extension(bench, "ext/_C.so", "kept", "renamed")
    assert set(bench.examine([part], extends=[built]).unresolved or ()) == {"elsewhere"}
    torch(bench, "kept")
    found = bench.examine([part], extends=[built])
    assert set(found.unresolved or ()) == {"_ZN3c107renamedEv", "elsewhere"}
    assert not [load for load in found.loads or () if load.path is None], "libtorch.so is there by its soname"


def test_what_may_have_been_in_a_missing_library_is_not_told(bench: Bench) -> None:
    built = torch(bench, "kept", "renamed")
    bench.library("aside/libcudart.so.11.0")
    part = extension(bench, "ext/_C.so", "renamed", needed=["torch/lib/libtorch.so", "aside/libcudart.so.11.0"])
    torch(bench, "kept")
    found = bench.examine([part], extends=[built])
    assert found.unresolved == ("_ZN3c107renamedEv",)
    assert taken(found, bench) == {"libcudart.so.11.0": (None, None)}


def test_an_extension_of_no_known_package(bench: Bench) -> None:
    """Anything that links PyTorch, wherever it lies, is held against the installed one."""
    torch(bench, "kept")
    for path, text in {"__init__.py": "", "version.py": "__version__ = '2.8.0'\ncuda = '12.8'\n"}.items():
        (bench.folder / SITE / "torch" / path).write_text(text)
    bench.library("torch/_C.so", ["torch/lib/libtorch.so"], *runpath("$ORIGIN/lib"))
    assert compiled(bench.site())["items"] == []
    extension(bench, "mine/_C.so", "kept", "gone")
    (found,) = compiled(bench.site())["items"]
    assert (found["name"], found["binaries"]) == ("mine", [str(bench.folder / SITE / "mine/_C.so")])
    assert set(found["unresolved"]) == {"_ZN3c104goneEv", "elsewhere"}
    extension(bench, "mine/_for_torch29-cuda.so", "another")
    assert compiled(bench.site())["items"] == [found], "a package chooses among libraries for one PyTorch each"
    (bench.folder / SITE / "torch/_C.so").unlink()
    assert compiled(bench.site())["items"] == [], "without PyTorch the question does not arise"


def test_symbols_are_no_question_where_nothing_is_extended(bench: Bench) -> None:
    built = torch(bench, "kept")
    assert bench.examine([built, extension(bench, "ext/_C.so", "kept", "gone")]).unresolved is None
    assert bench.examine([bench.library("ext/plain.so")], extends=[built]).unresolved is None


def test_an_extension_tells_only_of_what_it_asks_for_itself(bench: Bench) -> None:
    bench.library(CUDART)
    framework = bench.library("torch/_C.so", [CUDART])
    preload = Preload(("libcudart.so.12",), ("nvidia/cuda_runtime/lib",))
    plain, user = bench.library("ext/plain.so"), bench.library("ext/user.so", [CUDART])
    assert taken(bench.examine([plain], extends=[framework], preloads=[preload]), bench) == {}
    found = bench.examine([user], extends=[framework], preloads=[preload])
    assert taken(found, bench) == {"libcudart.so.12": (CUDART, "preloaded")}


# --- Which Python it is -----------------------------------------------------------------------------------------------
def test_the_rpath_of_the_environments_python(bench: Bench) -> None:
    """conda's libraries win for everything that Python loads, by the RPATH of its program."""
    bench.shop.library("lib/libstdc++.so.6")
    bench.shop.program("bin/python3.11", [], *rpath("$ORIGIN/../lib"))
    found = bench.examine([bench.library("fw/_C.so", [f"{'../' * 3}libstdc++.so.6"])])
    (load,) = [load for load in found.loads or () if load.name == "libstdc++.so.6"]
    assert (load.path, load.found_by) == (str(bench.folder / "lib/libstdc++.so.6"), "rpath")


def test_the_python_that_runs_this_test(bench: Bench) -> None:
    """It maps what it is predicted to start with, and ``ctypes`` finds by name what is predicted to be found."""
    bench.shop.library("variable/libfound.so")
    variables = {"LD_LIBRARY_PATH": str(bench.folder / "variable")}
    code = "import ctypes; ctypes.CDLL('libfound.so'); print(open('/proc/self/maps').read())"
    done = subprocess.run([sys.executable, "-I", "-c", code], env=variables, capture_output=True, text=True, check=True)
    mapped = {os.path.realpath(line.partition("/")[1] + line.partition("/")[2]) for line in done.stdout.splitlines()}
    folder = Path(sys.executable).parent.parent
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    site = Site(Tree({"variables": variables}), str(folder), (f"{folder}/lib/python{minor}/site-packages",), 0, ())
    process = started(site).copy()
    assert {process.search.real(image.path) for image in process.images} <= mapped
    (found,) = process.open("libfound.so", caller_of_ctypes(process, site))
    assert found.image
    assert found.image.path in mapped
    assert {process.search.real(image.path) for image in process.images} <= mapped


@cases("flags", ["-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1"], ["-static"], None)
def test_a_python_whose_loader_is_not_known_gets_no_answer(bench: Bench, flags: list[str] | None) -> None:
    if flags is None:
        (bench.folder / "bin/python3.11").unlink()
    else:
        bench.shop.program("bin/python3.11", [], *flags)
    found = bench.examine([bench.library("fw/_C.so")])
    assert (found.loads, found.loads_complete, found.unresolved) == (None, False, None)
