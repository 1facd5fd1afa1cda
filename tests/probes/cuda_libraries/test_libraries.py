"""The inventory of libraries in constructed trees; real wheels, packages and toolkits are in tests/lab."""

import base64
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from envcheck.model.snapshot import Library, Listing
from tests.known import known
from tests.probes.conftest import RunProbe
from tests.probes.environment_trees import Tree
from tests.probes.library_files import library, returns, stores

VENV = "/home/me/.venv"
CUDNN = library("libcudnn_ops.so.9", {"cudnn_ops_infer_version": b"\0\x01\x09\0"})
NEWER = library("libcudnn_ops.so.9", {"cudnn_ops_infer_version": b"\x02\x0a\x09\0"}, needed=["libcublasLt.so.12"])


class Machine(Tree):
    """A tree with one virtual environment and the means to install into it."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.site = self.venv(VENV, self.base("/usr"))

    def install(self, name: str, version: str, files: dict[str, bytes], *, write: bool = True) -> str:
        """A wheel with a RECORD; without ``write`` it lists its files and another's are there."""
        info = self.wheel(self.site, name, version)
        lines = []
        for path, content in files.items():
            if write:
                self.file(f"{self.site}/{path}", content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
            lines.append(f"{path},sha256={digest},{len(content)}")
        self.file(f"{info}/RECORD", "\n".join([*lines, f"{info.rpartition('/')[2]}/RECORD,,", ""]))
        return info

    def found(self, run_probe: RunProbe, **request: Any) -> dict[str, Library]:
        return {item.path: item for item in self.listing(run_probe, **request).items}

    def listing(self, run_probe: RunProbe, **request: Any) -> Listing[Library]:
        request.setdefault("python", [VENV])
        snapshot, _ = run_probe("libraries", self.view(**request))
        return known(snapshot.libraries)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_library_of_a_wheel(machine: Machine, run_probe: RunProbe) -> None:
    machine.install("nvidia-cudnn-cu12", "9.1.0.70", {"nvidia/cudnn/lib/libcudnn_ops.so.9": CUDNN})
    (found,) = machine.listing(run_probe).items
    path = f"{machine.site}/nvidia/cudnn/lib/libcudnn_ops.so.9"
    assert found == Library(
        source=f"elf {path}",
        read={"declared": "wheel metadata", "owner": "wheel metadata", "altered": "wheel metadata"}, path=path,
        family="cudnn_ops", soname="libcudnn_ops.so.9", declared="9.1.0.70", on_disk="9.1.0", cuda="12",
        owner="nvidia-cudnn-cu12==9.1.0.70", altered=False, origin="wheel", environment=VENV,
    )  # fmt: skip
    assert machine.listing(run_probe).complete


def test_two_wheels_that_claim_one_file(machine: Machine, run_probe: RunProbe) -> None:
    path = "nvidia/cudnn/lib/libcudnn_ops.so.9"
    machine.install("nvidia-cudnn-cu11", "9.1.0.70", {path: CUDNN})
    machine.install("nvidia-cudnn-cu12", "9.10.2.21", {path: NEWER})
    (found,) = machine.listing(run_probe).items
    assert set(found.claimed_by) == {"nvidia-cudnn-cu11==9.1.0.70", "nvidia-cudnn-cu12==9.10.2.21"}
    assert (found.owner, found.on_disk, found.altered) == ("nvidia-cudnn-cu12==9.10.2.21", "9.10.2", False)


def test_two_wheels_with_files_of_one_size_are_told_apart_by_hash(machine: Machine, run_probe: RunProbe) -> None:
    path = "nvidia/cudnn/lib/libcudnn_ops.so.9"
    machine.install("nvidia-cudnn-cu11", "9.1.1.0", {path: CUDNN.replace(b"\0\x01\x09\0", b"\x01\x01\x09\0")})
    machine.install("nvidia-cudnn-cu12", "9.1.0.70", {path: CUDNN})
    (found,) = machine.listing(run_probe).items
    assert (found.owner, found.altered) == ("nvidia-cudnn-cu12==9.1.0.70", False)


def test_a_file_that_no_record_fits(machine: Machine, run_probe: RunProbe) -> None:
    path = "nvidia/cudnn/lib/libcudnn_ops.so.9"
    machine.install("nvidia-cudnn-cu12", "9.1.0.70", {path: CUDNN})
    machine.file(f"{machine.site}/{path}", NEWER)
    (found,) = machine.listing(run_probe).items
    assert (found.owner, found.declared, found.on_disk, found.altered) == (
        "nvidia-cudnn-cu12==9.1.0.70", "9.1.0.70", "9.10.2", True,
    )  # fmt: skip
    machine.install("nvidia-cudnn-cu11", "9.0.0.1", {path: CUDNN[:-8]}, write=False)
    (found,) = machine.listing(run_probe).items
    assert (found.owner, found.declared, found.altered, len(found.claimed_by)) == (None, None, True, 2)


def test_what_a_removed_wheel_left_behind_has_no_owner(machine: Machine, run_probe: RunProbe) -> None:
    machine.file(f"{machine.site}/nvidia/cu13/lib/libcublas.so.13", library("libcublas.so.13"))
    (found,) = machine.listing(run_probe).items
    assert (found.owner, found.origin, found.environment, found.cuda) == (None, "wheel", VENV, "13")


def test_copies_that_other_wheels_bring_along(machine: Machine, run_probe: RunProbe) -> None:
    machine.install(
        "torch",
        "1.13.1",
        {
            "torch/lib/libcudart-d0da41ae.so.11.0": library("libcudart-d0da41ae.so.11.0", {"f": stores(11070)}),
            "torch/lib/libcudnn.so.8": library("libcudnn.so.8", {"cudnnGetVersion": returns(8500)}),
            "torch/lib/libtorch.so": library("libtorch.so"),
        },
    )
    machine.install("ctranslate2", "4.0.0", {"ctranslate2.libs/libcudnn-74a4c495.so.8.1.0": CUDNN})
    found = {path.rpartition("/")[2]: item for path, item in machine.found(run_probe).items()}
    assert {
        (name, item.family, item.owner, item.declared, item.on_disk, item.cuda) for name, item in found.items()
    } == {
        ("libcudart-d0da41ae.so.11.0", "cudart", "torch==1.13.1", None, "11.7", "11.7"),
        ("libcudnn.so.8", "cudnn", "torch==1.13.1", None, "8.5.0", None),
        ("libcudnn-74a4c495.so.8.1.0", "cudnn", "ctranslate2==4.0.0", None, "8.1.0", None),
    }


def test_a_wheel_without_record_still_shows_its_copies(machine: Machine, run_probe: RunProbe) -> None:
    machine.wheel(machine.site, "torch", "1.13.1")
    machine.file(f"{machine.site}/torch/lib/libcudnn.so.8", library("libcudnn.so.8"))
    (found,) = machine.listing(run_probe).items
    assert (found.owner, found.altered, found.origin) == (None, None, "wheel")


def test_cudnn_asks_the_part_beside_it(machine: Machine, run_probe: RunProbe) -> None:
    graph = library(
        "libcudnn_graph.so.9", {"cudnn_graph_version": b"\0\x01\x09\0", "cudnnGetCudartVersion": returns(12040)}
    )
    folder = "nvidia/cudnn/lib"
    machine.install(
        "nvidia-cudnn-cu12",
        "9.1.0.70",
        {f"{folder}/libcudnn.so.9": library("libcudnn.so.9"), f"{folder}/libcudnn_graph.so.9": graph},
    )
    found = machine.found(run_probe)[f"{machine.site}/{folder}/libcudnn.so.9"]
    assert (found.on_disk, found.cuda) == ("9.1.0", "12.4")
    assert found.source_of("on_disk") == f"elf {machine.site}/{folder}/libcudnn_graph.so.9"


def test_a_part_of_another_major_is_not_asked(machine: Machine, run_probe: RunProbe) -> None:
    folder = "nvidia/cudnn/lib"
    files = {
        f"{folder}/libcudnn.so.8": library("libcudnn.so.8"),
        f"{folder}/libcudnn_graph.so.9": library("libcudnn_graph.so.9", {"cudnn_graph_version": b"\0\x01\x09\0"}),
    }
    machine.install("nvidia-cudnn-cu12", "9.1.0.70", files)
    assert machine.found(run_probe)[f"{machine.site}/{folder}/libcudnn.so.8"].on_disk is None


# --- conda --------------------------------------------------------------------------------------------------------
def conda_record(name: str, version: str, files: dict[str, int], links: tuple[str, ...] = ()) -> str:
    """A record as conda writes it (the form is conda's; the content is made up)."""
    paths = [
        {"_path": path, "path_type": "hardlink", "sha256": "0", "size_in_bytes": size} for path, size in files.items()
    ]
    paths += [{"_path": path, "path_type": "softlink", "sha256": "0", "size_in_bytes": 9} for path in links]
    listed = [*files, *links]
    return json.dumps(
        {"name": name, "version": version, "files": listed, "paths_data": {"paths": paths, "paths_version": 1}},
        indent=2,
    )


def test_a_conda_environment(tmp_path: Path, run_probe: RunProbe) -> None:
    tree = Tree(tmp_path)
    prefix = "/opt/conda/envs/ml"
    tree.base(prefix)
    tree.file(f"{prefix}/lib/libcudnn.so.9.3.0", CUDNN)
    tree.link(f"{prefix}/lib/libcudnn.so.9", "libcudnn.so.9.3.0")
    tree.file(f"{prefix}/lib/libnccl.so.2.23.4", library("libnccl.so.2"))
    tree.file(f"{prefix}/lib/stubs/libcuda.so", library("libcuda.so.1"))
    tree.file(f"{prefix}/targets/x86_64-linux/lib/libcudart.so.12.4.127", library("libcudart.so.12"))
    tree.link(f"{prefix}/lib/libcudart.so.12", "../targets/x86_64-linux/lib/libcudart.so.12.4.127")
    meta = f"{prefix}/conda-meta"
    record = conda_record("cudnn", "9.3.0.75", {"lib/libcudnn.so.9.3.0": len(CUDNN)}, ("lib/libcudnn.so.9",))
    tree.file(f"{meta}/cudnn-9.3.0.75-h3f2d84a_0.json", record)
    path = "targets/x86_64-linux/lib/libcudart.so.12.4.127"
    tree.file(f"{meta}/cuda-cudart-12.4.127-he02047a_2.json", conda_record("cuda-cudart", "12.4.127", {path: 1}))
    dev = conda_record("cuda-cudart-dev", "12.4.127", {}, ("lib/libcudart.so.12",))
    tree.file(f"{meta}/cuda-cudart-dev-12.4.127-he02047a_2.json", dev)
    snapshot, _ = run_probe("libraries", tree.view(python=[prefix]))
    found = {item.family: item for item in known(snapshot.libraries).items}
    assert {item.origin for item in found.values()} == {"conda"}
    cudnn, cudart, nccl = found["cudnn"], found["cudart"], found["nccl"]
    assert (cudnn.owner, cudnn.declared, cudnn.altered) == ("cudnn 9.3.0.75", "9.3.0.75", False)
    assert cudnn.names == (f"{prefix}/lib/libcudnn.so.9",)
    assert (cudart.owner, cudart.altered, cudart.claimed_by) == ("cuda-cudart 12.4.127", True, ())
    assert (nccl.owner, nccl.on_disk) == (None, "2.23.4")
    assert (found["cuda"].stub, found["cuda"].on_disk) == (True, None)


# --- the machine --------------------------------------------------------------------------------------------------
TOOLKIT = "/usr/local/cuda-12.4"
LIB = f"{TOOLKIT}/targets/x86_64-linux/lib"


def toolkit(tree: Tree) -> None:
    tree.file(
        f"{TOOLKIT}/version.json", json.dumps({"cuda": {"version": "12.4.1"}, "libcublas": {"version": "12.4.5.8"}})
    )
    tree.file(f"{LIB}/libcublas.so.12.4.5.8", library("libcublas.so.12", needed=["libcublasLt.so.12"]))
    tree.link(f"{LIB}/libcublas.so.12", "libcublas.so.12.4.5.8")
    tree.file(f"{LIB}/stubs/libcublas.so", library("libcublas.so.12"))
    tree.link(f"{TOOLKIT}/lib64", "targets/x86_64-linux/lib")
    tree.link("/usr/local/cuda", "cuda-12.4")


def test_a_toolkit(machine: Machine, run_probe: RunProbe) -> None:
    toolkit(machine)
    found = machine.found(run_probe, variables={"CUDA_HOME": "/usr/local/cuda"})
    assert set(found) == {f"{LIB}/libcublas.so.12.4.5.8", f"{LIB}/stubs/libcublas.so"}
    real, stub = found[f"{LIB}/libcublas.so.12.4.5.8"], found[f"{LIB}/stubs/libcublas.so"]
    assert (real.owner, real.origin, real.cuda, real.stub) == ("CUDA toolkit 12.4.1", "toolkit", "12.4.1", None)
    assert (real.declared, real.on_disk) == ("12.4.5.8", "12.4.5.8")
    assert set(real.names) >= {f"{LIB}/libcublas.so.12", f"{TOOLKIT}/lib64/libcublas.so.12"}
    assert (stub.stub, stub.on_disk) == (True, None)


def test_owners_by_dpkg(machine: Machine, run_probe: RunProbe) -> None:
    toolkit(machine)
    folder = "/usr/lib/x86_64-linux-gnu"
    machine.file(f"{folder}/libcudnn.so.9.5.1", CUDNN)
    machine.link(f"{folder}/libcudnn.so.9", "libcudnn.so.9.5.1")
    machine.link("/lib", "usr/lib")
    machine.file(f"{folder}/libcurl.so.4", library("libcurl.so.4"))
    info = "/var/lib/dpkg/info"
    listed = ["/.", "/lib", "/lib/x86_64-linux-gnu/libcudnn.so.9.5.1", "/lib/x86_64-linux-gnu/libcudnn.so.9"]
    machine.file(f"{info}/libcudnn9-cuda-12.list", "\n".join(listed) + "\n")
    machine.file(f"{info}/libcudnn9-dev-cuda-12.list", f"{folder}/libcudnn.so.9\n")
    machine.file(f"{info}/libcublas-12-4.list", f"{LIB}/libcublas.so.12.4.5.8\n{LIB}/libcublas.so.12\n")
    machine.file(f"{info}/other.list", f"{folder}/libcudnn.so.9.5.1\n")
    status = "Package: libcublas-12-4\nStatus: install ok installed\nVersion: 12.4.5.8-1\n\n"
    status += "Package: libcudnn9-cuda-12\nDescription: x\nVersion: 9.5.1.17-1\n\n"
    machine.file("/var/lib/dpkg/status", status)
    found = machine.found(run_probe)
    cudnn, cublas = found[f"{folder}/libcudnn.so.9.5.1"], found[f"{LIB}/libcublas.so.12.4.5.8"]
    assert (cudnn.owner, cudnn.declared, cudnn.cuda, cudnn.origin) == (
        "libcudnn9-cuda-12 9.5.1.17-1", "9.5.1.17", "12", "system",
    )  # fmt: skip
    assert (cudnn.claimed_by, cudnn.altered) == ((), None)
    assert (cublas.owner, cublas.declared, cublas.cuda) == ("libcublas-12-4 12.4.5.8-1", "12.4.5.8", "12.4")
    assert not any("libcurl" in path for path in found)


def test_vendor_folders_the_loader_s_path_and_the_driver(machine: Machine, run_probe: RunProbe) -> None:
    machine.file("/usr/local/tensorrt/lib/libnvinfer.so.8.6.1", library("libnvinfer.so.8"))
    machine.file("/srv/mine/libnccl.so.2", library("libnccl.so.2"))
    machine.file("/usr/lib/x86_64-linux-gnu/libcuda.so.535.261.03", library("libcuda.so.1"))
    machine.file("/opt/nvidia/nsight-compute/target/libcupti.so.12", library("libcupti.so.12"))
    found = machine.found(run_probe, variables={"LD_LIBRARY_PATH": "/srv/mine:/nowhere"})
    assert {(item.family, item.origin, item.on_disk) for item in found.values()} == {
        ("nvinfer", "vendor", "8.6.1"), ("nccl", "other", None), ("cuda", "driver", "535.261.03"),
    }  # fmt: skip


# --- hostile ------------------------------------------------------------------------------------------------------
def test_hostile_trees(machine: Machine, run_probe: RunProbe) -> None:
    folder = f"{machine.site}/nvidia/cudnn/lib"
    machine.link(f"{folder}/libcudnn.so.9", "libcudnn.so.9")
    machine.link(f"{folder}/libcudnn_ops.so.9", "/dev/zero")
    machine.link(f"{folder}/libcudnn_adv.so.9", "/../../../../../../etc/passwd")
    machine.file(f"{folder}/libcudnn_cnn.so.9", b"")
    machine.file(f"{folder}/libcudnn_graph.so.9", b"\x7fELF\x01\x01\x01" + bytes(100))
    machine.at(f"{folder}/libcublas.so.12").mkdir()
    os.mkfifo(machine.at(f"{folder}/libnccl.so.2"))
    info = machine.wheel(machine.site, "evil", "1.0")
    record = '../../../../../../../etc/libcudnn.so.9,,\n"nvidia/a,b/libcudnn.so.9",sha256=x,1\n'
    record += "nvidia/\x1b[31m/libcudart.so.12,,5\n/lib/libcudnn.so.9\n" + "x" * 100_000 + "/libcudnn.so.9,,\n"
    record += f"nvidia/none/libcudart.so.12,sha256=x,{'9' * 40}\nnvidia\0/libcudart.so.12,,\n"
    machine.file(f"{info}/RECORD", record)
    machine.file(f"{machine.site}/nvidia/\x1b[31m/libcudart.so.12", library("libcudart.so.12\x1b[31m"))
    found = machine.found(run_probe)
    assert {(path.rpartition("/")[2], item.soname) for path, item in found.items()} == {
        ("libcudnn_cnn.so.9", None),
        ("libcudart.so.12", "libcudart.so.12[31m"),
    }
    assert not any("\x1b" in path for path in found)


def test_a_folder_that_cannot_be_read_leaves_the_list_incomplete(
    machine: Machine, run_probe: RunProbe, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.at("/usr/local/tensorrt/lib").mkdir(parents=True)
    assert machine.listing(run_probe).complete
    listdir = os.listdir

    def refuse(path: str) -> list[str]:
        if path.endswith("tensorrt/lib"):
            raise PermissionError(13, "Permission denied")
        return listdir(path)

    monkeypatch.setattr(os, "listdir", refuse)
    assert not machine.listing(run_probe).complete


def test_no_library_at_all(machine: Machine, run_probe: RunProbe) -> None:
    snapshot, done = run_probe("libraries", machine.view(python=[VENV]))
    assert snapshot.libraries == Listing(items=(), complete=True)
    assert done == {"status": "absent", "detail": "no library of CUDA on disk"}
