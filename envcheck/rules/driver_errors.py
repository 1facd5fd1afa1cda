"""What the driver's libraries answer when they fail, and the rule that explains each answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from envcheck.checks import Evidence
from envcheck.rules.api import Facts
from envcheck.snapshot import ApiResult

Api = Literal["cuda", "nvml"]

NOT_LOADABLE = -1
"""The code of a call that could not be made because the library could not be loaded."""


class DriverError(NamedTuple):
    """A status of CUDA's driver API (``CUresult``) or of NVML (``nvmlReturn_t``)."""

    api: Api
    code: int
    problem: str
    """Name of the rule that explains it most exactly."""
    meaning: str


DRIVER_ERRORS: tuple[DriverError, ...] = (
    DriverError("cuda", NOT_LOADABLE, "driver-not-installed", "the library libcuda.so.1 cannot be loaded"),
    DriverError("cuda", 1, "gpu-init-failed", "the driver rejects the call as invalid"),
    DriverError("cuda", 2, "gpu-init-failed", "the driver has no memory left to start"),
    DriverError("cuda", 3, "gpu-init-failed", "the driver could not be initialised"),
    DriverError("cuda", 34, "gpu-init-failed", "a toolkit's link-time stub answered in the place of the driver"),
    DriverError("cuda", 35, "driver-too-old", "the driver is older than the CUDA runtime needs"),
    DriverError("cuda", 36, "driver-too-old", "the call needs a newer driver"),
    DriverError("cuda", 46, "gpu-init-failed", "the GPU is busy, or its compute mode forbids this process to use it"),
    DriverError("cuda", 100, "no-gpu-visible", "the driver shows no GPU to this process"),
    DriverError("cuda", 101, "gpu-init-failed", "a GPU was asked for that does not exist"),
    DriverError("cuda", 102, "gpu-init-failed", "the virtual GPU has no licence"),
    DriverError("cuda", 304, "gpu-init-failed", "a call to the operating system failed"),
    DriverError("cuda", 802, "fabric-manager-not-running", "the NVSwitch fabric is not ready"),
    DriverError(
        "cuda", 803, "driver-library-mismatch", "the library libcuda and the kernel module are of different releases"
    ),
    DriverError("cuda", 804, "forward-compat-unsupported", "this GPU does not support forward compatibility"),
    DriverError("cuda", 805, "gpu-init-failed", "the MPS server cannot be reached"),
    DriverError("cuda", 806, "gpu-init-failed", "the MPS server failed"),
    DriverError("cuda", 807, "gpu-init-failed", "the MPS server is not ready"),
    DriverError("cuda", 808, "gpu-init-failed", "the MPS server has no room for another client"),
    DriverError("cuda", 809, "gpu-init-failed", "the MPS server has no room for another connection"),
    DriverError("cuda", 999, "gpu-init-failed", "the driver does not know what is wrong"),
    DriverError("nvml", NOT_LOADABLE, "driver-not-installed", "the library libnvidia-ml.so.1 cannot be loaded"),
    DriverError("nvml", 9, "driver-not-loaded", "the kernel module is not loaded"),
    DriverError("nvml", 10, "gpu-init-failed", "the driver gave no answer in time"),
    DriverError("nvml", 12, "driver-not-installed", "the library libnvidia-ml.so.1 is not installed"),
    DriverError("nvml", 15, "gpu-lost", "the GPU is lost"),
    DriverError("nvml", 16, "gpu-needs-reset", "the GPU must be reset"),
    DriverError("nvml", 17, "gpu-init-failed", "the operating system bars the way to the GPU"),
    DriverError("nvml", 18, "driver-library-mismatch", "NVML and the kernel module are of different releases"),
    DriverError("nvml", 999, "gpu-init-failed", "the driver does not know what is wrong"),
)

_BY_STATUS = {(error.api, error.code): error for error in DRIVER_ERRORS}


def explained(result: ApiResult) -> DriverError | None:
    """What a failed call means; None for success and for a status that the table does not know."""
    if result.code == 0:
        return None
    return _BY_STATUS.get((_api(result), result.code))


def answers(facts: Facts) -> tuple[ApiResult, ...]:
    """What the driver's libraries answered when they were started and asked for devices."""
    driver = facts.snapshot.driver
    given = (driver.cuda_init, driver.cuda_device_count, driver.nvml) if driver else ()
    return tuple(result for result in given if result is not None)


def naming(problem: str, results: Iterable[ApiResult]) -> tuple[ApiResult, ...]:
    """The failed calls that ``problem`` explains."""
    return tuple(result for result in results if (error := explained(result)) and error.problem == problem)


def shown(result: ApiResult) -> Evidence:
    """A call and its status, as evidence."""
    status = " ".join(part for part in (str(result.code), result.name) if part) if result.code else "0"
    return Evidence(what=result.call, value=status, source=result.library or result.source)


def _api(result: ApiResult) -> Api:
    return "nvml" if result.call.lower().startswith("nvml") else "cuda"
