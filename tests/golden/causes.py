"""The cause that is named in each text of a fixed set."""

import json
from functools import cache

from envcheck.errors import UsageError
from envcheck.importers import read_text
from envcheck.model.checks import Fix
from envcheck.pipeline.session import Request, judge
from tests.golden.corpus import read

CASES = "cases.xz"  # The texts: a line of JSON each, with a name


def causes() -> dict[str, str]:
    """A line for each text: its name, the cause, the verdict, the exit status and the headline."""
    return {"causes.tsv": "".join(f"{name}\t{conclusion}\n" for name, conclusion, _ in conclusions())}


@cache
def conclusions() -> list[tuple[str, str, list[Fix]]]:
    """Name, conclusion and fixes of each text, which is judged once for all who look at them."""
    return [(name, *_answer(text)) for name, text in map(json.loads, read(CASES).splitlines())]


def _answer(text: str) -> tuple[str, list[Fix]]:
    try:
        report = judge(read_text(text), Request())
    except UsageError as error:
        return f"-\trefused\t2\t{' '.join(str(error).split())}", []
    conclusion = f"{report.primary or '-'}\t{report.verdict}\t{report.exit_code}\t{report.headline}"
    return conclusion, [fix for check in report.checks for fix in check.fixes]
