"""What brings the answers of nodes: one file each, with ``answers``. Each engine is one that people already run."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from envcheck.errors import UsageError

if TYPE_CHECKING:
    from envcheck.fleet.engines.asking import Coming

# An engine is imported when it is asked for.
# ruff: noqa: PLC0415


def chosen_engine(options: Namespace, hosts: str = "") -> tuple[str, Coming]:
    """The engine that ``options`` name, and its answers; raise UsageError where it cannot start.

    ``hosts`` is the text of the file that ``--hosts`` names.
    """
    if options.reports:
        from envcheck.fleet.engines import reports

        return "reports", reports.answers(options.reports)
    from envcheck.fleet.engines.asking import asked
    from envcheck.fleet.engines.launch import DEFAULT_JOBS, DEFAULT_TIMEOUT

    jobs, timeout = options.jobs or DEFAULT_JOBS, options.timeout or DEFAULT_TIMEOUT
    if options.hosts:
        from envcheck.fleet.engines import hosts as ssh

        return "hosts", ssh.answers(hosts, asked(options.command), jobs=jobs, timeout=timeout)
    if options.slurm is not None:
        from envcheck.fleet.engines import slurm

        return "slurm", slurm.answers(options.slurm, asked(options.command), jobs=jobs, timeout=timeout)
    if options.ray:
        from envcheck.fleet.engines import ray

        return "ray", ray.answers(options.ray, asked(options.command), timeout=timeout)
    if options.kubernetes:
        from envcheck.fleet.engines import kubernetes

        return "kubernetes", kubernetes.answers(
            options.kubernetes, options.selector, asked(options.command), timeout=timeout
        )
    raise UsageError("name where the reports come from, such as --reports FOLDER; see envcheck fleet --help")
