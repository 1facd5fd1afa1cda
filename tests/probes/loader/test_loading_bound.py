"""Functions that a copy of the right name lacks: what is predicted, against what the real loader says."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

from envcheck.snapshot import Load
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
    other = defining(case.shop, f"other/{JITLINK}", NEW, OLD)
    variables = {"LD_LIBRARY_PATH": str(other.parent)}
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
