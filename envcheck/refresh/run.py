"""``envcheck matrix refresh``: query the index, change the documents, check the result, write files that differ."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import urljoin

import msgspec

from envcheck.bundle import COMPILED, folder
from envcheck.errors import UsageError
from envcheck.knowledge.compiling import PROJECTS, compile_folder, row_files
from envcheck.knowledge.load import read_folder
from envcheck.refresh import project_rows, release_rows, torch_rows, vendor_lists
from envcheck.refresh.document import Document, Project, Projects, RowChange, Work, find_work, is_generated, read_whole
from envcheck.refresh.index import IndexFile, PackageIndex, in_parallel
from envcheck.refresh.kept import Kept
from envcheck.refresh.metadata import Metadata, metadata_of
from envcheck.refresh.wheel_files import Release, WheelFile, newest_wheel, releases, with_archives
from envcheck.text.output import write_whole

TORCH = "torch"
_OF_PROJECTS = f"{Path(PROJECTS).name}/"  # How sources begin that no file of TOML has


class Refreshed(msgspec.Struct, frozen=True):
    changes: tuple[RowChange, ...]
    files: tuple[Path, ...]  # The files that differ; written unless it was a dry run
    written: bool


def refresh(
    index: PackageIndex,
    matrix: str | None,
    only: Sequence[str] = (),
    *,
    dry_run: bool = False,
    on_step: Callable[[str], None] = lambda _step: None,
    today: str | None = None,
    kept: Kept = Kept(None),  # noqa: B008  it holds nothing
) -> Refreshed:
    """Regenerate the rows of a folder. Nothing is written until everything was read and the result checked.

    Raises UsageError (index, folder) or MatrixError (the resulting folder).
    """
    place = folder_to_write(matrix)
    compiled = compile_folder(place)  # it enforces limits that tomlkit does not have
    files = [path for path in row_files(place) if path.suffix != ".toml" or is_generated(path)]
    documents = [Document(path) if path.suffix == ".toml" else Projects(path) for path in files]
    day = today or datetime.now(timezone.utc).date().isoformat()
    changes: list[RowChange] = []
    changed: dict[Document | Projects, None] = {}
    known = {work.name for work in find_work(documents, ())}
    by_hand = [row for row in compiled.get(release_rows.TABLE, ()) if not row["source"][0].startswith(_OF_PROJECTS)]
    known.update(str(key) for row in by_hand for key in row.get("needs", {}))

    def regenerated(some: Sequence[Work | Project]) -> list[tuple[Work | Project, list[RowChange]]]:
        found = []
        for work in some:
            on_step(work.name)
            found.append((work, list(_regenerate(work, index, known, kept))))
        return found

    # Documents are changed by one thread; a project's rows are a line that nothing else changes.
    works = find_work(documents, only)
    groups: list[list[Work | Project]] = [[work for work in works if isinstance(work, Work)]]
    groups += [[work] for work in works if isinstance(work, Project)]
    with ThreadPoolExecutor(4) as pool:
        regenerated_works = [each for group in in_parallel(pool, regenerated, groups) for each in group]
    for work, found in regenerated_works:
        changes += found
        if any(change.made for change in found):
            work.source["read"] = day
            changed[work.document] = None
    if changed:
        _check(place, changed)
    if not dry_run:
        for document in changed:
            if read_whole(document.path) != document.before:
                changed_since = f"{document.path} was changed while the index was read"
                raise UsageError(f"{changed_since}; nothing was written, refresh again")
        for document in changed:
            write_whole(document.path, document.text)
    return Refreshed(tuple(changes), tuple(document.path for document in changed), bool(changed) and not dry_run)


def report(outcome: Refreshed) -> str:
    """A readable report: one line for each change, then the files."""
    if not outcome.changes:
        return "Nothing changed: the rows say what the index says.\n"
    lines = [f"{change.what}: {change.how}" for change in outcome.changes]
    verb = "wrote" if outcome.written else "would write"
    files = [f"{verb} {path}" for path in outcome.files] or ["nothing to write"]
    return "\n".join((*lines, *files)) + "\n"


def _regenerate(work: Work | Project, index: PackageIndex, known: Collection[str], kept: Kept) -> Iterator[RowChange]:
    address = str(work.source["address"])
    if isinstance(work, Work) and address.startswith(("https://", "http://")):

        def read_list(name: str) -> bytes:
            return index.whole(IndexFile(name or address, urljoin(address, name)), vendor_lists.MOST_BYTES)

        yield from vendor_lists.regenerate(work, read_list)
        return
    files = index.files(work.name)
    found = releases(files, work.name)

    def read(file: WheelFile) -> Metadata:
        return metadata_of(file.file, index, kept)

    def build(file: WheelFile) -> torch_rows.TorchBuildFacts:
        return torch_rows.build_of(file.file, index.session, kept)

    def of_release(release: Release) -> list[Metadata]:
        """METADATA of wheels for Linux x86_64, else of any."""
        newest = newest_wheel(release) or release.wheels[-1]
        return [read(file) for file in dict.fromkeys((newest, newest_wheel(release, oldest=True) or newest))]

    if isinstance(work, Project):
        yield from project_rows.regenerate(work, files)
        yield from project_rows.regenerate_requirements(work, with_archives(files, work.name), read, known, index.pool)
    elif work.name == TORCH and not work.generated.needs:
        yield from torch_rows.regenerate(work, found, torch_rows.Readers(build, read))
    else:
        yield from release_rows.regenerate(work, found, of_release)


def _check(place: Path, changed: Collection[Document | Projects]) -> None:
    """Read the folder as it would be after the changes; raises MatrixError if that is no valid matrix."""
    try:
        with tempfile.TemporaryDirectory(prefix="envcheck-matrix-") as scratch:
            Path(scratch, PROJECTS).parent.mkdir()
            for path in row_files(place):
                shutil.copy(path, Path(scratch, path.relative_to(place)))
            for document in changed:
                Path(scratch, document.path.relative_to(place)).write_text(document.text, encoding="utf-8")
            read_folder(Path(scratch))
    except OSError as error:
        raise UsageError(
            f"cannot write a copy to check, in {tempfile.gettempdir()}: {error.strerror or error}"
        ) from None


def folder_to_write(named: str | None) -> Path:
    """The folder whose rows are regenerated. Raises UsageError if none may be changed."""
    try:
        place = Path(named) if named else folder("matrix")
    except FileNotFoundError as error:
        raise UsageError(str(error)) from None
    if not place.is_dir():
        raise UsageError(f"--matrix {named}: there is no such folder")
    # Inside a Python package, or with files that only a wheel has.
    real = place.resolve()
    if (real / COMPILED).exists() or (real.parent / "__init__.py").exists() or "site-packages" in real.parts:
        raise UsageError(
            f"{place} belongs to an installed package, which is never changed; name a folder with --matrix"
        )
    for path in (place, *row_files(place)):
        if not os.access(path, os.W_OK):
            raise UsageError(f"no permission to write {path}")
    return place
