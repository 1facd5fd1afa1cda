"""envcheck: what is on this GPU machine, whether it fits together, and whether it really runs.

The public API: what ``__all__`` lists keeps its names and meanings within a major version. Everything is imported when
it is first used, so that ``import envcheck`` costs nothing.

    envcheck.require("torch>=2.4", "gpu>=sm_90")    raise RequirementNotMet unless this program has it
    envcheck.check(python="/opt/venv")              examine this machine and judge it: a Report
    envcheck.snapshot()                             examine this machine only: a Snapshot
"""

from __future__ import annotations

__version__ = "0.1.0"

__all__ = [
    "EnvcheckError", "Report", "RequirementNotMet", "Snapshot", "UsageError", "__version__", "check", "require",
    "snapshot",
]  # fmt: skip

_WHERE = {
    "EnvcheckError": "envcheck.errors",
    "Report": "envcheck.model.checks",
    "RequirementNotMet": "envcheck.errors",
    "Snapshot": "envcheck.model.snapshot",
    "UsageError": "envcheck.errors",
    "check": "envcheck.api",
    "require": "envcheck.requirements",
    "snapshot": "envcheck.api",
}
"""The module of each public name."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envcheck.api import check as check
    from envcheck.api import snapshot as snapshot
    from envcheck.errors import EnvcheckError as EnvcheckError
    from envcheck.errors import RequirementNotMet as RequirementNotMet
    from envcheck.errors import UsageError as UsageError
    from envcheck.model.checks import Report as Report
    from envcheck.model.snapshot import Snapshot as Snapshot
    from envcheck.requirements import require as require


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    from importlib import import_module  # noqa: PLC0415  most that import envcheck use none of them

    if name not in _WHERE:
        raise AttributeError(f"module 'envcheck' has no attribute {name!r}")
    value = getattr(import_module(_WHERE[name]), name)
    globals()[name] = value
    return value
