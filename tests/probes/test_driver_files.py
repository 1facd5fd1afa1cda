"""The probe for the driver's libraries, on made-up trees and on this machine."""

import os
import shutil
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envcheck.model.snapshot import Driver, DriverLibrary
from probes.files.loader.setup import Lookup
from tests.every import cases
from tests.known import Expected, fields, known
from tests.probes.conftest import BuildRoot, Changes, Probed, RunProbe
from tests.probes.tiny_elf import tiny_elf

ELF = "\x7fELF\x02"
UBUNTU = "/usr/lib/x86_64-linux-gnu"
CUDA = f"{UBUNTU}/libcuda.so.580.159.04"
WSL = "/usr/lib/wsl/lib"
WSL_LIBRARIES = tuple(f"{WSL}/{name}" for name in ("libcuda.so.1", "libcuda.so", "libcuda.so.1.1", "libnvidia-ml.so.1"))
STUBS = "/usr/local/cuda/lib64/stubs"
OTHER = "/opt/driver/libcuda.so.1"


def look(run_probe: RunProbe, root: str, **variables: str) -> Driver:
    snapshot, _ = run_probe("driver_files", {"root": root, "variables": variables})
    return known(snapshot.driver)


def libraries(driver: Driver) -> dict[str, DriverLibrary]:
    return {library.path: library for library in known(driver.libraries).items}


def found_in(probed: Probed, tree: str | None, changes: Changes | None = None, **variables: str) -> Driver:
    return known(probed("driver_files", tree, changes, variables=variables, cwd="/home/me").driver)


def cache(*entries: tuple[str, str], old: bytes = b"") -> bytes:
    """A cache as ldconfig writes it: header, entries, strings."""
    table, strings = b"", b""
    start = 48 + 24 * len(entries)
    for name, path in entries:
        at = start + len(strings)
        strings += name.encode() + b"\0" + path.encode() + b"\0"
        table += struct.pack("<iIIIQ", 0x0303, at, at + len(name.encode()) + 1, 0, 0)
    header = struct.pack("<20sIIB3xI12x", b"glibc-ld.so.cache1.1", len(entries), len(strings), 2, 0)
    return old + header + table + strings


def test_ubuntu(run_probe: RunProbe, build_root: BuildRoot) -> None:
    driver = look(run_probe, build_root("ubuntu-580-open"))
    assert driver.installed is True
    assert driver.libraries
    assert driver.libraries.complete is True
    found = libraries(driver)
    assert {path: (library.kind, library.version) for path, library in found.items()} == {
        CUDA: ("driver", "580.159.04"),
        f"{UBUNTU}/libnvidia-ml.so.580.159.04": ("driver", "580.159.04"),
        f"{UBUNTU}/libnvidia-nvvm.so.580.159.04": ("driver", "580.159.04"),
        "/usr/local/cuda-12.8/compat/libcuda.so.570.124.06": ("compat", "570.124.06"),
        "/usr/local/cuda-12.8/targets/x86_64-linux/lib/stubs/libcuda.so": ("stub", None),
    }
    assert found[CUDA].soname == "libcuda.so.1"
    assert found[f"{UBUNTU}/libnvidia-nvvm.so.580.159.04"].soname == "libnvidia-nvvm.so.4"
    assert found[CUDA].found_as == ("/lib/x86_64-linux-gnu/libcuda.so", "/lib/x86_64-linux-gnu/libcuda.so.1")
    assert found["/usr/local/cuda-12.8/compat/libcuda.so.570.124.06"].found_as == ()


def test_32_bit_libraries_are_passed_over(probed: Probed) -> None:
    assert not [path for path in libraries(found_in(probed, "ubuntu-580-open")) if "i386" in path]


def test_library_path_comes_first(probed: Probed) -> None:
    paths = f"/nowhere::$ORIGIN/lib:{STUBS}:/usr/local/cuda/compat"
    found = libraries(found_in(probed, "ubuntu-580-open", LD_LIBRARY_PATH=paths))
    stub, compat, first = list(found)[:3]
    assert (found[stub].kind, found[stub].found_as) == ("stub", (f"{STUBS}/libcuda.so",))
    assert (found[compat].kind, found[compat].found_as) == ("compat", ("/usr/local/cuda/compat/libcuda.so.1",))
    assert first == CUDA


def test_empty_entry_of_the_library_path_is_the_current_folder(probed: Probed) -> None:
    driver = found_in(probed, None, {"/home/me/libcuda.so.1": ELF}, LD_LIBRARY_PATH="/nowhere:")
    assert list(libraries(driver)) == ["/home/me/libcuda.so.1"]


def test_the_cache_decides_before_the_built_in_folders(probed: Probed) -> None:
    paths = (("libc.so.6", "/lib/libc.so.6"), ("libcuda.so.1", OTHER), ("libcuda.so.1", f"{UBUNTU}/libcuda.so.1"))
    found = libraries(found_in(probed, "ubuntu-580-open", {"/etc/ld.so.cache": cache(*paths), OTHER: ELF}))
    assert list(found)[:2] == [OTHER, CUDA]
    assert (found[CUDA].found_as[0], found[OTHER].version) == (f"{UBUNTU}/libcuda.so.1", None)


@cases("data", b"", b"glibc-ld.so.cache1.1", cache(("libcuda.so.1", "/x/libcuda.so.1"))[:-3], b"\xff" * 99)
def test_damaged_cache_leaves_the_list_open(probed: Probed, data: bytes) -> None:
    driver = found_in(probed, "debian-container", {"/etc/ld.so.cache": data})
    assert (known(driver.libraries).complete, driver.installed) == (False, None)


def test_bare_container_has_none(run_probe: RunProbe, build_root: BuildRoot) -> None:
    snapshot, done = run_probe("driver_files", {"root": build_root("debian-container")})
    assert done["status"] == "absent"
    assert (known(snapshot.driver).installed, known(snapshot.driver).smi_path) == (False, None)


DEBIAN = {
    f"{UBUNTU}/libcuda.so.1": "-> /etc/alternatives/nvidia--libcuda.so.1-x86_64-linux-gnu",
    "/etc/alternatives/nvidia--libcuda.so.1-x86_64-linux-gnu": f"-> {UBUNTU}/nvidia/current/libcuda.so.1",
    f"{UBUNTU}/nvidia/current/libcuda.so.1": "-> libcuda.so.535.261.03",
    f"{UBUNTU}/nvidia/current/libcuda.so.535.261.03": ELF,
    "/usr/bin/nvidia-smi": "-> /etc/alternatives/nvidia--nvidia-smi",
    "/etc/alternatives/nvidia--nvidia-smi": "-> /usr/lib/nvidia/current/nvidia-smi",
    "/usr/lib/nvidia/current/nvidia-smi": ELF,
}
"""Links as the packages nvidia-alternative and libcuda1 535.261.03 of Debian 12 lay them."""

HOSTILE: Mapping[str, str] = {
    f"{UBUNTU}/libcuda.so.1": "-> libcuda.so", f"{UBUNTU}/libcuda.so": "-> libcuda.so.1",
    f"{UBUNTU}/libnvidia-ml.so.1": "-> /gone", f"{UBUNTU}/libcuda.so.999.99.\x1b[2J": ELF,
    f"{UBUNTU}/libcudadebugger.so.1/": "", "/usr/lib/nvidia-loop": "-> /usr/lib/nvidia-loop",
}  # fmt: skip


@cases("about, tree, changes, expected",
    ("a cache that names what is gone", "debian-container",
     {"/etc/ld.so.cache": cache(("libcuda.so.1", "/gone/libcuda.so.1"))}, {"installed": False, "libraries.items": ()}),
    ("stubs and compatibility copies are no driver", "debian-container",
     {"/usr/local/cuda-12.4/lib64/stubs/libcuda.so": ELF, "/usr/local/cuda-12.4/compat/libcuda.so.550.54.15": ELF},
     {"installed": False, "libraries.items.kind": ("compat", "stub")}),
    ("Debian through its alternatives", "debian-container", DEBIAN,
     {"smi_path": "/usr/bin/nvidia-smi", "libraries.items.version": ("535.261.03",),
      "libraries.items.kind": ("driver",), "libraries.items.soname": ("libcuda.so.1",),
      "libraries.items.path": (f"{UBUNTU}/nvidia/current/libcuda.so.535.261.03",),
      "libraries.items.found_as": (("/lib/x86_64-linux-gnu/libcuda.so.1",),)}),
    ("packages of Debian that were never configured", "debian-container",
     {f"{UBUNTU}/nvidia/tesla-470/libcuda.so.470.256.02": ELF},
     {"installed": True, "libraries.items.path": (f"{UBUNTU}/nvidia/tesla-470/libcuda.so.470.256.02",),
      "libraries.items.found_as": ((),)}),
    ("WSL", "wsl2", {"/etc/ld.so.cache": cache(("libcuda.so.1", f"{WSL}/libcuda.so.1"))},
     {"installed": True, "smi_path": f"{WSL}/nvidia-smi", "libraries.items.path": WSL_LIBRARIES,
      "libraries.items.version": (None, None, None, "565.77.01"),
      "libraries.items.found_as": ((f"{WSL}/libcuda.so.1",), (), (), ())}),
    ("two releases inside decide nothing", "wsl2",
     {f"{WSL}/libnvidia-ml.so.1": f"{ELF}\x00565.77.01\x00x\x00535.54.03\x00"},
     {"libraries.items.version": (None, None, None, None)}),
    ("numbers of a Jetson are no release of a driver", "jetson-orin", {},
     {"libraries.items.path": ("/usr/lib/aarch64-linux-gnu/nvidia/libcuda.so.1.1",),
      "libraries.items.kind": ("driver",), "libraries.items.version": (None,),
      "libraries.items.soname": ("libcuda.so.1",)}),
    ("RHEL in lib64", "rhel", {},
     {"smi_path": "/usr/bin/nvidia-smi", "libraries.items.path": ("/usr/lib64/libcuda.so.535.216.03",),
      "libraries.items.found_as": (("/lib64/libcuda.so.1",),)}),
    # an image that was saved from a running GPU container keeps empty files where the libraries were mounted
    ("place holders of a container engine are no driver", "debian-container", {CUDA: ""},
     {"installed": False, "libraries.items.path": (CUDA,), "libraries.items.kind": (None,)}),
    ("loops and strange names", "debian-container", HOSTILE,
     {"installed": False, "libraries.items.refused": ("it is a folder",)}),
)  # fmt: skip
def test_what_a_tree_tells(probed: Probed, about: str, tree: str, changes: Changes, expected: Expected) -> None:
    assert fields(found_in(probed, tree, changes), expected) == expected


BAD: Mapping[str, tuple[str, str]] = {
    "empty": ("", "it is empty"),
    "text": ("version https://git-lfs.github.com/spec/v1\n", "it is not an ELF file"),
    "cut": (ELF, "its ELF header names no known class and byte order"),
}


@pytest.mark.parametrize("damage", BAD)
@cases("name", "libcuda.so.1", "libnvidia-ml.so.1", "libnvidia-ptxjitcompiler.so.1")
def test_what_the_loader_gives_up_at(probed: Probed, damage: str, name: str) -> None:
    content, why = BAD[damage]
    path = f"/opt/old/{name}"
    found = libraries(found_in(probed, "ubuntu-580-open", {path: content}, LD_LIBRARY_PATH="/nowhere:/opt/old"))[path]
    assert (found.found_by, found.refused) == ("LD_LIBRARY_PATH", why)


def test_who_leads_the_loader_there(probed: Probed) -> None:
    listed, preloaded = "/etc/ld.so.conf.d/zz-old.conf", "/opt/preloaded/libcuda.so.1"
    files = {listed: "# the old driver\n/opt/driver/\n", OTHER: ELF, preloaded: ELF}
    entries = {"/etc/ld.so.cache": cache(("libcuda.so.1", OTHER))}
    found = libraries(found_in(probed, "ubuntu-580-open", {**entries, **files}, LD_PRELOAD=preloaded))
    who = [(each.found_by, each.listed_in) for each in list(found.values())[:3]]
    assert who == [("LD_PRELOAD", None), ("cache", listed), ("default", None)]


def test_a_library_that_is_cut_off(run_probe: RunProbe, build_root: BuildRoot) -> None:
    root = build_root("ubuntu-580-open")
    place = Path(f"{root}/opt/old/libcuda.so.1")
    place.parent.mkdir(parents=True)
    place.write_bytes(tiny_elf(["libc.so.6"])[:-1])
    found = libraries(look(run_probe, root, LD_LIBRARY_PATH="/opt/old"))["/opt/old/libcuda.so.1"]
    assert (found.refused or "").startswith("it is cut off")
    place.write_bytes(tiny_elf(["libc.so.6"]))
    os.utime(place, (1, 1))
    assert libraries(look(run_probe, root, LD_LIBRARY_PATH="/opt/old"))["/opt/old/libcuda.so.1"].refused is None


def test_a_library_for_another_processor_is_passed_over(probed: Probed) -> None:
    whole = bytearray(tiny_elf())
    whole[18:20] = (183).to_bytes(2, "little")
    path = "/opt/arm/libcuda.so.1"
    found = libraries(found_in(probed, "ubuntu-580-open", {path: bytes(whole)}, LD_LIBRARY_PATH="/opt/arm"))[path]
    assert (found.machine, found.found_as, found.refused) == ("aarch64", (), None)


def test_smi_on_path_before_the_usual_places(probed: Probed) -> None:
    files = {"/opt/tools/nvidia-smi": "#!/bin/sh\n", "/opt/loop/nvidia-smi": "-> nvidia-smi"}
    driver = found_in(probed, "rhel", files, PATH="relative:/opt/loop:/opt/tools:/usr/bin")
    assert driver.smi_path == "/opt/tools/nvidia-smi"


def test_named_pipe_is_not_waited_for(run_probe: RunProbe, build_root: BuildRoot) -> None:
    root = build_root("debian-container")
    os.mkfifo(f"{root}{UBUNTU}/libcuda.so.1")
    assert libraries(look(run_probe, root)) == {}


def test_undecodable_folder_is_sent_as_text(run_probe: RunProbe, build_root: BuildRoot) -> None:
    root = build_root("debian-container")
    folder = Path(os.fsdecode(os.fsencode(root) + b"/opt/\xff"))
    folder.mkdir(parents=True)
    (folder / "libcuda.so.1").write_text(ELF, encoding="utf-8")
    assert list(libraries(look(run_probe, root, LD_LIBRARY_PATH=os.fsdecode(b"/opt/\xff")))) == ["/opt/?/libcuda.so.1"]


def test_cache_of_two_formats_in_one_file() -> None:
    old = b"ld.so-1.7.0\0" + struct.pack("=I", 1) + b"\0" * 12
    padded = old + b"\0" * (-len(old) % 8)
    assert Lookup(cache(("a.so", "/a.so"), old=padded)).pairs() == ((("a.so", "/a.so"),), True)


def test_big_endian_cache() -> None:
    header = struct.pack(">20sIIB3xI12x", b"glibc-ld.so.cache1.1", 1, 12, 3, 0)
    found = Lookup(header + struct.pack(">iIIIQ", 3, 72, 77, 0, 0) + b"a.so\0/a.so\0")
    assert found.pairs() == ((("a.so", "/a.so"),), True)


@given(st.binary(max_size=400), st.integers(0, 400), st.integers(0, 400))
def test_no_cache_makes_the_parser_fail(noise: bytes, at: int, end: int) -> None:
    whole = cache(*((f"lib{number}.so", f"/lib/lib{number}.so") for number in range(5)))
    assert len(Lookup(whole).pairs()[0]) == 5
    entries, _ = Lookup((whole[:at] + noise + whole[at + len(noise) :])[:end]).pairs()
    assert all(name and path for name, path in entries)


@pytest.mark.skipif(not Path("/etc/ld.so.cache").is_file(), reason="this machine has no /etc/ld.so.cache")
def test_real_cache_as_ldconfig_prints_it() -> None:
    ldconfig = shutil.which("ldconfig") or shutil.which("ldconfig", path="/sbin:/usr/sbin")
    if ldconfig is None:
        pytest.skip("there is no ldconfig here")
    printed = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, check=True).stdout
    expected = [(line.split()[0], line.partition(" => ")[2]) for line in printed.splitlines()[1:] if " => " in line]
    entries, complete = Lookup(Path("/etc/ld.so.cache").read_bytes()).pairs()
    assert complete
    assert list(entries) == expected


def test_this_machine(run_probe: RunProbe) -> None:
    driver = look(run_probe, "/", **os.environ)
    assert driver.libraries
    assert driver.libraries.complete is True
    assert driver.installed is any(library.kind == "driver" for library in driver.libraries.items)
    for path, library in libraries(driver).items():
        assert os.path.realpath(path) == path
        assert {os.path.realpath(alias) for alias in library.found_as} <= {path}


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no compiler here")
@cases("name, code, kind",
    ("libcuda.so.1", "int cuInit(unsigned f) { return 34; }", "stub"),
    ("libcuda.so.1", "int cuInit(unsigned f) { return f ? 34 : 0; }", "driver"),
    ("libnvidia-ml.so.1", 'char *said(void) { return "libnvidia-ml.so in GDK package is a stub library"; }', "stub"),
    ("libnvidia-ml.so.1", 'char *said(void) { return "nvml"; }', "driver"),
)  # fmt: skip
def test_a_stub_is_known_by_what_it_holds(run_probe: RunProbe, tmp_path: Path, name: str, code: str, kind: str) -> None:
    folder = tmp_path / "opt"
    folder.mkdir()
    (tmp_path / "a.c").write_text(code)
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", str(folder / name), str(tmp_path / "a.c")], check=True)
    found = libraries(look(run_probe, str(tmp_path), LD_LIBRARY_PATH="/opt"))[f"/opt/{name}"]
    assert (found.kind, found.found_by) == (kind, "LD_LIBRARY_PATH")
