"""The version that a library's own file tells: constructed files here, NVIDIA's in tests/lab/test_libraries.py."""

import os
import random
import re
from pathlib import Path

import pytest

from envcheck.model.versions import CudaVersion, CudnnVersion
from probes.common.library_names import family_of
from probes.files.cuda_libraries.answer import LibraryVersion, answer, cuda, packed, release
from probes.files.elf.exported import Exports
from probes.files.elf.library import Elf
from tests.every import cases
from tests.probes.library_files import Hash, library, returns, stores, stores_on_arm

NOISE = b"\x48\x89\xe5\xc7\x85\x3c\xff\xff\xff\x00\x00\x01\x00\xba\xfe\xff\x00\x00"
"""``mov [rbp-0xc4], 0x10000; mov edx, 0xfffe``, as between the calls that cuDNN's functions make."""


def told(tmp_path: Path, family: str, soname: str, **exports: bytes) -> LibraryVersion:
    place = tmp_path / soname
    place.write_bytes(library(soname, exports))
    return answer(str(place), family, soname)


@cases("family, soname, exports, version",
    ("cufft", "libcufft.so.11", {"cufftGetVersion": stores(11201)}, "11.2.1"),
    ("curand", "libcurand.so.10", {"curandGetVersion": stores(10305)}, "10.3.5"),
    ("cusolver", "libcusolver.so.11", {"cusolverGetVersion": stores(11601)}, "11.6.1"),
    ("cusparse", "libcusparse.so.12", {"cusparseGetVersion": NOISE + stores(13012)}, "12.10.12"),
    ("cublasLt", "libcublasLt.so.12", {"cublasLtGetVersion": NOISE + returns(120405)}, "12.4.5"),
    ("cublasLt", "libcublasLt.so.11", {"cublasLtGetVersion": returns(11310)}, "11.3.10"),
    ("cutensor", "libcutensor.so.2", {"cutensorGetVersion": returns(20001)}, "2.0.1"),
    ("nccl", "libnccl.so.2", {"ncclGetVersion": stores(22105)}, "2.21.5"),
    ("nccl", "libnccl.so.2", {"ncclGetVersion": stores(2708)}, "2.7.8"),
    ("nvinfer", "libnvinfer.so.8", {"getInferLibVersion": returns(8601)}, "8.6.1"),
    ("nvrtc", "libnvrtc.so.12", {"nvrtcVersion": stores(12, 4)}, "12.4"),
    ("nvrtc", "libnvrtc.so.11.2", {"nvrtcVersion": stores(11, 7)}, "11.7"),
    ("nvshmem_host", "libnvshmem_host.so.3", {"nvshmemx_vendor_get_version_info": stores(3, 8, 0)}, "3.8.0"),
    ("cupti", "libcupti.so.13", {"cuptiGetVersion": stores(130500)}, "13.5"),
    ("cupti", "libcupti.so.12", {"cuptiGetVersion": stores(22)}, None),
    ("cudart", "libcudart.so.12", {"cudaRuntimeGetVersion": NOISE, "inner": stores(12040)}, "12.4"),
    ("cudnn", "libcudnn.so.7", {"cudnnGetVersion": returns(7605)}, "7.6.5"),
    ("cudnn_cnn", "libcudnn_cnn.so.9", {"cudnnCnnVersionCheck": NOISE + returns(91002)}, "9.10.2"),
    ("cudnn_ops", "libcudnn_ops.so.9", {"cudnn_ops_infer_version": b"\x02\x0a\x09\0"}, "9.10.2"),
    ("cudnn_ops_infer", "libcudnn_ops_infer.so.8", {"cudnn_ops_infer_version": b"\x02\x09\x08\0"}, "8.9.2"),
)  # fmt: skip
def test_a_family(tmp_path: Path, family: str, soname: str, exports: dict[str, bytes], version: str | None) -> None:
    assert told(tmp_path, family, soname, **exports).version == version


def test_the_cuda_that_a_library_was_built_with(tmp_path: Path) -> None:
    both = {"cudnn_graph_version": b"\0\x01\x09\0", "cudnnGetCudartVersion": NOISE + returns(12040)}
    assert told(tmp_path, "cudnn_graph", "libcudnn_graph.so.9", **both) == LibraryVersion("9.1.0", "12.4")
    both["cudnnGetCudartVersion"] += returns(90100)  # cuDNN's own number, which its messages hold
    assert told(tmp_path, "cudnn_graph", "libcudnn_graph.so.9", **both) == LibraryVersion("9.1.0", "12.4")


def test_a_cuda_whose_number_could_be_a_version_of_the_library(tmp_path: Path) -> None:
    both = {"cudnn_graph_version": b"\x02\x0a\x09\0", "cudnnGetCudartVersion": NOISE + returns(11080) + returns(91002)}
    assert told(tmp_path, "cudnn_graph", "libcudnn_graph.so.9", **both) == LibraryVersion("9.10.2", "11.8")


def test_tensorrt_tells_its_build_too(tmp_path: Path) -> None:
    both = {"getInferLibVersion": returns(100700), "getInferLibBuildVersion": returns(23)}
    assert told(tmp_path, "nvinfer", "libnvinfer.so.10", **both).version == "10.7.0.23"


def test_nccl_names_its_cuda_in_a_text(tmp_path: Path) -> None:
    place = tmp_path / "libnccl.so.2"
    text = b"\0NCCL version %d\0NCCL version 2.21.5+cuda12.4\0"
    place.write_bytes(library("libnccl.so.2", {"ncclGetVersion": stores(22105)}, rodata=text))
    assert answer(str(place), "nccl", "libnccl.so.2") == LibraryVersion("2.21.5", "12.4")


def test_cufile_holds_one_text_of_four_numbers(tmp_path: Path) -> None:
    place = tmp_path / "libcufile.so.0"
    place.write_bytes(library("libcufile.so.0", rodata=b"x\0\0\x80?1.11.1.6\0y"))
    assert answer(str(place), "cufile", "libcufile.so.0").version == "1.11.1.6"
    place.write_bytes(library("libcufile.so.0", rodata=b"x\x001.11.1.6\0y\x001.2.3.4\0"))
    assert answer(str(place), "cufile", "libcufile.so.0").version is None


@cases("number", 10307, 12060)
def test_arm(tmp_path: Path, number: int) -> None:
    names = {10307: ("curand", "libcurand.so.10", "10.3.7"), 12060: ("cudart", "libcudart.so.12", "12.6")}
    family, soname, version = names[number]
    place = tmp_path / soname
    place.write_bytes(library(soname, {"curandGetVersion": stores_on_arm(number)}, machine="aarch64"))
    assert answer(str(place), family, soname).version == version


def test_a_number_that_arm_builds_in_two_steps(tmp_path: Path) -> None:
    place = tmp_path / "libcublasLt.so.12"
    place.write_bytes(library("libcublasLt.so.12", {"cublasLtGetVersion": stores_on_arm(120604)}, machine="aarch64"))
    assert answer(str(place), "cublasLt", "libcublasLt.so.12").version == "12.6.4"


def test_two_numbers_that_could_be_the_version_are_none(tmp_path: Path) -> None:
    assert (
        told(tmp_path, "cufft", "libcufft.so.11", cufftGetVersion=(stores(11201) + stores(11300))) == LibraryVersion()
    )


def test_a_number_of_another_major_is_not_the_version(tmp_path: Path) -> None:
    assert told(tmp_path, "cufft", "libcufft.so.11", cufftGetVersion=stores(65534)) == LibraryVersion()


def test_no_function_no_soname_no_library(tmp_path: Path) -> None:
    assert told(tmp_path, "cufft", "libcufft.so.11") == LibraryVersion()
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "text").write_text("INPUT(libcufft.so.11)")
    for name in ("empty", "text", "missing"):
        assert answer(str(tmp_path / name), "cufft", "libcufft.so.11") == LibraryVersion()
    assert answer(str(tmp_path / "libcufft.so.11"), "cufft", None) == LibraryVersion()
    os.mkfifo(tmp_path / "pipe")
    assert answer(str(tmp_path / "pipe"), "cufft", "libcufft.so.11") == LibraryVersion()
    assert told(tmp_path, "cublas", "libcublas.so.12", cublasGetVersion=stores(120405)) == LibraryVersion()


@cases("table", "gnu", "sysv")
def test_every_exported_symbol_is_found_and_no_other(tmp_path: Path, table: Hash) -> None:
    names = [f"symbol{number}" for number in range(40)]
    place = tmp_path / "lib.so"
    place.write_bytes(library("lib.so.1", {name: name.encode() for name in names}, table=table))
    with Elf(str(place)) as elf:
        exports = Exports(elf)
        for name in names:
            found = exports.find(name)
            assert found is not None
            assert elf.read(found.offset, found.size) == name.encode()
        assert exports.find("symbol40") is None
        assert exports.find("") is None


def test_damaged_files_give_no_answer_and_no_error(tmp_path: Path) -> None:
    whole = library("libcudnn_ops.so.9", {"cudnn_ops_infer_version": b"\0\x01\x09\0", "cudnnOpsVersionCheck": NOISE})
    place = tmp_path / "libcudnn_ops.so.9"
    chance = random.Random(7)
    for _ in range(400):
        damaged = bytearray(whole[: chance.randrange(len(whole))] if chance.random() < 0.3 else whole)
        for _ in range(chance.randrange(1, 8)):
            if damaged:
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        place.write_bytes(damaged)
        found = answer(str(place), "cudnn_ops", "libcudnn_ops.so.9")
        assert found.version is None or found.version.startswith("9.")


# --- numbers ------------------------------------------------------------------------------------------------------
@cases("number, text",
    (8902, "8.9.2"), (91002, "9.10.2"), (90100, "9.1.0"), (7605, "7.6.5"), (2708, "2.7.8"), (22105, "2.21.5"),
)  # fmt: skip
def test_numbers_of_cudnn_and_nccl_tell_their_own_scheme(number: int, text: str) -> None:
    assert release(number) == text
    assert release(number, int(text.split(".", maxsplit=1)[0])) == text


def test_both_sides_decode_cudnn_alike() -> None:
    for number in [*range(7000, 9000, 7), *range(90000, 99999, 13)]:
        assert release(number) == str(CudnnVersion.decode(number))


def test_both_sides_decode_cuda_alike() -> None:
    for number in range(8000, 14000, 10):
        assert cuda(number) == str(CudaVersion.decode(number))
    assert (cuda(12041), cuda(0), cuda(1000)) == (None, None, None)


def test_numbers_that_are_no_version() -> None:
    assert release(0) is None
    assert release(65534, 9) is None
    assert packed(0x090100) == "9.1.0"
    assert packed(0x0100) is None


# --- names --------------------------------------------------------------------------------------------------------
@cases("name, family, numbers",
    ("libcudnn.so.9.1.0", "cudnn", "9.1.0"), ("libcudnn_ops_infer.so.8", "cudnn_ops_infer", "8"),
    ("libcudnn-abc12345.so.8", "cudnn", "8"), ("libcudart-d0da41ae.so.11.0", "cudart", "11.0"),
    ("libnvrtc-builtins-2dc4bf68.so.11.8", "nvrtc-builtins", "11.8"), ("libnvrtc.alt.so.13", "nvrtc.alt", "13"),
    ("libcuda.so.535.261.03", "cuda", "535.261.03"), ("libnvidia-ml.so.1", "nvidia-ml", "1"),
    ("libnvinfer_plugin.so.10", "nvinfer_plugin", "10"),
    ("libnvinfer_builder_resource_sm90.so.10.8.0", "nvinfer_builder_resource_sm90", "10.8.0"),
    ("libcublasLt.so", "cublasLt", ""),
)  # fmt: skip
def test_names_of_libraries(name: str, family: str, numbers: str) -> None:
    assert family_of(name) == (family, numbers)


@cases("name",
     "libcurl.so.4", "libcups.so.2", "libcudadebugger.so.1", "libnccl-net.so", "libcudart_static.a", "cudnn.so",
     "libcudnn.so.9.py", "libcudnn.so.9\n", "libnvToolsExt.so.x", "libcudart.so.1.2.3.4.5.6.7")  # fmt: skip
def test_names_of_other_files(name: str) -> None:
    assert family_of(name) is None


ELSEWHERE = re.compile(r"nvcudla|cudla|mathdx|custatevec|cutensornet|cudensitymat|cupauliprop|custabilizer|nvpl_\w+")
"""Libraries of that catalogue which no framework here loads: quantum simulation, other processors."""


def test_the_names_are_those_of_nvidia_s_catalogue() -> None:
    catalogue = pytest.importorskip("cuda.pathfinder._dynamic_libs.descriptor_catalog")
    sonames = [name for entry in catalogue.DESCRIPTOR_CATALOG for name in entry.linux_sonames]
    assert len(sonames) > 40
    strange = [name for name in sonames if family_of(name) is None]
    assert [name for name in strange if not ELSEWHERE.match(name.removeprefix("lib"))] == []
