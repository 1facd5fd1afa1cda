"""pytest's plugin: ``--envcheck`` puts the verdict into the header, ``needs_gpu`` skips where no GPU fits.

    @pytest.mark.needs_gpu(memory="24GiB", capability="8.0", count=2)

The machine is examined when the header or the first such test asks, once in a process; a run that uses neither imports
nothing of envcheck but this module.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

import envcheck

if TYPE_CHECKING:
    from envcheck.model.checks import Report
    from envcheck.model.snapshot import Gpu

_USAGE = 'write memory="24GiB", capability="8.0" and a count of 1 or more'
_MARKER = "needs_gpu(memory=None, capability=None, count=1): skip the test unless so many GPUs work, each with at least"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("envcheck").addoption(
        "--envcheck", action="store_true", help="show in the header whether GPU, driver and frameworks fit together"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f'{_MARKER} this memory ("24GiB") and compute capability ("8.0")')


def pytest_report_header(config: pytest.Config) -> str | None:
    """The verdict, its cause and the rule that found it, in one line."""
    if not config.getoption("--envcheck"):
        return None
    try:
        report = envcheck.check()
    except envcheck.EnvcheckError as error:
        return f"envcheck: no verdict: {_shown(str(error))}"
    rule = f" [{report.primary}]" if report.primary else ""
    return f"envcheck: {report.verdict.upper()} {_headline(report)}{rule}"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose ``needs_gpu`` this machine does not fulfil; fail it where the marker cannot be read."""
    for marker in item.iter_markers("needs_gpu"):
        wrong = bool(marker.args) or not set(marker.kwargs) <= {"memory", "capability", "count"}
        try:
            reason = _USAGE if wrong else why_not(**marker.kwargs)
        except envcheck.EnvcheckError as error:
            wrong, reason = True, str(error)
        if wrong:
            pytest.fail(f"needs_gpu: {reason}", pytrace=False)
        if reason:
            pytest.skip(reason)


def why_not(*, memory: str | None = None, capability: str | float | None = None, count: int = 1) -> str:
    """Why this machine has not ``count`` working GPUs with that much memory and that capability; empty: it has.

    ``memory`` is the total that the driver shows, which is a little less than the data sheet's. Raise UsageError for a
    value that cannot be read.
    """
    from envcheck.model.bounds import parse_capability, parse_size  # noqa: PLC0415  no other test waits for it

    if isinstance(capability, (int, float)):
        capability = str(float(capability))
    if not isinstance(memory, str | None) or not isinstance(capability, str | None):
        raise envcheck.UsageError(_USAGE)
    size, least = parse_size(memory or "0GiB"), parse_capability(capability or "0.0")
    if size is None or least is None or not isinstance(count, int) or count < 1:
        raise envcheck.UsageError(_USAGE)
    report = _machine()
    shown = [gpu for gpu in report.gpus if gpu.cuda_ordinal is not None]
    if not shown:
        return f"no GPU works here: {_headline(report)}"
    fitting = [
        gpu
        for gpu in shown
        if (memory is None or _memory(gpu) >= size)
        and (capability is None or (parse_capability(gpu.compute_capability or "") or (-1, 0)) >= least)
    ]
    if len(fitting) >= count:
        return ""
    wanted = [f"memory {memory}" if memory else "", f"compute capability {capability}" if capability else ""]
    least_of_each = " and ".join(filter(None, wanted))
    needed = f"{count} GPU{'s' if count > 1 else ''}{' with at least ' if least_of_each else ''}{least_of_each}"
    return f"needs {needed}; found {', '.join(map(_described, shown))}"


@cache
def _machine() -> Report:
    return envcheck.check(scopes={"node", "container"})


def _memory(gpu: Gpu) -> int:
    """Bytes; -1 where it is not known."""
    return gpu.memory.total if gpu.memory and gpu.memory.total is not None else -1


def _described(gpu: Gpu) -> str:
    total = _memory(gpu)
    memory = f"{total / 2**30:.1f} GiB" if total >= 0 else "memory not known"
    return _shown(
        f"{gpu.name or 'a GPU without a name'} ({gpu.compute_capability or 'capability not known'}, {memory})"
    )


def _headline(report: Report) -> str:
    from envcheck.redact import mask_secrets  # noqa: PLC0415  as above

    return _shown(mask_secrets(report).headline)


def _shown(text: str) -> str:
    from envcheck.text.clean import brief  # noqa: PLC0415  as above

    return brief(text)
