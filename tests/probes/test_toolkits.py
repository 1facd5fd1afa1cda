"""The probe for CUDA toolkits, on made-up trees and on this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from envcheck.model.snapshot import Snapshot, Toolkit
from tests.every import cases

RunProbe = Callable[..., tuple[Snapshot, dict[str, str]]]
BuildRoot = Callable[..., str]

ELF = "\x7fELF\x02"
HEADER = "#define CUDART_VERSION  {}\n"


def look(run_probe: RunProbe, root: str, **variables: str) -> list[Toolkit]:
    snapshot, _ = run_probe("toolkits", {"root": root, "variables": variables})
    assert snapshot.toolkits
    assert snapshot.toolkits.complete is True
    return list(snapshot.toolkits.items)


def one(run_probe: RunProbe, root: str, **variables: str) -> Toolkit:
    (toolkit,) = look(run_probe, root, **variables)
    return toolkit


def test_ubuntu(run_probe: RunProbe, build_root: BuildRoot) -> None:
    toolkit = one(
        run_probe, build_root("ubuntu-580-open"), PATH="/usr/bin:/usr/local/cuda/bin", CUDA_HOME="/usr/local/cuda"
    )
    assert (toolkit.path, toolkit.version) == ("/usr/local/cuda-12.8", "12.8.1")
    assert toolkit.source_of("version") == "file /usr/local/cuda-12.8/version.json"
    assert (toolkit.nvcc, toolkit.aliases) == ("/usr/local/cuda-12.8/bin/nvcc", ("/usr/local/cuda",))
    assert toolkit.on_path is True
    assert toolkit.cuda_home is True
    assert toolkit.origin == "system"


def test_not_on_path_and_not_named(run_probe: RunProbe, build_root: BuildRoot) -> None:
    toolkit = one(run_probe, build_root("ubuntu-580-open"), PATH="/usr/bin", CUDA_PATH="/usr/local/cuda-11")
    assert (toolkit.on_path, toolkit.cuda_home) == (False, False)


def test_nobody_knows_without_variables(run_probe: RunProbe, build_root: BuildRoot) -> None:
    toolkit = one(run_probe, build_root("ubuntu-580-open"))
    assert (toolkit.on_path, toolkit.cuda_home) == (None, None)


def test_no_toolkit(run_probe: RunProbe, build_root: BuildRoot) -> None:
    snapshot, done = run_probe("toolkits", {"root": build_root("debian-container")})
    assert done["status"] == "absent"
    assert snapshot.toolkits
    assert (snapshot.toolkits.items, snapshot.toolkits.complete) == ((), True)


@cases(
    "files, version",
    ({"version.txt": "CUDA Version 10.2.89\n"}, "10.2.89"),
    ({"include/cuda_runtime_api.h": HEADER.format(13000)}, "13.0"),
    ({"targets/sbsa-linux/include/cuda_runtime_api.h": HEADER.format(12060)}, "12.6"),
    ({"include/cuda.h": "#define CUDA_VERSION 9020\n"}, "9.2"),
    ({"include/cuda.h": "no version here\n"}, None),
    ({"targets/x86_64-linux/lib/libcudart.so.12.4.127": ELF}, "12.4"),
    ({"lib64/libcudart.so.11.0": "-> libcudart.so.11.8.89", "lib64/libcudart.so.11.8.89": ELF}, "11.8"),
    ({"lib64/libcudart.so.12": ELF}, None),
    ({"bin/nvcc": ELF + "x" * 5000 + "Cuda compilation tools, \0release 11.8, V11.8.89\0r11.8"}, "11.8"),
    ({"bin/nvcc": ELF + "Cuda compilation tools, release 13.\0\0V13.0.88\0"}, "13.0"),
    ({"bin/nvcc": ELF}, None),
    ({"version.json": '{"cuda": {"version": "12.8.1"}}', "version.txt": "CUDA Version 1.2.3"}, "12.8.1"),
    ({"version.json": "{not json", "include/cuda.h": "#define CUDA_VERSION 12080\n"}, "12.8"),
    ({"version.json": '{"cuda": {"version": "\\u001b[2J"}}', "include/cuda.h": "#define CUDA_VERSION 12080\n"}, "12.8"),
    ({"version.json": "[" * 100_000, "include/cuda.h": "#define CUDA_VERSION 12080\n"}, "12.8"),
)
def test_versions(run_probe: RunProbe, build_root: BuildRoot, files: dict[str, str], version: str | None) -> None:
    toolkit = one(run_probe, build_root(None, {f"/usr/local/cuda-x/{path}": text for path, text in files.items()}))
    assert toolkit.version == version
    assert (toolkit.nvcc is not None) is ("bin/nvcc" in files)


def test_folders_that_only_sound_like_one(run_probe: RunProbe, build_root: BuildRoot) -> None:
    files = {
        "/usr/local/cuda-samples/README": "",
        "/usr/local/cuda.tar": "",
        "/usr/local/cuda": "-> /gone",
        "/opt/cuda/": "",
    }
    assert look(run_probe, build_root(None, files)) == []


def test_several_toolkits_and_several_links(run_probe: RunProbe, build_root: BuildRoot) -> None:
    files = {f"/usr/local/cuda-{version}/bin/nvcc": ELF for version in ("11.8", "12.4")}
    links = {"/usr/local/cuda": "-> cuda-12", "/usr/local/cuda-12": "-> /usr/local/cuda-12.4"}
    toolkits = look(
        run_probe, build_root(None, {**files, **links}), PATH="/usr/local/cuda-11.8/bin:/usr/local/cuda/bin"
    )
    assert {toolkit.path: toolkit.aliases for toolkit in toolkits} == {
        "/usr/local/cuda-12.4": ("/usr/local/cuda", "/usr/local/cuda-12"),
        "/usr/local/cuda-11.8": (),
    }
    assert [toolkit.path for toolkit in toolkits if toolkit.on_path] == ["/usr/local/cuda-11.8"]


DEBIAN = {
    "/usr/bin/nvcc": '#!/bin/sh\n\nexec /usr/lib/nvidia-cuda-toolkit/bin/nvcc "$@"\n',
    "/usr/lib/nvidia-cuda-toolkit/bin/nvcc": ELF,
    "/usr/lib/nvidia-cuda-toolkit/bin/nvcc.profile": "-> /etc/nvcc.profile",
    "/etc/nvcc.profile": "# Syntax:\n",
    "/usr/lib/cuda/include/cuda.h": "-> ../../../include/cuda.h",
    "/usr/include/cuda.h": "#define CUDA_VERSION 11080\n",
}
"""Layout of Debian's package nvidia-cuda-toolkit 11.8.89~11.8.0-5~deb12u1."""


@cases("home", "/usr", "/usr/lib/cuda", "/usr/lib/nvidia-cuda-toolkit")
def test_debian_package_is_one_toolkit(run_probe: RunProbe, build_root: BuildRoot, home: str) -> None:
    toolkit = one(run_probe, build_root("debian-container", DEBIAN), PATH="/usr/bin", CUDA_HOME=home)
    assert (toolkit.path, toolkit.version) == ("/usr/lib/nvidia-cuda-toolkit", "11.8")
    assert (toolkit.nvcc, toolkit.on_path, toolkit.cuda_home) == ("/usr/lib/nvidia-cuda-toolkit/bin/nvcc", True, True)


def test_script_on_path_leads_to_the_compiler_that_it_starts(run_probe: RunProbe, build_root: BuildRoot) -> None:
    script = {"/usr/local/bin/nvcc": '#!/bin/sh\nexec /usr/local/cuda/bin/nvcc "$@"\n'}
    toolkit = one(run_probe, build_root("ubuntu-580-open", script), PATH="/usr/local/bin")
    assert (toolkit.path, toolkit.on_path) == ("/usr/local/cuda-12.8", True)


def test_script_that_tells_nothing(run_probe: RunProbe, build_root: BuildRoot) -> None:
    script = {"/usr/local/bin/nvcc": '#!/bin/sh\nexec "$CUDA_HOME/bin/nvcc" "$@"\n'}
    assert one(run_probe, build_root("ubuntu-580-open", script), PATH="/usr/local/bin").on_path is False


def test_link_of_a_compiler_cache_is_passed_over(run_probe: RunProbe, build_root: BuildRoot) -> None:
    links = {"/usr/lib/ccache/nvcc": "-> ../../bin/ccache", "/usr/bin/ccache": ELF}
    toolkit = one(run_probe, build_root("ubuntu-580-open", links), PATH="/usr/lib/ccache:/usr/local/cuda/bin")
    assert toolkit.on_path is True


def test_home_outside_the_usual_places(run_probe: RunProbe, build_root: BuildRoot) -> None:
    files = {
        "/software/CUDA/12.1.1/bin/nvcc": ELF,
        "/software/CUDA/12.1.1/version.json": '{"cuda": {"version": "12.1.1"}}',
    }
    toolkit = one(run_probe, build_root(None, files), CUDA_HOME="/software/CUDA/12.1.1/")
    assert (toolkit.path, toolkit.version, toolkit.cuda_home) == ("/software/CUDA/12.1.1", "12.1.1", True)


@cases("home", "", "relative/cuda", "/gone", "/etc/os-release", "\x1b[2J")
def test_home_that_is_none(run_probe: RunProbe, build_root: BuildRoot, home: str) -> None:
    assert look(run_probe, build_root("debian-container"), CUDA_HOME=home) == []


def test_conda_environment_with_a_compiler(run_probe: RunProbe, build_root: BuildRoot) -> None:
    prefix = "/opt/conda/envs/x"
    files = {
        f"{prefix}/conda-meta/cuda-nvcc-12.4.131-0.json": "{}",
        f"{prefix}/bin/nvcc": ELF,
        f"{prefix}/targets/x86_64-linux/include/cuda_runtime_api.h": HEADER.format(12040),
    }
    toolkit = one(run_probe, build_root(None, files), CONDA_PREFIX=prefix, PATH=f"{prefix}/bin")
    assert (toolkit.path, toolkit.version, toolkit.origin, toolkit.on_path) == (prefix, "12.4", "conda", True)


def test_conda_environment_with_run_time_libraries_only(run_probe: RunProbe, build_root: BuildRoot) -> None:
    prefix = "/opt/conda/envs/x"
    files = {f"{prefix}/conda-meta/history": "", f"{prefix}/lib/libcudart.so.12.4.127": ELF}
    assert look(run_probe, build_root(None, files), CONDA_PREFIX=prefix) == []


def test_compiler_from_a_wheel(run_probe: RunProbe, build_root: BuildRoot) -> None:
    folder = "/venv/lib/python3.12/site-packages/nvidia/cu13"
    toolkit = one(run_probe, build_root(None, {f"{folder}/bin/nvcc": ELF}), PATH=f"{folder}/bin")
    assert (toolkit.path, toolkit.origin) == (folder, "wheel")


def test_loops_and_pipes(run_probe: RunProbe, build_root: BuildRoot) -> None:
    root = build_root(
        None, {"/usr/local/cuda": "-> cuda-1", "/usr/local/cuda-1": "-> cuda", "/usr/local/cuda-2/bin/": ""}
    )
    os.mkfifo(f"{root}/usr/local/cuda-2/bin/nvcc")
    os.mkfifo(f"{root}/usr/local/cuda-2/version.json")
    toolkits = look(run_probe, root, PATH="/usr/local/cuda/bin:/usr/local/cuda-2/bin")
    assert [(toolkit.path, toolkit.nvcc, toolkit.version) for toolkit in toolkits] == [
        ("/usr/local/cuda-2", None, None)
    ]


@pytest.mark.skipif(not Path("/usr/local/cuda/bin/nvcc").exists(), reason="no CUDA toolkit in /usr/local/cuda")
def test_this_machine(run_probe: RunProbe) -> None:
    """The compiler is asked here, by the test, to compare."""
    real = os.path.realpath("/usr/local/cuda")
    toolkit = {found.path: found for found in look(run_probe, "/", **os.environ)}[real]
    assert "/usr/local/cuda" in toolkit.aliases
    assert toolkit.nvcc == f"{real}/bin/nvcc"
    printed = subprocess.run([toolkit.nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    release = re.search(r"release (\d+\.\d+)", printed)
    assert release
    assert toolkit.version
    assert toolkit.version.split(".")[:2] == release.group(1).split(".")


@pytest.mark.skipif(not Path("/usr/local/cuda/bin/nvcc").exists(), reason="no CUDA toolkit in /usr/local/cuda")
def test_real_compiler_tells_its_version_without_the_rest(run_probe: RunProbe, tmp_path: Path) -> None:
    folder = tmp_path / "usr" / "local" / "cuda-0" / "bin"
    folder.mkdir(parents=True)
    shutil.copyfile("/usr/local/cuda/bin/nvcc", folder / "nvcc")
    toolkit = one(run_probe, str(tmp_path))
    printed = subprocess.run(
        ["/usr/local/cuda/bin/nvcc", "--version"], capture_output=True, text=True, check=True
    ).stdout
    assert f"release {toolkit.version}," in printed
