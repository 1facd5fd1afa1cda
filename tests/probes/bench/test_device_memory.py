"""Memory of a GPU: freed whatever happens, but for a broken context."""

from __future__ import annotations

from typing import Any

import pytest

from probes.measuring import device
from probes.measuring.device import CudaError, Device, LibraryError


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
