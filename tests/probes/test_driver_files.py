"""The probe for the driver's libraries, on made-up trees and on this machine."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envcheck.model.snapshot import Driver, DriverLibrary, Snapshot
from probes.files.loader.cache import Lookup
from tests.every import cases
from tests.probes.tiny_elf import tiny_elf

RunProbe = Callable[..., tuple[Snapshot, dict[str, str]]]
BuildRoot = Callable[..., str]

ELF = "\x7fELF\x02"
UBUNTU = "/usr/lib/x86_64-linux-gnu"
CUDA = f"{UBUNTU}/libcuda.so.580.159.04"


def look(run_probe: RunProbe, root: str, **variables: str) -> Driver:
    snapshot, _ = run_probe("driver_files", {"root": root, "variables": variables})
    assert snapshot.driver
    return snapshot.driver


def libraries(driver: Driver) -> dict[str, DriverLibrary]:
    assert driver.libraries
    return {library.path: library for library in driver.libraries.items}


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


def test_32_bit_libraries_are_passed_over(run_probe: RunProbe, build_root: BuildRoot) -> None:
    assert not [path for path in libraries(look(run_probe, build_root("ubuntu-580-open"))) if "i386" in path]


def test_library_path_comes_first(run_probe: RunProbe, build_root: BuildRoot) -> None:
    stubs = "/usr/local/cuda/lib64/stubs"
    driver = look(
        run_probe,
        build_root("ubuntu-580-open"),
        LD_LIBRARY_PATH=f"/nowhere::$ORIGIN/lib:{stubs}:/usr/local/cuda/compat",
    )
    found = libraries(driver)
    stub, compat, first = list(found)[:3]
    assert (found[stub].kind, found[stub].found_as) == ("stub", (f"{stubs}/libcuda.so",))
    assert (found[compat].kind, found[compat].found_as) == ("compat", ("/usr/local/cuda/compat/libcuda.so.1",))
    assert first == CUDA


def test_empty_entry_of_the_library_path_is_the_current_folder(run_probe: RunProbe, build_root: BuildRoot) -> None:
    root = build_root(None, {"/home/me/libcuda.so.1": ELF})
    request = {"root": root, "cwd": "/home/me", "variables": {"LD_LIBRARY_PATH": "/nowhere:"}}
    snapshot, _ = run_probe("driver_files", request)
    assert snapshot.driver
    assert list(libraries(snapshot.driver)) == ["/home/me/libcuda.so.1"]


def test_the_cache_decides_before_the_built_in_folders(run_probe: RunProbe, build_root: BuildRoot) -> None:
    other = "/opt/driver/libcuda.so.1"
    entries = cache(
        ("libc.so.6", "/lib/libc.so.6"), ("libcuda.so.1", other), ("libcuda.so.1", f"{UBUNTU}/libcuda.so.1")
    )
    found = libraries(look(run_probe, build_root("ubuntu-580-open", {"/etc/ld.so.cache": entries, other: ELF})))
    assert list(found)[:2] == [other, CUDA]
    assert found[CUDA].found_as[0] == f"{UBUNTU}/libcuda.so.1"
    assert found[other].version is None


def test_cache_that_names_what_is_gone(run_probe: RunProbe, build_root: BuildRoot) -> None:
    changes = {"/etc/ld.so.cache": cache(("libcuda.so.1", "/gone/libcuda.so.1"))}
    driver = look(run_probe, build_root("debian-container", changes))
    assert driver.installed is False
    assert libraries(driver) == {}


@cases("data", b"", b"glibc-ld.so.cache1.1", cache(("libcuda.so.1", "/x/libcuda.so.1"))[:-3], b"\xff" * 99)
def test_damaged_cache_leaves_the_list_open(run_probe: RunProbe, build_root: BuildRoot, data: bytes) -> None:
    driver = look(run_probe, build_root("debian-container", {"/etc/ld.so.cache": data}))
    assert driver.libraries
    assert driver.libraries.complete is False
    assert driver.installed is None


def test_stubs_and_compatibility_copies_are_no_driver(run_probe: RunProbe, build_root: BuildRoot) -> None:
    changes = {
        "/usr/local/cuda-12.4/lib64/stubs/libcuda.so": ELF,
        "/usr/local/cuda-12.4/compat/libcuda.so.550.54.15": ELF,
    }
    driver = look(run_probe, build_root("debian-container", changes))
    assert driver.installed is False
    assert {library.kind for library in libraries(driver).values()} == {"stub", "compat"}


def test_bare_container_has_none(run_probe: RunProbe, build_root: BuildRoot) -> None:
    snapshot, done = run_probe("driver_files", {"root": build_root("debian-container")})
    assert done["status"] == "absent"
    assert snapshot.driver
    assert snapshot.driver.installed is False
    assert snapshot.driver.smi_path is None


def test_debian_through_its_alternatives(run_probe: RunProbe, build_root: BuildRoot) -> None:
    """Links as the packages nvidia-alternative and libcuda1 535.261.03 of Debian 12 lay them."""
    real = f"{UBUNTU}/nvidia/current/libcuda.so.535.261.03"
    changes = {
        f"{UBUNTU}/libcuda.so.1": "-> /etc/alternatives/nvidia--libcuda.so.1-x86_64-linux-gnu",
        "/etc/alternatives/nvidia--libcuda.so.1-x86_64-linux-gnu": f"-> {UBUNTU}/nvidia/current/libcuda.so.1",
        f"{UBUNTU}/nvidia/current/libcuda.so.1": "-> libcuda.so.535.261.03",
        real: ELF,
        "/usr/bin/nvidia-smi": "-> /etc/alternatives/nvidia--nvidia-smi",
        "/etc/alternatives/nvidia--nvidia-smi": "-> /usr/lib/nvidia/current/nvidia-smi",
        "/usr/lib/nvidia/current/nvidia-smi": ELF,
    }
    driver = look(run_probe, build_root("debian-container", changes))
    library = libraries(driver)[real]
    assert (library.version, library.kind, library.soname) == ("535.261.03", "driver", "libcuda.so.1")
    assert library.found_as == ("/lib/x86_64-linux-gnu/libcuda.so.1",)
    assert driver.smi_path == "/usr/bin/nvidia-smi"


def test_debian_packages_that_were_never_configured(run_probe: RunProbe, build_root: BuildRoot) -> None:
    real = f"{UBUNTU}/nvidia/tesla-470/libcuda.so.470.256.02"
    driver = look(run_probe, build_root("debian-container", {real: ELF}))
    assert driver.installed is True
    assert libraries(driver)[real].found_as == ()


def test_wsl(run_probe: RunProbe, build_root: BuildRoot) -> None:
    driver = look(
        run_probe, build_root("wsl2", {"/etc/ld.so.cache": cache(("libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"))})
    )
    found = libraries(driver)
    assert driver.installed is True
    assert found["/usr/lib/wsl/lib/libnvidia-ml.so.1"].version == "565.77.01"
    assert found["/usr/lib/wsl/lib/libcuda.so.1"].version is None
    assert found["/usr/lib/wsl/lib/libcuda.so.1"].found_as == ("/usr/lib/wsl/lib/libcuda.so.1",)
    assert driver.smi_path == "/usr/lib/wsl/lib/nvidia-smi"


def test_two_releases_inside_decide_nothing(run_probe: RunProbe, build_root: BuildRoot) -> None:
    path = "/usr/lib/wsl/lib/libnvidia-ml.so.1"
    root = build_root("wsl2", {path: f"{ELF}\x00565.77.01\x00x\x00535.54.03\x00"})
    assert libraries(look(run_probe, root))[path].version is None


def test_jetson_numbers_are_no_driver_release(run_probe: RunProbe, build_root: BuildRoot) -> None:
    library = libraries(look(run_probe, build_root("jetson-orin")))["/usr/lib/aarch64-linux-gnu/nvidia/libcuda.so.1.1"]
    assert (library.kind, library.version, library.soname) == ("driver", None, "libcuda.so.1")


def test_rhel_in_lib64(run_probe: RunProbe, build_root: BuildRoot) -> None:
    driver = look(run_probe, build_root("rhel"))
    assert libraries(driver)["/usr/lib64/libcuda.so.535.216.03"].found_as == ("/lib64/libcuda.so.1",)
    assert driver.smi_path == "/usr/bin/nvidia-smi"


def test_place_holders_of_a_container_engine_are_no_driver(run_probe: RunProbe, build_root: BuildRoot) -> None:
    """An image that was saved from a running GPU container keeps empty files where the libraries were mounted."""
    path = f"{UBUNTU}/libcuda.so.580.159.04"
    driver = look(run_probe, build_root("debian-container", {path: ""}))
    assert driver.installed is False
    assert libraries(driver)[path].kind is None


BAD: Mapping[str, tuple[str, str]] = {
    "empty": ("", "it is empty"),
    "text": ("version https://git-lfs.github.com/spec/v1\n", "it is not an ELF file"),
    "cut": (ELF, "its ELF header names no known class and byte order"),
}


@pytest.mark.parametrize("damage", BAD)
@cases("name", "libcuda.so.1", "libnvidia-ml.so.1", "libnvidia-ptxjitcompiler.so.1")
def test_what_the_loader_gives_up_at(run_probe: RunProbe, build_root: BuildRoot, damage: str, name: str) -> None:
    content, why = BAD[damage]
    root = build_root("ubuntu-580-open", {f"/opt/old/{name}": content})
    found = libraries(look(run_probe, root, LD_LIBRARY_PATH="/nowhere:/opt/old"))[f"/opt/old/{name}"]
    assert (found.found_by, found.refused) == ("LD_LIBRARY_PATH", why)


def test_who_leads_the_loader_there(run_probe: RunProbe, build_root: BuildRoot) -> None:
    other, listed = "/opt/driver/libcuda.so.1", "/etc/ld.so.conf.d/zz-old.conf"
    files = {
        "/etc/ld.so.cache": cache(("libcuda.so.1", other)),
        listed: "# the old driver\n/opt/driver/\n",
        other: ELF,
        "/opt/preloaded/libcuda.so.1": ELF,
    }
    found = libraries(look(run_probe, build_root("ubuntu-580-open", files), LD_PRELOAD="/opt/preloaded/libcuda.so.1"))
    assert [(each.found_by, each.listed_in) for each in list(found.values())[:3]] == [
        ("LD_PRELOAD", None),
        ("cache", listed),
        ("default", None),
    ]


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


def test_a_library_for_another_processor_is_passed_over(run_probe: RunProbe, build_root: BuildRoot) -> None:
    root = build_root("ubuntu-580-open")
    place = Path(f"{root}/opt/arm/libcuda.so.1")
    place.parent.mkdir(parents=True)
    whole = bytearray(tiny_elf())
    whole[18:20] = (183).to_bytes(2, "little")
    place.write_bytes(whole)
    found = libraries(look(run_probe, root, LD_LIBRARY_PATH="/opt/arm"))["/opt/arm/libcuda.so.1"]
    assert (found.machine, found.found_as, found.refused) == ("aarch64", (), None)


def test_smi_on_path_before_the_usual_places(run_probe: RunProbe, build_root: BuildRoot) -> None:
    root = build_root("rhel", {"/opt/tools/nvidia-smi": "#!/bin/sh\n", "/opt/loop/nvidia-smi": "-> nvidia-smi"})
    assert look(run_probe, root, PATH="relative:/opt/loop:/opt/tools:/usr/bin").smi_path == "/opt/tools/nvidia-smi"


HOSTILE: Mapping[str, str] = {
    f"{UBUNTU}/libcuda.so.1": "-> libcuda.so",
    f"{UBUNTU}/libcuda.so": "-> libcuda.so.1",
    f"{UBUNTU}/libnvidia-ml.so.1": "-> /gone",
    f"{UBUNTU}/libcuda.so.999.99.\x1b[2J": ELF,
    f"{UBUNTU}/libcudadebugger.so.1/": "",
    "/usr/lib/nvidia-loop": "-> /usr/lib/nvidia-loop",
}


def test_loops_and_strange_names(run_probe: RunProbe, build_root: BuildRoot) -> None:
    driver = look(run_probe, build_root("debian-container", HOSTILE))
    assert {library.refused for library in libraries(driver).values()} == {"it is a folder"}
    assert driver.installed is False


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
    assert Lookup(header + struct.pack(">iIIIQ", 3, 72, 77, 0, 0) + b"a.so\0/a.so\0").pairs() == (
        (("a.so", "/a.so"),),
        True,
    )


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
@cases(
    "name, code, kind",
    ("libcuda.so.1", "int cuInit(unsigned f) { return 34; }", "stub"),
    ("libcuda.so.1", "int cuInit(unsigned f) { return f ? 34 : 0; }", "driver"),
    ("libnvidia-ml.so.1", 'char *said(void) { return "libnvidia-ml.so in GDK package is a stub library"; }', "stub"),
    ("libnvidia-ml.so.1", 'char *said(void) { return "nvml"; }', "driver"),
)
def test_a_stub_is_known_by_what_it_holds(run_probe: RunProbe, tmp_path: Path, name: str, code: str, kind: str) -> None:
    folder = tmp_path / "opt"
    folder.mkdir()
    (tmp_path / "a.c").write_text(code)
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", str(folder / name), str(tmp_path / "a.c")], check=True)
    found = libraries(look(run_probe, str(tmp_path), LD_LIBRARY_PATH="/opt"))[f"/opt/{name}"]
    assert (found.kind, found.found_by) == (kind, "LD_LIBRARY_PATH")
