"""Functions that a copy of the right name lacks, and random layouts of libraries that need each other."""

import ctypes
import random
import subprocess
import sys
from pathlib import Path
from typing import TypeVar

import pytest

from envcheck.model.snapshot import Load
from tests.every import cases
from tests.probes.loader.loading_builds import GCC, REASON, Workshop, rpath, runpath
from tests.probes.loader.test_loading_frameworks import SITE, Bench

pytestmark = pytest.mark.skipif(GCC is None, reason=REASON)

JITLINK, NCCL = "libnvJitLink.so.12", "libnccl.so.2"
WHEEL = f"nvidia/lib/{JITLINK}"
NEW, OLD = "__nvJitLinkComplete_12_4", "__nvJitLinkComplete_12_1"


def defining(shop: Workshop, path: str, *names: str, versioned: bool = True, flags: tuple[str, ...] = ()) -> Path:
    """A library with these functions, bound to a version of its own name as NVIDIA's are."""
    place = shop.at(path)
    source, script = place.with_suffix(".c"), place.with_suffix(".map")
    source.write_text("".join(f"int {name}(void) {{ return 1; }}\n" for name in names))
    script.write_text(f"{place.name} {{ global: {'; '.join(names)}; local: *; }};\n")
    bound = [f"-Wl,--version-script={script}"] if versioned else []
    words = [GCC or "gcc", "-shared", "-fPIC", f"-Wl,-soname,{place.name}", *bound, *flags, "-o", place, source]
    subprocess.run(list(map(str, words)), check=True)
    return place


def using(shop: Workshop, path: str, library: Path, name: str, *flags: str) -> Path:
    """A library that calls a function of another."""
    place = shop.at(path)
    source = place.with_suffix(".c")
    source.write_text(f"int {name}(void); int used_by_{place.stem[-1]}(void) {{ return {name}(); }}\n")
    words = [GCC or "gcc", "-shared", "-fPIC", "-o", place, source, library, f"-Wl,-soname,{place.name}", *flags]
    subprocess.run(list(map(str, words)), check=True)
    return place


class Shadowed:
    """A framework linked to a wheel's library, which another copy may hide."""

    def __init__(self, folder: Path, name: str, function: str, *, versioned: bool = True) -> None:
        self.bench = Bench(folder)
        self.shop, self.name = self.bench.shop, name
        wheel = defining(self.shop, f"{SITE}/nvidia/lib/{name}", function, versioned=versioned)
        self.part = using(self.shop, f"{SITE}/fw/_C.so", wheel, function, *runpath("$ORIGIN/../nvidia/lib"))

    def load(self, **variables: str) -> Load:
        found = self.bench.examine([str(self.part)], variables=variables)
        (load,) = [load for load in found.loads or () if load.name == self.name]
        return load

    def real_error(self, **variables: str) -> str:
        """What an import would say: Python binds all at once."""
        code = f"import ctypes; ctypes.CDLL({str(self.part)!r})"
        words = [sys.executable, "-S", "-c", code]
        done = subprocess.run(words, env=variables, capture_output=True, text=True, check=False)
        return done.stderr.strip().splitlines()[-1] if done.returncode else ""


@cases("style", "gnu", "sysv")
def test_an_older_copy_on_a_variable_lacks_a_function(tmp_path: Path, style: str) -> None:
    case = Shadowed(tmp_path, JITLINK, NEW)
    older = defining(case.shop, f"older/{JITLINK}", OLD, flags=(f"-Wl,--hash-style={style}",))
    variables = {"LD_LIBRARY_PATH": str(older.parent)}
    load = case.load(**variables)
    assert (load.path, load.missing_symbols, load.needed_by) == (str(older), (NEW,), str(case.part))
    assert f"undefined symbol: {NEW}, version {JITLINK}" in case.real_error(**variables)


def test_a_library_without_versions_is_known_by_how_its_functions_begin(tmp_path: Path) -> None:
    case = Shadowed(tmp_path, NCCL, "ncclCommSplit", versioned=False)
    older = defining(case.shop, f"older/{NCCL}", "ncclCommInitRank", versioned=False)
    variables = {"LD_LIBRARY_PATH": str(older.parent)}
    assert case.load(**variables).missing_symbols == ("ncclCommSplit",)
    assert "undefined symbol: ncclCommSplit" in case.real_error(**variables)


def test_a_copy_that_has_all_lacks_nothing(tmp_path: Path) -> None:
    case = Shadowed(tmp_path, JITLINK, NEW)
    variables = {"LD_LIBRARY_PATH": str(defining(case.shop, f"other/{JITLINK}", NEW, OLD).parent)}
    assert case.load(**variables).missing_symbols == ()
    assert case.real_error(**variables) == ""


def test_a_function_that_another_library_of_the_process_defines(tmp_path: Path) -> None:
    case = Shadowed(tmp_path, NCCL, "ncclCommSplit", versioned=False)
    older = defining(case.shop, f"older/{NCCL}", "ncclCommInitRank", versioned=False)
    shim = defining(case.shop, "shim/libshim.so", "ncclCommSplit", versioned=False)
    variables = {"LD_LIBRARY_PATH": str(older.parent), "LD_PRELOAD": str(shim)}
    assert case.load(**variables).missing_symbols == ()
    assert case.real_error(**variables) == ""


def test_a_stray_copy_beside_the_framework_that_its_rpath_finds_first(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    wheel = defining(bench.shop, f"{SITE}/{WHEEL}", NEW)
    part = using(bench.shop, f"{SITE}/fw/_C.so", wheel, NEW, *rpath("$ORIGIN", "$ORIGIN/../nvidia/lib"))
    stray = defining(bench.shop, f"{SITE}/fw/{JITLINK}", OLD)
    (load,) = [one for one in bench.examine([str(part)]).loads or () if one.name == JITLINK]
    assert (load.found_by, load.path, load.missing_symbols) == ("rpath", str(stray), (NEW,))
    with pytest.raises(OSError, match=NEW):
        ctypes.CDLL(str(part))


def test_the_wheels_own_copy_costs_no_look(tmp_path: Path) -> None:
    assert Shadowed(tmp_path, JITLINK, NEW).load().missing_symbols is None


def test_a_copy_whose_symbols_cannot_be_read_is_not_called_whole(tmp_path: Path) -> None:
    case = Shadowed(tmp_path, JITLINK, NEW)
    older = defining(case.shop, f"older/{JITLINK}", OLD)
    tag_of_its_hashes, unknown = b"\xf5\xfe\xff\x6f", b"\xf4\xfe\xff\x6f"
    older.write_bytes(older.read_bytes().replace(tag_of_its_hashes, unknown))
    assert case.load(LD_LIBRARY_PATH=str(older.parent)).missing_symbols is None


# --- Random layouts of libraries that need each other ---------------------------------------------------------------
T = TypeVar("T")
FOLDERS = [f"d{number}" for number in range(4)]
NAMES = [f"libx{number}.so" for number in range(5)]


class Layout:
    """One random layout below a folder, and what a program in it opens."""

    def __init__(self, shop: Workshop, seed: int) -> None:
        self._shop = shop
        self._random = random.Random(seed)
        for name in NAMES:
            shop.library(f"stubs/{name}")
        files = [self._file(folder, name) for name in NAMES for folder in self._some(FOLDERS, 1, 2)]
        self.program = shop.program("bin/host", [f"stubs/{name}" for name in self._some(NAMES, 0, 1)], *self._path())
        self.variables = {"LD_LIBRARY_PATH": ":".join(self._folders(0, 2))}
        preloaded = [str(path) for path in self._some(files, 0, 1)]
        if preloaded:
            self.variables["LD_PRELOAD"] = " ".join(preloaded)
        self.opened = self._some([*NAMES, *map(str, files), "libnone.so"], 2, 5)

    def _file(self, folder: str, name: str) -> Path:
        needed = [f"stubs/{other}" for other in self._some(NAMES, 0, 2)]
        soname = self._random.choice(["", "", "", "", None, self._random.choice(NAMES)])
        return self._shop.library(f"{folder}/{name}", needed, *self._path(), soname=soname)

    def _path(self) -> tuple[str, ...]:
        how = self._random.choice([rpath, runpath, None])
        folders = self._folders(1, 2)
        return how(*folders) if how else ()

    def _folders(self, least: int, most: int) -> list[str]:
        forms = ["{top}/{folder}", "$ORIGIN/../{folder}", "{top}/{folder}/../{folder}"]
        return [
            self._random.choice(forms).format(top=self._shop.folder, folder=folder)
            for folder in self._some(FOLDERS, least, most)
        ]

    def _some(self, things: list[T], least: int, most: int) -> list[T]:
        return self._random.sample(things, self._random.randint(least, min(most, len(things))))


def differs(folder: Path, seed: int) -> str | None:
    """Empty where all is as predicted; None where the program cannot even start, which says nothing."""
    shop = Workshop(folder)
    layout = Layout(shop, seed)
    truth = shop.attempt(layout.program, layout.opened, layout.variables)
    if truth is None:
        return None
    predicted = shop.predicted(layout.program, layout.opened, layout.variables)
    return "" if predicted == truth else f"seed {seed}: {layout.opened} {layout.variables}: {predicted} != {truth}"


@pytest.mark.parametrize("seed", range(6))
def test_a_random_layout(tmp_path: Path, seed: int) -> None:
    assert not differs(tmp_path, seed)


@pytest.mark.lab
def test_many_random_layouts(tmp_path: Path) -> None:
    found = []
    for seed in range(100, 260):
        folder = tmp_path / str(seed)
        folder.mkdir()
        found.append(differs(folder, seed))
    assert not [one for one in found if one]
    assert found.count("") > len(found) / 2
