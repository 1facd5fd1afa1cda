"""What a session is to examine, made of what every session of this application examines."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from envcheck.checks import Report
    from envcheck.collect.bench_plan import Bench
    from envcheck.pipeline.request import Request

Wish: TypeAlias = "Callable[[Request], Request]"


def plain(request: Request) -> Request:
    """All that looks without trying or measuring anything."""
    return request


def deep(request: Request) -> Request:
    """Also try each framework."""
    import msgspec

    return msgspec.structs.replace(request, deep=True)


def measuring(request: Request, bench: Bench) -> Request:
    """Also measure."""
    import msgspec

    return msgspec.structs.replace(request, bench=bench)


def probe_alone(request: Request, probe: str) -> Request:
    """One probe, of whatever kind."""
    import msgspec

    from envcheck.collect.bench_plan import Bench
    from envcheck.collect.catalog import all_probes

    kind = next((spec.kind for spec in all_probes() if spec.name == probe), "file")
    bench = Bench() if kind == "bench" else None
    return msgspec.structs.replace(request, probes=(probe,), deep=kind == "deep", bench=bench)


def judging(request: Request, environment: str | None) -> Request:
    """Another environment, by its key; None: look for environments in all known places."""
    import msgspec

    if environment is None:
        return msgspec.structs.replace(request, all_envs=True)
    return msgspec.structs.replace(request, python=(environment,))


def nvml_answered(report: Report) -> bool:
    """Whether NVML answered here before: it is not tried where it hangs or would create device nodes."""
    driver = report.snapshot.driver if report.snapshot else None
    return driver is not None and driver.nvml is not None and driver.nvml.code == 0
