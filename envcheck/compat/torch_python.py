"""PyTorch and Python: whether a release has wheels for a CPython."""

from __future__ import annotations

from envcheck.compat.fit import Fit, conclude
from envcheck.compat.specifier import parse_version
from envcheck.compat.tables import Machine, Os, Tables, TorchRow


def torch_row(tables: Tables, version: str) -> TorchRow | None:
    """The row of a release; a local version (``2.5.1+cu124``) does not matter. A pre-release or nightly has none."""
    wanted = _release(version)
    return next((row for row in tables.torch if row.version == wanted), None)


def python_runs_torch(
    tables: Tables, torch_version: str, python: str, os: Os = "linux", machine: Machine = "x86_64"
) -> Fit:
    """Whether PyPI has a wheel of this release for ``python`` (``3.12`` or ``3.12.4``) on this system."""
    row = torch_row(tables, torch_version)
    asked, low = _minor(python), _minor(row.python_min) if row else None
    newest = newest_python(row, os, machine) if row else None
    high = _minor(newest)
    if row is None or asked is None or low is None or high is None:
        reason = f"the matrix does not know which Pythons torch {torch_version} has wheels for"
        return conclude(tables, "unknown", reason, row)
    span = f"torch {row.version} has wheels for CPython {row.python_min} to {newest}"
    if low <= asked <= high or ".".join(map(str, asked)) in row.python_also:
        return conclude(tables, "compatible", span, row)
    change = f"Python {newest}" if asked > high else f"Python {row.python_min}"
    return conclude(tables, "incompatible", f"{span}, not for {python}", row, change=change)


def newest_python(row: TorchRow, os: Os, machine: Machine) -> str | None:
    """The newest CPython with a wheel of this release on a system."""
    if os == "windows":
        return row.python_max_windows or row.python_max
    if machine == "aarch64":
        return row.python_max_aarch64 or row.python_max
    return row.python_max


def _release(version: str) -> str | None:
    parsed = parse_version(version)
    if parsed is None or parsed.pre or parsed.post is not None:
        return None
    return ".".join(str(part) for part in (*parsed.numbers, 0, 0)[:3])


def _minor(python: str | None) -> tuple[int, ...] | None:
    parsed = parse_version(python or "")
    return parsed.numbers[:2] if parsed and len(parsed.numbers) > 1 else None
