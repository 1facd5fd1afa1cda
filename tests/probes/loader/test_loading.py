"""The search for libraries against the loader of this machine, on libraries linked for the purpose."""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import pytest

from tests.every import cases
from tests.probes.loader.loading_builds import GCC, REASON, Seen, Workshop, rpath, runpath

pytestmark = pytest.mark.skipif(GCC is None, reason=REASON)

Agreed = Callable[..., Seen]


@pytest.fixture
def here(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


@pytest.fixture
def agreed(here: Workshop) -> Agreed:
    """``agreed(program, names, variables) -> Seen``: what happens, which must be what was predicted."""

    def compare(program: Path, names: Sequence[str], variables: Mapping[str, str] | None = None) -> Seen:
        truth = here.truth(program, names, variables)
        assert here.predicted(program, names, variables) == truth
        return truth

    return compare


def names(seen: Seen, here: Workshop) -> set[str]:
    """The mapped files, by their path in the test's folder."""
    return {os.path.relpath(path, here.folder) for path in seen.mapped}


# --- Where it looks, and in which order ---------------------------------------------------------------------------
@cases("how", rpath, runpath)
@cases("variable", False, True)
def test_rpath_outranks_the_variable_and_runpath_does_not(
    here: Workshop, agreed: Agreed, how: Callable[..., tuple[str, ...]], *, variable: bool
) -> None:
    for folder in ("by_path", "by_variable"):
        here.library(f"{folder}/libdep.so.1")
    here.library("libtop.so", ["by_path/libdep.so.1"], *how(here.folder / "by_path"))
    variables = {"LD_LIBRARY_PATH": str(here.folder / "by_variable")} if variable else {}
    seen = agreed(here.program(), [str(here.folder / "libtop.so")], variables)
    taken = "by_variable" if variable and how is runpath else "by_path"
    assert names(seen, here) == {"libtop.so", f"{taken}/libdep.so.1"}


@cases("how", rpath, runpath)
def test_rpath_serves_what_is_needed_further_down_and_runpath_does_not(
    here: Workshop, agreed: Agreed, how: Callable[..., tuple[str, ...]]
) -> None:
    here.library("deep/libbottom.so")
    here.library("deep/libmiddle.so", ["deep/libbottom.so"])
    here.library("libtop.so", ["deep/libmiddle.so"], *how(here.folder / "deep"))
    assert agreed(here.program(), [str(here.folder / "libtop.so")]).loaded == (how is rpath,)


def test_runpath_of_a_library_shuts_out_the_rpath_of_those_above(here: Workshop, agreed: Agreed) -> None:
    here.library("deep/libbottom.so")
    here.library("deep/libmiddle.so", ["deep/libbottom.so"], *runpath(here.folder / "nowhere"))
    here.library("libtop.so", ["deep/libmiddle.so"], *rpath(here.folder / "deep"))
    assert agreed(here.program(), [str(here.folder / "libtop.so")]).loaded == (False,)


@cases("how", rpath, runpath)
@cases("inner", (), runpath("/nowhere"))
def test_its_path(here: Workshop, agreed: Agreed, how: Callable[..., tuple[str, ...]], inner: tuple[str, ...]) -> None:
    """As conda's Python has it: RPATH serves every library that is loaded later, unless that one has a RUNPATH."""
    here.library("lib/libdep.so")
    here.library("elsewhere/libdep.so")
    here.library("libtop.so", ["lib/libdep.so"], *inner)
    program = here.program("bin/host", [], *how("$ORIGIN/../lib"))
    seen = agreed(program, [str(here.folder / "libtop.so")], {"LD_LIBRARY_PATH": str(here.folder / "elsewhere")})
    taken = "lib" if how is rpath and not inner else "elsewhere"
    assert names(seen, here) == {"libtop.so", f"{taken}/libdep.so"}


@cases("how", rpath, runpath)
def test_a_name_without_a_folder_is_looked_for_as_the_caller_would(
    here: Workshop, agreed: Agreed, how: Callable[..., tuple[str, ...]]
) -> None:
    """The dependencies of what is found do not inherit the caller's RPATH, unless the caller is the program."""
    here.library("lib/libdep.so")
    here.library("lib/libtop.so", ["lib/libdep.so"])
    seen = agreed(here.program("host", [], *how(here.folder / "lib")), ["libdep.so", "libtop.so", "libnone.so"])
    assert seen.loaded == (True, True, False)
    seen = agreed(here.program("other", [], *how(here.folder / "lib")), ["libtop.so"])
    assert seen.loaded == (how is rpath,)


def test_the_variable_is_split_and_expanded(here: Workshop, agreed: Agreed) -> None:
    for folder in ("one", "two", "three", "four"):
        here.library(f"{folder}/lib{folder}.so")
    here.library("libhere.so")
    program = here.program("three/host")
    value = f"{here.folder}/one;two/::$ORIGIN:{here.folder}/nowhere:${{ORIGIN}}/../four"
    seen = agreed(
        program, [f"lib{name}.so" for name in ("one", "two", "here", "three", "four")], {"LD_LIBRARY_PATH": value}
    )
    assert seen.loaded == (True,) * 5


@cases("how", rpath, runpath)
def test_a_path_that_repeats_its_folders(here: Workshop, agreed: Agreed, how: Callable[..., tuple[str, ...]]) -> None:
    """TensorFlow 2.21 has 669 entries, of which 18 are distinct."""
    here.library("last/libdep.so.1")
    here.library("libtop.so", ["last/libdep.so.1"], *how(*["$ORIGIN/none", "$ORIGIN/../none"] * 400, "$ORIGIN/last"))
    assert names(agreed(here.program(), [str(here.folder / "libtop.so")]), here) == {"libtop.so", "last/libdep.so.1"}


def test_the_cache_and_the_default_folders(here: Workshop) -> None:
    process = here.process(here.program())
    (libc, *_) = process.open("libc.so.6")
    assert libc.image
    assert libc.image.found_by == "cache"
    found = [found.by for found in process.search.all("libc.so.6", None)]
    assert found[0] == "cache"
    assert "default" in found


@cases("name", "libm.so.6", "libdl.so.2")
def test_a_library_that_forbids_the_default_folders(here: Workshop, agreed: Agreed, name: str) -> None:
    here.library("libtop.so", [here.process(here.program()).search.first(name, None).path], "-Wl,-z,nodefaultlib")
    assert agreed(here.program(), [str(here.folder / "libtop.so")]).loaded == (False,)
    assert agreed(here.program(), [name, str(here.folder / "libtop.so")]).loaded == (True, True)


def test_origin_is_the_folder_by_which_a_library_was_reached(here: Workshop, agreed: Agreed) -> None:
    here.library("real/lib/libdep.so")
    here.library("aside/lib/libdep.so")
    here.library("real/top/libtop.so", ["real/lib/libdep.so"], *runpath("$ORIGIN/../lib"))
    (here.folder / "aside/top").symlink_to(here.folder / "real/top")
    (here.folder / "libtop.so").symlink_to("real/top/libtop.so")
    program = here.program()
    assert "real/lib/libdep.so" in names(agreed(program, [str(here.folder / "aside/top/libtop.so")]), here)
    assert agreed(program, [str(here.folder / "libtop.so")]).loaded == (False,)


def test_origin_of_a_program_is_where_its_links_lead(here: Workshop, agreed: Agreed) -> None:
    here.library("base/lib/libdep.so")
    program = here.program("base/bin/host", [], *rpath("$ORIGIN/../lib"))
    link = here.at("venv/bin/python")
    link.symlink_to(program)
    assert agreed(link, ["libdep.so"]).loaded == (True,)


def test_a_name_with_a_folder_in_it(here: Workshop, agreed: Agreed) -> None:
    """What a library calls itself is what others ask for, tokens included."""
    here.library("lib/libdep.so", soname="$ORIGIN/lib/libdep.so")
    here.library("lib/libold.so", soname=f"{here.folder}/lib/libold.so")
    here.library("libtop.so", ["lib/libdep.so", "lib/libold.so"])
    here.library("lib/libtop.so", ["lib/libdep.so"])
    seen = agreed(here.program(), [str(here.folder / "libtop.so"), str(here.folder / "lib/libtop.so")])
    assert seen.loaded == (True, False)


@cases("token", "$LIB", "${LIB}", "$PLATFORM")
def test_tokens_that_depend_on_the_machine(here: Workshop, agreed: Agreed, token: str) -> None:
    system = here.process(here.program("probe")).system
    value = system.platform if "PLATFORM" in token else system.lib
    here.library(f"{value}/libdep.so")
    assert agreed(here.program("host", [], *rpath(f"{here.folder}/{token}")), ["libdep.so"]).loaded == (True,)


def test_subfolders_for_the_processor(here: Workshop, agreed: Agreed) -> None:
    """What this processor is fit for is tried best first, before the folder itself."""
    system = here.process(here.program("probe")).system
    candidates = [f"glibc-hwcaps/x86-64-v{level}" for level in (4, 3, 2, 1)] + ["tls", "haswell/x86_64", "x86_64", "."]
    for subfolder in candidates:
        here.library(f"lib/{subfolder}/libdep.so")
    tried: list[str] = []
    for _ in candidates:
        (path,) = agreed(here.program("host", [], *rpath(here.folder / "lib")), ["libdep.so"]).mapped or {""}
        if not path:
            break
        tried.append(os.path.relpath(Path(path).parent, here.folder / "lib"))
        shutil.rmtree(Path(path).parent) if tried[-1] != "." else Path(path).unlink()
    assert (tried[-1], tried[: len(system.levels)]) == (".", [f"glibc-hwcaps/{level}" for level in system.levels])


# --- What counts as loaded already --------------------------------------------------------------------------------
def test_a_library_loaded_by_path_serves_who_asks_for_its_soname(here: Workshop, agreed: Agreed) -> None:
    """How frameworks preload: the first to be loaded wins, whatever the search would find."""
    here.library("wheel/libdep-1.2.so", soname="libdep.so.1")
    here.library("system/libdep.so.1")
    here.library("libtop.so", ["system/libdep.so.1"], *rpath(here.folder / "system"))
    top = str(here.folder / "libtop.so")
    seen = agreed(here.program(), [str(here.folder / "wheel/libdep-1.2.so"), top])
    assert names(seen, here) == {"libtop.so", "wheel/libdep-1.2.so"}
    seen = agreed(here.program(), [top, str(here.folder / "wheel/libdep-1.2.so")])
    assert names(seen, here) == {"libtop.so", "wheel/libdep-1.2.so", "system/libdep.so.1"}


@cases("soname", "libother.so.2", None)
def test_a_preloaded_library_of_another_soname_serves_none(here: Workshop, agreed: Agreed, soname: str | None) -> None:
    here.library("wheel/libdep.so.1", soname=soname)
    here.library("system/libdep.so.1")
    here.library("libtop.so", ["system/libdep.so.1"], *rpath(here.folder / "system"))
    seen = agreed(here.program(), [str(here.folder / "wheel/libdep.so.1"), str(here.folder / "libtop.so")])
    assert "system/libdep.so.1" in names(seen, here)


def test_one_file_by_several_paths_is_mapped_once(here: Workshop, agreed: Agreed) -> None:
    """And from then on answers to each name that it was asked for by."""
    here.library("libdep.so.1.2", soname=None)
    for link in ("libdep.so.1", "libdep.so"):
        (here.folder / link).symlink_to("libdep.so.1.2")
    (here.folder / "hard.so").hardlink_to(here.folder / "libdep.so.1.2")
    here.library("aside/libdep.so.1")
    here.library("libtop.so", ["aside/libdep.so.1"], *runpath(here.folder / "aside"))
    program = here.program("host", [], *rpath(here.folder))
    opened = ["libdep.so.1", str(here.folder / "libdep.so"), str(here.folder / "hard.so")]
    assert len(agreed(program, opened).mapped) == 1
    assert len(agreed(program, [*opened, "libtop.so"]).mapped) == 2
    assert len(agreed(program, [*opened[1:], "libtop.so"]).mapped) == 3


def test_ld_preload_comes_before_all(here: Workshop, agreed: Agreed) -> None:
    here.library("first/libdep.so.1")
    here.library("first/libbelow.so")
    here.library("first/libby.so", ["first/libbelow.so"], *runpath("$ORIGIN"))
    here.library("lib/libdep.so.1")
    here.library("lib/libtop.so", ["lib/libdep.so.1"])
    program = here.program("host", ["lib/libtop.so"], *rpath(here.folder / "lib"))
    preloaded = f"{here.folder}/first/libdep.so.1 libnone.so:{here.folder}/first/libby.so"
    seen = agreed(program, [], {"LD_PRELOAD": preloaded})
    assert names(seen, here) == {
        "first/libdep.so.1", "first/libby.so", "first/libbelow.so", "lib/libtop.so"
    }  # fmt: skip


# --- What is passed over, and what ends the search ------------------------------------------------------------------
def with_bytes(path: Path, place: int, new: bytes) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:place] + new + data[place + len(new) :])


as_other_machine = partial(with_bytes, place=18, new=b"\x15\x00")
as_32_bit = partial(with_bytes, place=4, new=b"\x01")
as_big_endian = partial(with_bytes, place=5, new=b"\x02")


def as_text(path: Path) -> None:
    path.write_text("INPUT ( -lother ) /* what the linker reads is nothing to the loader */\n" * 4)


def as_nothing(path: Path) -> None:
    path.write_bytes(b"")


def as_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def as_loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def as_dangling(path: Path) -> None:
    path.unlink()
    path.symlink_to("gone.so")


@cases("damage, goes_on",
    (as_other_machine, True), (as_32_bit, True), (as_dangling, True), (as_big_endian, False), (as_text, False),
    (as_nothing, False), (as_folder, False),
)  # fmt: skip
def test_files_that_fit_not(here: Workshop, agreed: Agreed, damage: Callable[[Path], None], *, goes_on: bool) -> None:
    for folder in ("first", "second"):
        here.library(f"{folder}/libdep.so")
    here.library("libtop.so", ["first/libdep.so"], *runpath(here.folder / "first", here.folder / "second"))
    damage(here.folder / "first/libdep.so")
    assert agreed(here.program(), [str(here.folder / "libtop.so")]).loaded == (goes_on,)


def test_a_link_that_leads_in_a_circle_ends_one_list_of_folders(here: Workshop, agreed: Agreed) -> None:
    for folder in ("first", "second", "third"):
        here.library(f"{folder}/libdep.so")
    here.library("libtop.so", ["first/libdep.so"], *runpath(here.folder / "third"))
    as_loop(here.folder / "first/libdep.so")
    variables = {"LD_LIBRARY_PATH": f"{here.folder}/first:{here.folder}/second"}
    seen = agreed(here.program(), [str(here.folder / "libtop.so")], variables)
    assert names(seen, here) == {"libtop.so", "third/libdep.so"}


def test_a_missing_library_takes_all_that_came_with_it_along(here: Workshop, agreed: Agreed) -> None:
    here.library("lib/libgone.so")
    here.library("lib/libkept.so")
    here.library("lib/libtop.so", ["lib/libkept.so", "lib/libgone.so"], *runpath("$ORIGIN"))
    (here.folder / "lib/libgone.so").unlink()
    top = str(here.folder / "lib/libtop.so")
    assert agreed(here.program(), [top]) == Seen((False,), frozenset())
    assert names(agreed(here.program(), [str(here.folder / "lib/libkept.so"), top]), here) == {"lib/libkept.so"}


def test_libraries_that_need_each_other(here: Workshop, agreed: Agreed) -> None:
    here.library("libone.so")
    here.library("libtwo.so", ["libone.so"], *runpath("$ORIGIN"))
    here.library("libone.so", ["libtwo.so", "libone.so"], *runpath("$ORIGIN"))
    assert len(agreed(here.program(), [str(here.folder / "libone.so")]).mapped) == 2


@cases("offered", "V1", "V1 V2", "")
def test_symbol_versions_that_the_file_found_does_not_have(here: Workshop, agreed: Agreed, offered: str) -> None:
    """A library without any versions is taken all the same."""

    def versioned(path: str, versions: str) -> None:
        script = here.at(f"{path}.map")
        script.write_text("".join(f"{one} {{ global: of_{one}; }};\n" for one in versions.split()))
        source = here.at(f"{path}.c")
        source.write_text("".join(f"int of_{one}(void) {{ return 0; }}\n" for one in (versions or "V1 V2").split()))
        flags = [f"-Wl,--version-script={script}"] if versions else []
        here.library(path, [], "-fPIC", str(source), *flags)

    versioned("built/libdep.so", "V1 V2")
    versioned("found/libdep.so", offered)
    source = here.at("top.c")
    source.write_text("int of_V2(void); int top(void) { return of_V2(); }\n")
    here.library("libtop.so", ["built/libdep.so"], "-fPIC", str(source), *runpath(here.folder / "found"))
    assert agreed(here.program(), [str(here.folder / "libtop.so")]).loaded == (offered != "V1",)
