"""``envcheck node``: what was found of this machine a short while ago; and ``--look``, which finds it."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from pathlib import Path

from envcheck.cli.kept import FORMATS, KEPT, boot, open_private, place_of, since_start, tell
from envcheck.cli.request import request_of
from envcheck.errors import UsageError
from envcheck.pipeline import session
from envcheck.report import Options, Pages, exit_status
from envcheck.text.clean import clean
from envcheck.text.output import write_whole
from envcheck.text.streams import print_text

_REPORT = "report.json"
_PLAIN = Options()


def run(options: Namespace) -> int:
    """Tell what is kept; with ``--look``, examine the machine, keep what was found and tell that."""
    if not options.look:
        return tell(options.runtime_dir or "", options.max_age, options.format)
    place = place_of(options.runtime_dir or "")
    os.umask(0o077)
    try:
        Path(place).mkdir(exist_ok=True)
        os.close(open_private(place))
        began, start = since_start(), boot()
    except OSError as error:
        raise UsageError(f"{place} cannot be used: {error.strerror or error}") from None
    report = session.check(request_of(options, scopes=frozenset({"node"})))
    pages = Pages(report)
    answers = {form: (exit_status(report, form), pages.render(form, _PLAIN)) for form in FORMATS[1:]}
    answers[FORMATS[0]] = (report.exit_code, clean(f"{report.verdict.upper()}  {report.headline}"))
    write_whole(Path(place, _REPORT), pages.render("json", _PLAIN), "json")
    write_whole(Path(place, KEPT), json.dumps({"boot": start, "at": began, "said": answers}))
    print_text(f"{answers[options.format][1].rstrip()}\n")
    return answers[options.format][0]
