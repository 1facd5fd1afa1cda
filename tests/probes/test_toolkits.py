"""The probe for CUDA toolkits, on made-up trees and on this machine."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from envcheck.model.snapshot import Toolkit
from tests.every import cases
from tests.known import Expected, fields, known
from tests.probes.conftest import BuildRoot, Changes, Probed, RunProbe

ELF = "\x7fELF\x02"
HEADER = "#define CUDART_VERSION  {}\n"
TEXT = '{"cuda": {"version": "12.1.1"}}'
CONDA = "/opt/conda/envs/x"
WHEEL = "/venv/lib/python3.12/site-packages/nvidia/cu13"
DEBIAN_PATH = "/usr/lib/nvidia-cuda-toolkit"


def look(run_probe: RunProbe, root: str, **variables: str) -> tuple[Toolkit, ...]:
    snapshot, _ = run_probe("toolkits", {"root": root, "variables": variables})
    assert known(snapshot.toolkits).complete is True
    return known(snapshot.toolkits).items


def found_in(probed: Probed, tree: str | None, changes: Changes, variables: dict[str, str]) -> tuple[Toolkit, ...]:
    found = known(probed("toolkits", tree, changes, variables=variables).toolkits)
    assert found.complete is True
    return found.items


def test_no_toolkit(run_probe: RunProbe, build_root: BuildRoot) -> None:
    snapshot, done = run_probe("toolkits", {"root": build_root("debian-container")})
    assert done["status"] == "absent"
    assert snapshot.toolkits
    assert (snapshot.toolkits.items, snapshot.toolkits.complete) == ((), True)


DEBIAN = {
    "/usr/bin/nvcc": '#!/bin/sh\n\nexec /usr/lib/nvidia-cuda-toolkit/bin/nvcc "$@"\n',
    "/usr/lib/nvidia-cuda-toolkit/bin/nvcc": ELF,
    "/usr/lib/nvidia-cuda-toolkit/bin/nvcc.profile": "-> /etc/nvcc.profile",
    "/etc/nvcc.profile": "# Syntax:\n",
    "/usr/lib/cuda/include/cuda.h": "-> ../../../include/cuda.h",
    "/usr/include/cuda.h": "#define CUDA_VERSION 11080\n",
}
"""Layout of Debian's package nvidia-cuda-toolkit 11.8.89~11.8.0-5~deb12u1."""


@cases("about, tree, changes, variables, expected",
    ("Ubuntu", "ubuntu-580-open", {}, {"PATH": "/usr/bin:/usr/local/cuda/bin", "CUDA_HOME": "/usr/local/cuda"},
     {"path": "/usr/local/cuda-12.8", "version": "12.8.1",
      "source_of.version": "file /usr/local/cuda-12.8/version.json", "nvcc": "/usr/local/cuda-12.8/bin/nvcc",
      "aliases": ("/usr/local/cuda",), "on_path": True, "cuda_home": True, "origin": "system"}),
    ("not on PATH and not named", "ubuntu-580-open", {}, {"PATH": "/usr/bin", "CUDA_PATH": "/usr/local/cuda-11"},
     {"on_path": False, "cuda_home": False}),
    ("nobody knows without variables", "ubuntu-580-open", {}, {}, {"on_path": None, "cuda_home": None}),
    ("a script on PATH leads to the compiler that it starts", "ubuntu-580-open",
     {"/usr/local/bin/nvcc": '#!/bin/sh\nexec /usr/local/cuda/bin/nvcc "$@"\n'}, {"PATH": "/usr/local/bin"},
     {"path": "/usr/local/cuda-12.8", "on_path": True}),
    ("a script that tells nothing", "ubuntu-580-open",
     {"/usr/local/bin/nvcc": '#!/bin/sh\nexec "$CUDA_HOME/bin/nvcc" "$@"\n'}, {"PATH": "/usr/local/bin"},
     {"on_path": False}),
    ("the link of a compiler's cache is passed over", "ubuntu-580-open",
     {"/usr/lib/ccache/nvcc": "-> ../../bin/ccache", "/usr/bin/ccache": ELF},
     {"PATH": "/usr/lib/ccache:/usr/local/cuda/bin"}, {"on_path": True}),
    ("a home outside the usual places", None,
     {"/software/CUDA/12.1.1/bin/nvcc": ELF, "/software/CUDA/12.1.1/version.json": TEXT},
     {"CUDA_HOME": "/software/CUDA/12.1.1/"},
     {"path": "/software/CUDA/12.1.1", "version": "12.1.1", "cuda_home": True}),
    ("an environment of Conda with a compiler", None,
     {f"{CONDA}/conda-meta/cuda-nvcc-12.4.131-0.json": "{}", f"{CONDA}/bin/nvcc": ELF,
      f"{CONDA}/targets/x86_64-linux/include/cuda_runtime_api.h": HEADER.format(12040)},
     {"CONDA_PREFIX": CONDA, "PATH": f"{CONDA}/bin"},
     {"path": CONDA, "version": "12.4", "origin": "conda", "on_path": True}),
    ("a compiler from a wheel", None, {f"{WHEEL}/bin/nvcc": ELF}, {"PATH": f"{WHEEL}/bin"},
     {"path": WHEEL, "origin": "wheel"}),
    *(("Debian's package is one toolkit", "debian-container", DEBIAN, {"PATH": "/usr/bin", "CUDA_HOME": home},
       {"path": DEBIAN_PATH, "version": "11.8", "nvcc": f"{DEBIAN_PATH}/bin/nvcc", "on_path": True, "cuda_home": True})
      for home in ("/usr", "/usr/lib/cuda", DEBIAN_PATH)),
)  # fmt: skip
def test_the_only_toolkit(
    probed: Probed, about: str, tree: str | None, changes: Changes, variables: dict[str, str], expected: Expected
) -> None:
    (toolkit,) = found_in(probed, tree, changes, variables)
    assert fields(toolkit, expected) == expected


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
def test_versions(probed: Probed, files: dict[str, str], version: str | None) -> None:
    (toolkit,) = found_in(probed, None, {f"/usr/local/cuda-x/{path}": text for path, text in files.items()}, {})
    assert toolkit.version == version
    assert (toolkit.nvcc is not None) is ("bin/nvcc" in files)


@cases("tree, changes, variables",
    # folders that only sound like one
    (None, {"/usr/local/cuda-samples/README": "", "/usr/local/cuda.tar": "", "/usr/local/cuda": "-> /gone",
            "/opt/cuda/": ""}, {}),
    # an environment of Conda with run-time libraries only
    (None, {f"{CONDA}/conda-meta/history": "", f"{CONDA}/lib/libcudart.so.12.4.127": ELF}, {"CONDA_PREFIX": CONDA}),
    *(("debian-container", {}, {"CUDA_HOME": home})
      for home in ("", "relative/cuda", "/gone", "/etc/os-release", "\x1b[2J")),
)  # fmt: skip
def test_what_is_none(probed: Probed, tree: str | None, changes: Changes, variables: dict[str, str]) -> None:
    assert found_in(probed, tree, changes, variables) == ()


def test_several_toolkits_and_several_links(probed: Probed) -> None:
    files = {f"/usr/local/cuda-{version}/bin/nvcc": ELF for version in ("11.8", "12.4")}
    links = {"/usr/local/cuda": "-> cuda-12", "/usr/local/cuda-12": "-> /usr/local/cuda-12.4"}
    toolkits = found_in(probed, None, {**files, **links}, {"PATH": "/usr/local/cuda-11.8/bin:/usr/local/cuda/bin"})
    assert {toolkit.path: toolkit.aliases for toolkit in toolkits} == {
        "/usr/local/cuda-12.4": ("/usr/local/cuda", "/usr/local/cuda-12"),
        "/usr/local/cuda-11.8": (),
    }
    assert [toolkit.path for toolkit in toolkits if toolkit.on_path] == ["/usr/local/cuda-11.8"]


def test_loops_and_pipes(run_probe: RunProbe, build_root: BuildRoot) -> None:
    loop = {"/usr/local/cuda": "-> cuda-1", "/usr/local/cuda-1": "-> cuda", "/usr/local/cuda-2/bin/": ""}
    root = build_root(None, loop)
    os.mkfifo(f"{root}/usr/local/cuda-2/bin/nvcc")
    os.mkfifo(f"{root}/usr/local/cuda-2/version.json")
    (toolkit,) = look(run_probe, root, PATH="/usr/local/cuda/bin:/usr/local/cuda-2/bin")
    assert (toolkit.path, toolkit.nvcc, toolkit.version) == ("/usr/local/cuda-2", None, None)


@pytest.mark.skipif(not Path("/usr/local/cuda/bin/nvcc").exists(), reason="no CUDA toolkit in /usr/local/cuda")
def test_this_machine(run_probe: RunProbe) -> None:
    """The compiler is asked here, by the test, to compare."""
    real = os.path.realpath("/usr/local/cuda")
    toolkit = {found.path: found for found in look(run_probe, "/", **os.environ)}[real]
    assert "/usr/local/cuda" in toolkit.aliases
    assert toolkit.nvcc == f"{real}/bin/nvcc"
    printed = subprocess.run([toolkit.nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    release = re.search(r"release (\d+\.\d+)", printed)
    assert known(toolkit.version).split(".")[:2] == known(release).group(1).split(".")


@pytest.mark.skipif(not Path("/usr/local/cuda/bin/nvcc").exists(), reason="no CUDA toolkit in /usr/local/cuda")
def test_real_compiler_tells_its_version_without_the_rest(run_probe: RunProbe, tmp_path: Path) -> None:
    folder = tmp_path / "usr" / "local" / "cuda-0" / "bin"
    folder.mkdir(parents=True)
    shutil.copyfile("/usr/local/cuda/bin/nvcc", folder / "nvcc")
    (toolkit,) = look(run_probe, str(tmp_path))
    asked = ["/usr/local/cuda/bin/nvcc", "--version"]
    assert f"release {toolkit.version}," in subprocess.run(asked, capture_output=True, text=True, check=True).stdout
