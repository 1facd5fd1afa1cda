"""The cause that is named in each text of a fixed set."""

from __future__ import annotations

import json

from envcheck.errors import UsageError
from envcheck.importers import read_text
from envcheck.pipeline.session import Request, judge
from tests.golden.corpus import read

CASES = "cases.xz"
"""The texts: a line of JSON each, with a name."""


def causes() -> dict[str, str]:
    """A line for each text: its name, the cause, the verdict, the exit status and the headline."""
    cases = (json.loads(line) for line in read(CASES).splitlines())
    return {"causes.tsv": "".join(f"{name}\t{_conclusion(text)}\n" for name, text in cases)}


def _conclusion(text: str) -> str:
    try:
        report = judge(read_text(text), Request())
    except UsageError as error:
        return f"-\trefused\t2\t{' '.join(str(error).split())}"
    return f"{report.primary or '-'}\t{report.verdict}\t{report.exit_code}\t{report.headline}"
