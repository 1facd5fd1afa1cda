"""Make a report fit to be shown to strangers: Report to Report.

``mask_secrets`` is for every format: values that look secret never leave. ``redact`` is for what is meant to be shared:
names of hosts and users, identifiers of GPUs and network addresses become pseudonyms. Bus ids, versions and everything
else that a diagnosis needs stay.

The pseudonyms are the same throughout a report, and for GPUs the same in every report about them, so that redacted
reports of one machine can be compared. Redacting twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial

import msgspec

from envcheck.model.checks import Report
from envcheck.redact.secrets import Texts, every_hint, masked, masked_value
from envcheck.redact.walk import HIDDEN_GPU, Rewriting, as_json, rewritten
from envcheck.redact.walk import HOME as HOME
from envcheck.redact.walk import HOST as HOST

_TEXTS = Texts()


def mask_secrets(report: Report) -> Report:
    """``report`` without what looks like a password, key or token; the same object where there is none."""
    encoded = as_json(report)
    hints = every_hint() if encoded is None else _TEXTS.hints_in(encoded)
    clean = hints.absent if encoded is None else _TEXTS.clean
    return rewritten(report, Rewriting(cache(partial(masked, hints=hints)), masked_value, clean, everywhere=True))


def redact(report: Report, homes: Iterable[str] = ()) -> Report:
    """``report`` under pseudonyms and without secrets.

    ``homes`` are home folders whose owners are to be hidden wherever they lie; those below ``/home``, ``/Users`` and
    the like are known by their place.
    """
    from envcheck.redact.names import Names  # noqa: PLC0415 - most reports are not redacted

    safe = mask_secrets(report)
    names = Names(safe, homes)
    report = rewritten(safe, Rewriting(cache(names.hide), names.hide_value))
    # The fields that are the host go whatever its name; within texts only a name that is not a common word does.
    snapshot = report.snapshot
    if snapshot is not None and snapshot.platform is not None and snapshot.platform.host:
        platform = msgspec.structs.replace(snapshot.platform, host=HOST)
        snapshot = msgspec.structs.replace(snapshot, platform=platform)
    return msgspec.structs.replace(report, host=HOST if report.host else report.host, snapshot=snapshot)


def is_redacted(report: Report) -> bool:
    """Whether ``report`` was made by ``redact``, as far as it shows."""
    return report.host == HOST or any(HIDDEN_GPU in (gpu.uuid or "") for gpu in report.gpus)
