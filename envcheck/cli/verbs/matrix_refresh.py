"""``envcheck matrix refresh``: regenerate rows from the wheels on a package index."""

from __future__ import annotations

import os
from argparse import Namespace
from contextlib import closing

from envcheck.errors import ExitCode, UsageError
from envcheck.text import streams
from envcheck.text.clean import clean


def run(options: Namespace) -> int:
    """Change the rows and print what changed; raise UsageError if that fails: then nothing changed."""
    try:
        from envcheck.refresh.index import PackageIndex, index_address
        from envcheck.refresh.kept import Kept, default_place
        from envcheck.refresh.run import refresh, report
    except ModuleNotFoundError as error:
        needed = "matrix refresh needs the extra 'refresh': pip install 'gpu-envcheck[refresh]'"
        raise UsageError(f"{needed} ({error.name} is missing)") from None

    def say(step: str) -> None:
        if not options.quiet:
            streams.say(f"reading {step}")

    address, only = index_address(options.index_url, os.environ), tuple(options.only or ())
    with closing(PackageIndex(address)) as index, closing(Kept(default_place(os.environ))) as kept:
        done = refresh(index, options.matrix, only, dry_run=options.dry_run, on_step=say, kept=kept)
    streams.print_text("".join(f"{clean(line)}\n" for line in report(done).splitlines()))
    return ExitCode.OK
