"""What measurements stand on: numbers as a GPU has them, checked sums, memory, and a library by its path."""

import math
from pathlib import Path
from typing import Any

import pytest

from probes.bench import chip
from probes.bench import memory as bench_memory
from probes.bench.chip import BLOCK, LCG_A, LCG_C, _folded, _texture_sum
from probes.measuring import device, verify
from probes.measuring.arrays import ELEMENTS
from probes.measuring.device import Device
from probes.measuring.library import CudaLibrary
from probes.measuring.runtime import CudaError, LibraryError, Unavailable, compared
from probes.measuring.verify import decoded, encoded
from tests.every import cases
from tests.probes.bench.host_gpu import HostDevice, PythonLibrary, bench_on, load_instead
from tests.probes.tiny_elf import tiny_elf


@pytest.mark.parametrize("kind", list(ELEMENTS))
def test_numbers_survive_the_way_to_the_gpu_and_back(kind: str) -> None:
    code = ELEMENTS[kind].code
    values = [-3, 0, 7] if kind.startswith("int") else [-1.5, 0.0, 0.375]
    data = bytearray(encoded(values, code))
    assert len(data) == 3 * ELEMENTS[kind].size
    assert list(decoded(data, code)) == values


def test_results_within_the_tolerance_are_right() -> None:
    found = compared([(1.0, 1.05, 1.0), (20.0, 20.9, 10.0)], 0.1, "two")
    assert (found["right"], found["checked"], found["wrong"], found["worst"]) == (True, 2, 0, pytest.approx(0.09))


@cases("bad", 1.2, math.nan, math.inf)
def test_results_beyond_it_and_numbers_that_are_none_are_wrong(bad: float) -> None:
    found = compared([(1.0, 1.0, 1.0), (bad, 1.0, 1.0)], 0.1, "two")
    assert (found["right"], found["wrong"]) == (False, 1)


def test_a_result_of_which_nothing_was_compared_is_not_right() -> None:
    assert not compared([], 0.1, "none")["right"]


# --- The sums and chains that the kernels are checked against, by brute force ---------------------------------------
def texture_sum(grid: int, texels: int, rounds: int) -> int:
    """``texture_fetch`` of kernels/caches.cu, thread by thread."""
    total = 0
    for thread in range(grid * BLOCK):
        place, own = thread % texels, 0
        for _ in range(rounds):
            own = (own + _folded(place)) % (1 << 32)
            place += BLOCK
            if place >= texels:
                place -= texels
        total += own
    return total


@cases("grid, rounds", (1, 4), (3, 8), (4, 4), (5, 12), (9, 4))
def test_the_texture_total(grid: int, rounds: int) -> None:
    assert _texture_sum(grid, 2048, rounds) == texture_sum(grid, 2048, rounds)


def test_a_folded_vector() -> None:
    assert [_folded(i) for i in range(3)] == [0 ^ 1 ^ 2 ^ 3, 4 ^ 5 ^ 6 ^ 7, 8 ^ 9 ^ 10 ^ 11]


@cases("lines", 1 << 7, 1 << 12)
def test_the_chain_visits_every_line(lines: int) -> None:
    place, seen = 0, set()
    for _ in range(lines):
        place = (LCG_A * place + LCG_C) % lines
        seen.add(place)
    assert len(seen) == lines


@cases("words", 2, 10, 4096)
def test_the_total_of_the_pattern(words: int) -> None:
    step, seed = bench_memory.STEP, bench_memory.SEED
    brute = sum((i * step + seed) % (1 << 64) for i in range(words)) % (1 << 64)
    assert (step * (words * (words - 1) // 2) + seed * words) % (1 << 64) == brute


def test_patterns_are_told_apart_from_poison() -> None:
    for seed in (bench_memory.SEED, verify.SEED):
        words = [(i * bench_memory.STEP + seed) % (1 << 64) for i in range(1000)]
        assert len(set(words)) == 1000
        assert int.from_bytes(bytes([bench_memory.POISON]) * 8, "little") not in words


def test_whole_turns_of_shared_memory() -> None:
    """A thread comes back to where it began: the closed form counts whole turns."""
    vectors = chip.SHARED_WORDS // 4
    assert vectors % BLOCK == 0
    assert 4096 * BLOCK % vectors == 0


# --- Memory of a GPU: freed whatever happens, but for a broken context ----------------------------------------------
@pytest.fixture
def freed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Addresses that were freed, on a driver that only counts."""
    found: list[int] = []

    def call(name: str, *arguments: Any) -> Any:
        if name == "cuMemFree":
            found.append(arguments[0])
        return {"cuMemAlloc": 4096, "cuStreamCreate": 1}.get(name)

    monkeypatch.setattr(device, "call", call)
    return found


def test_a_buffer_is_freed_where_a_library_fails(freed: list[int]) -> None:
    """The next figure needs the memory."""
    with Device() as gpu:
        with pytest.raises(LibraryError), gpu.buffer(1 << 20):
            raise LibraryError("cufftExecC2C: CUFFT_EXEC_FAILED (6)", "/opt/libcufft.so.11")
        assert freed == [4096]
    assert freed == [4096]


def test_a_library_that_broke_the_context_keeps_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def call(name: str, *_: Any) -> Any:
        if name == "cuMemFree":
            raise CudaError(name, 700, "CUDA_ERROR_ILLEGAL_ADDRESS")
        return 4096

    monkeypatch.setattr(device, "call", call)
    with pytest.raises(LibraryError, match="CUFFT_EXEC_FAILED"), Device().buffer(1 << 20):
        raise LibraryError("cufftExecC2C: CUFFT_EXEC_FAILED (6)", "/opt/libcufft.so.11")


def test_nothing_is_freed_in_a_broken_context(freed: list[int]) -> None:
    with pytest.raises(CudaError), Device() as gpu, gpu.buffer(1 << 20):
        raise CudaError("cuLaunchKernel", 700, "CUDA_ERROR_ILLEGAL_ADDRESS")
    assert freed == []


# --- A library by its path: what is not there, what cannot be loaded, and what a call of it says --------------------
def opened(*first: str, **libraries: str) -> CudaLibrary:
    return CudaLibrary(
        bench_on(HostDevice(), {name: [path] for name, path in libraries.items()}), "cufft", "cuFFT", first
    )


def test_no_library_is_nobodys_fault() -> None:
    with pytest.raises(Unavailable, match="no cuFFT was found"):
        opened()


def test_a_file_that_is_not_there_and_one_that_is_no_library_fail(tmp_path: Path) -> None:
    text = tmp_path / "libcufft.so.11"
    with pytest.raises(LibraryError, match="cannot open shared object file"):
        opened(cufft=str(text))
    text.write_text("no library " * 100)
    with pytest.raises(LibraryError, match="it is not an ELF file") as error:
        opened(cufft=str(text))
    assert error.value.path == str(text)


def test_a_truncated_library_is_not_loaded(tmp_path: Path) -> None:
    """Loaded, it would end the process with SIGBUS."""
    path = tmp_path / "libcufft.so.11"
    whole = tiny_elf(["libm.so.6"], soname="libcufft.so.11")
    path.write_bytes(whole[:-5])
    with pytest.raises(LibraryError, match=f"it is cut off: {len(whole) - 5} of at least {len(whole)} bytes"):
        opened(cufft=str(path))


def test_a_truncated_library_that_it_needs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_instead(monkeypatch, PythonLibrary())
    needed = tmp_path / "libnvJitLink.so.12"
    needed.write_bytes(tiny_elf(soname="libnvJitLink.so.12")[:-1])
    with pytest.raises(LibraryError, match=r"libnvJitLink\.so\.12: it is cut off") as error:
        opened("nvJitLink", cufft="/opt/libcufft.so.11", nvJitLink=str(needed))
    assert error.value.path == str(needed)


def test_a_function_that_this_release_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    load_instead(monkeypatch, PythonLibrary(("cufftNew",)))
    found = opened(cufft="/opt/libcufft.so.11")
    assert (found.offers("cufftNew"), found.offers("cufftCreate")) == (False, True)
    with pytest.raises(Unavailable, match="this release of cuFFT has no cufftNew"):
        found.ask("cufftNew")
