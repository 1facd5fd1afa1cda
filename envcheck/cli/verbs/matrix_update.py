"""``envcheck matrix status``, ``update`` and ``refresh``: how old the rows are, newer ones from an index or a file, and
rows regenerated from the wheels on a package index.
"""

from __future__ import annotations

import os
from argparse import Namespace
from contextlib import closing
from typing import Any

from envcheck.bounded import TooLargeError, read_file
from envcheck.errors import ExitCode, UsageError
from envcheck.knowledge.updates import MOST_BYTES, checked, put, standing, take_back
from envcheck.text.clean import clean
from envcheck.text.streams import print_text, say


def status(options: Namespace) -> int:
    """Print how old the rows are; FOUND where the index, if it was asked, has newer ones."""
    found = standing()
    if options.online:
        newer_than, _, index = _index(options)
        with closing(index):
            newer = newer_than(found.read, index)
        found = standing(newer[0] if newer else "")
    if options.format == "json":
        from envcheck.report import json

        print_text(json.render(found), syntax="json")
    else:
        first, *others = found.copies
        age = {0: "today", 1: "yesterday"}.get(found.age_days, f"{found.age_days} days ago")
        lines = [f"Rows read up to {found.read}, {age}: {first.origin}, {first.place}"]
        lines += [f"Left out: {each.read or 'rows'}, {each.origin}, {each.place}: {each.left_out}" for each in others]
        if found.newer is not None:
            newer_rows = f"The index has rows of {found.newer}: envcheck matrix update"
            lines.append(newer_rows if found.newer else "The index has no newer rows.")
        print_text("".join(f"{clean(line)}\n" for line in lines))
    return ExitCode.FOUND if found.newer else ExitCode.OK


def update(options: Namespace) -> int:
    """Bring newer rows, or take them back, and print which count now. Raises UsageError where nothing changed."""
    if options.back:
        gone, now = take_back(), standing()
        print_text(clean(f"took away the rows of {gone}; those of {now.read} count: {now.copies[0].origin}") + "\n")
        return ExitCode.OK
    before = standing()
    if options.from_file:
        try:
            data = read_file(options.from_file, MOST_BYTES)
        except (OSError, TooLargeError) as error:
            raise UsageError(f"--from {options.from_file}: {getattr(error, 'strerror', None) or error}") from None
        rows = checked(data, options.from_file, options.sha256)
    else:
        newer_than, rows_of, index = _index(options)
        with closing(index):
            newer = newer_than(before.read, index)
            if newer is None:
                print_text(f"Nothing changed: the index has no rows newer than {before.read}.\n")
                return ExitCode.OK
            rows = rows_of(*newer, index)
    place = put(rows)
    print_text(clean(f"rows of {rows.read} count now, not those of {before.read}: {place}") + "\n")
    if rows.unread:
        print_text(f"{rows.unread} of its rows are left out: only a newer envcheck can read them.\n")
    print_text("envcheck matrix update --back takes them away again.\n")
    return ExitCode.OK


def _index(options: Namespace) -> tuple[Any, Any, Any]:
    """What asks an index, and the index. Raises UsageError where none is configured, or the extra is missing."""
    try:
        from envcheck.refresh.index import PackageIndex, index_address
        from envcheck.refresh.wheel_files import newer_than, rows_of
    except ModuleNotFoundError as error:
        needed = "asking an index needs the extra 'refresh': pip install 'gpu-envcheck[refresh]'"
        raise UsageError(f"{needed} ({error.name} is missing)") from None
    return newer_than, rows_of, PackageIndex(index_address(options.index_url, os.environ))


def refresh(options: Namespace) -> int:
    """Change the rows and print what changed; raise UsageError if that fails: then nothing changed."""
    try:
        from envcheck.refresh.index import PackageIndex, index_address
        from envcheck.refresh.kept import Kept, default_place
        from envcheck.refresh.run import refresh as regenerate
        from envcheck.refresh.run import report
    except ModuleNotFoundError as error:
        needed = "matrix refresh needs the extra 'refresh': pip install 'gpu-envcheck[refresh]'"
        raise UsageError(f"{needed} ({error.name} is missing)") from None

    def tell(step: str) -> None:
        if not options.quiet:
            say(f"reading {step}")

    address, only = index_address(options.index_url, os.environ), tuple(options.only or ())
    with closing(PackageIndex(address)) as index, closing(Kept(default_place(os.environ))) as kept:
        done = regenerate(index, options.matrix, only, dry_run=options.dry_run, on_step=tell, kept=kept)
    print_text("".join(f"{clean(line)}\n" for line in report(done).splitlines()))
    return ExitCode.OK
