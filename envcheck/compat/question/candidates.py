"""What a named version may be: the rows that cover it, one candidate for each build that it could mean."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from envcheck.compat.cuda_rows import may_exist
from envcheck.compat.question.question import Question
from envcheck.compat.question.rows import rows_of
from envcheck.compat.specifier import Version, parse_specifier
from envcheck.compat.tables import ReleaseRow, Tables
from envcheck.versions import CudaVersion


class Candidate(NamedTuple):
    """One build that a named component may be."""

    name: str
    label: str
    """As in ``torch 2.5.1+cu124``."""
    rows: tuple[ReleaseRow, ...]
    """Rows that hold for all that the version stands for: each constrains it."""
    partial: tuple[ReleaseRow, ...] = ()
    """Rows of some of the releases that the version, a family, stands for: each is one way to read it."""
    cuda: CudaVersion | None = None
    """CUDA of the build by its local tag, where no row tells."""

    @property
    def built_with(self) -> str:
        """CUDA of the build; empty where there is none, or nobody tells."""
        return str(self.cuda) if self.cuda else next((row.cuda for row in self.rows if row.cuda), "")


def release_candidates(tables: Tables, question: Question, name: str, version: Version) -> list[Candidate]:
    """The candidates of a component with rows of releases; none when no row covers the version.

    A version without local tag means the build without one, which is the one on PyPI; where CUDA is named beside it,
    or there is no such build, any build is meant.
    """
    covering = _covering(tables, name, version)
    by_build: dict[str, list[ReleaseRow]] = defaultdict(list)
    for row in covering:
        by_build[row.build].append(row)
    shared = by_build.get("", [])
    if version.local:
        rows = by_build.get(version.local)
        if rows:
            return [_candidate(name, version, version.local, rows, question)]
        return _by_tag(tables, name, version, shared, question)
    tags = [tag for tag in by_build if tag]
    if shared and not question.cuda:
        tags = []
    found = [_candidate(name, version, "", shared, question)] if shared else []
    return found + [_candidate(name, version, tag, by_build[tag], question) for tag in sorted(tags, reverse=True)]


def _covering(tables: Tables, name: str, version: Version) -> list[ReleaseRow]:
    found = [row for row in rows_of(tables, name) if parse_specifier(row.versions).cover(version) != "none"]
    exact = [row for row in found if parse_specifier(row.versions).names_post]
    return exact if exact and version.post is not None else found


def _candidate(name: str, version: Version, tag: str, rows: Sequence[ReleaseRow], question: Question) -> Candidate:
    rows = _of_system(rows, question)
    whole = [row for row in rows if parse_specifier(row.versions).cover(version) == "all"]
    part = [row for row in rows if row not in whole]
    label = f"{name} {version}+{tag}" if tag else f"{name} {version}"
    return Candidate(name, label, tuple(whole), tuple(part))


def _by_tag(
    tables: Tables, name: str, version: Version, rows: Sequence[ReleaseRow], question: Question
) -> list[Candidate]:
    """A build that no row knows: what holds for the release holds for it, but not what holds for the build on PyPI."""
    cuda = CudaVersion.from_tag(version.local) if version.local.startswith("cu") else None
    if cuda is None or not may_exist(tables, cuda) or not rows:
        return []
    plain = _candidate(name, version, version.local, rows, question)
    return [plain._replace(cuda=cuda)]


def _of_system(rows: Sequence[ReleaseRow], question: Question) -> list[ReleaseRow]:
    """Without the rows of other systems, where some are said to be of this one."""
    fitting = [row for row in rows if (row.os or row.machine) and runs_here(row, question)]
    if not fitting:
        return list(rows)
    return [row for row in rows if runs_here(row, question)]


def runs_here(row: ReleaseRow, question: Question) -> bool:
    """Whether a row is of the system in question, as far as it says."""
    return of_os(row, question) and of_machine(row, question)


def of_os(row: ReleaseRow, question: Question) -> bool:
    """Programs in WSL are Linux programs."""
    systems = {question.os, "linux"} if question.os == "wsl" else {question.os}
    return not row.os or bool(systems & set(row.os))


def of_machine(row: ReleaseRow, question: Question) -> bool:
    return not row.machine or question.machine in row.machine
