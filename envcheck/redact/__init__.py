"""Make a report fit to be shown to strangers: Report to Report.

``mask_secrets`` is for every format: values that look secret never leave. ``redact`` is for what is meant to be shared:
names of hosts and users, identifiers of GPUs and network addresses become pseudonyms. Bus ids, versions and everything
else that a diagnosis needs stay.

The pseudonyms are the same throughout a report, and for GPUs the same in every report about them, so that redacted
reports of one machine can be compared. Redacting twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from envcheck.checks import Report
from envcheck.redact.names import HIDDEN_GPU, Names
from envcheck.redact.names import HOST as HOST
from envcheck.redact.secrets import masked, masked_value
from envcheck.redact.walk import rewritten

HOME = "/home/user"
"""The home folder of a redacted report's user."""


def mask_secrets(report: Report) -> Report:
    """``report`` without what looks like a password, key or token; the same object where there is none."""
    return rewritten(report, cache(masked), masked_value)


def redact(report: Report, homes: Iterable[str] = ()) -> Report:
    """``report`` under pseudonyms and without secrets.

    ``homes`` are home folders whose owners are to be hidden wherever they lie; those below ``/home``, ``/Users`` and
    the like are known by their place.
    """
    safe = mask_secrets(report)
    names = Names(safe, homes)
    return rewritten(safe, cache(names.hide), names.hide_value)


def is_redacted(report: Report) -> bool:
    """Whether ``report`` was made by ``redact``, as far as it shows."""
    listing = report.snapshot.gpus if report.snapshot else None
    return report.host == HOST or any(HIDDEN_GPU in (gpu.uuid or "") for gpu in (listing.items if listing else ()))
