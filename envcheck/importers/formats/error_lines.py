"""Lines about failures from any text, with their line numbers. Rules decide what they mean.

The words by which they are known are rows of the matrix, wide on purpose: an extra line does no harm, a missing one
hides a problem from all rules. Lines that request CUDA are included: a missing GPU is then a failure.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache

from envcheck.importers.importer import Rank, importer
from envcheck.importers.paste import SOURCE, Paste, left_out_run
from envcheck.knowledge.error_lines import (
    bears_on,
    bears_on_remedy,
    failure_patterns,
    matches_fragment,
    named_by,
    rank_of,
    rows_in,
)
from envcheck.model.snapshot import ObservedError, ProbeRun, Snapshot
from envcheck.text.lazy import lazy_pattern

_NAME = "error lines"

MOST_LINES = 200  # Most lines that are kept, from both ends: the fatal error comes last
_HALF = MOST_LINES // 2
_ENDS = 40  # Most lines that are put together from each end of a text
LONGEST_LINE = 2_000
_ALIKE = 2  # Lines kept from each end of a series that differs only in numbers

_RAISED = lazy_pattern(r"\s{0,8}[\w.]{0,80}(?:Error|Exception)\b")
_FRAME_LINES = 8  # Most lines from a frame to the exception: its source code, and marks below it

_MOST_TRIED = 2_000  # Most lines without a word of a failure that are tried


@importer(_NAME, Rank.MESSAGE)
def read(paste: Paste) -> Snapshot:
    """At most ``MOST_LINES`` error lines, identical ones once."""
    found, seen = dict[str, int](), set[str]()
    named, whole = _named(paste), _named_whole(paste)
    as_written = dict(paste.as_written)
    for place, line in enumerate(paste.lines):
        if broken := whole.get(place):
            text, original = broken
            found.setdefault(text.strip()[:LONGEST_LINE], paste.number(place))
            if original != text:
                as_written[text] = original
        elif line not in seen:
            seen.add(line)
            if line in named or is_error(line, paste.lowered):
                for frame in _last_frame(paste.lines, place) if _RAISED.match(line) else ():
                    found.setdefault(paste.lines[frame].strip()[:LONGEST_LINE], paste.number(frame))
                found.setdefault(line.strip()[:LONGEST_LINE], paste.number(place))
    unlike = list(found)
    if len(unlike) > MOST_LINES:  # few of those that differ only in numbers, such as the warnings of a long run
        alike: dict[str, list[int]] = defaultdict(list)
        for place, line in enumerate(unlike):
            alike[re.sub(r"0x[0-9a-fA-F]+|\d+", "#", line)].append(place)
        places = {place for of_one in alike.values() for place in (*of_one[:_ALIKE], *of_one[-_ALIKE:])}
        unlike = [unlike[place] for place in sorted(places)]
    kept = unlike if len(unlike) <= MOST_LINES else unlike[:_HALF] + unlike[-_HALF:]
    written = {text.strip()[:LONGEST_LINE]: line.strip()[:LONGEST_LINE] for text, line in as_written.items()}
    errors = [
        ObservedError(source=SOURCE, text=text, as_written=written.get(text, ""), line=found[text]) for text in kept
    ]
    runs: list[ProbeRun] = []
    if len(unlike) < len(found):  # similar lines were omitted, which is no open question
        detail = f"{len(kept)} of {len(found)} lines that speak of a failure were kept"
        runs.append(ProbeRun(name=_NAME, status="ok", detail=detail))
    if len(kept) < len(unlike):
        detail = f"only the first and the last {_HALF} of {len(unlike)} lines that speak of a failure were read"
        runs.append(left_out_run(detail))
    return Snapshot(observed_errors=tuple(errors), runs=tuple(runs))


def _last_frame(lines: Sequence[str], place: int) -> Sequence[int]:
    """Where the traceback above an exception ends, in an installed package: that one may be at fault."""
    frames = [each for each in range(max(0, place - _FRAME_LINES), place) if 'File "' in lines[each]]
    frames = [each for each in frames if not matches_fragment("call-passed-on", lines[each])] or frames
    return frames[-1:] if frames and "-packages" in lines[frames[-1]] else ()


def _named(paste: Paste) -> frozenset[str]:
    """The lines that name a problem, whatever words they have, those that must or must not stand beside them, and those
    that say which remedy helps; of a text that is short enough to try them all.
    """
    if len(paste.statements) > _MOST_TRIED:
        return frozenset()
    rows = {line: row for line in paste.statements if (row := named_by(line)) and not _is_harmless(line, paste.lowered)}
    if not rows:
        return frozenset()
    # Where one row gives way, the next that knows the line is asked.
    beside = dict.fromkeys(row for line in rows for row in rows_in(line) if row.beside or row.unless)
    said = (line for line in paste.statements if any(bears_on(row, line) for row in beside) or bears_on_remedy(line))
    return frozenset(rows).union(line for line in said if not _is_harmless(line, paste.lowered))


def _named_whole(paste: Paste) -> dict[int, tuple[str, str]]:
    """Of each place whose line was broken by a terminal, the whole line and how it was written, where it names a
    problem more exactly than each of its parts.
    """
    found: dict[int, tuple[str, str]] = {}
    broken = paste.rejoined
    for first, after, wholes in broken if len(broken) <= 2 * _ENDS else broken[:_ENDS] + broken[-_ENDS:]:
        text = min(wholes, key=rank_of)
        parts = paste.lines[first:after]
        if first not in found and rank_of(text) < min(map(rank_of, parts)) and not _is_harmless(text):
            in_english = paste.as_written.keys().isdisjoint(parts)
            as_written = text if in_english else " ".join(paste.as_written.get(part, part).strip() for part in parts)
            found |= dict.fromkeys(range(first, after), (text, as_written))
    return found


_NEVER = "(?!)"


@lru_cache(maxsize=8)
def _telling(whole: str | None) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """The words of all rows: of failures in lower case, of failures as they are written, of lines without one."""
    words = failure_patterns(whole)
    # The word boundary is matched once, not in every alternative, and case is not folded: four times as fast.
    begun = [rf"\b(?:{'|'.join(words['word'])})"] if words["word"] else []
    in_lower_case = "|".join((*begun, *words["anywhere"])) or _NEVER
    as_written = "|".join((*words["as-written"], *words["request"])) or _NEVER
    harmless = re.compile("|".join(words["harmless"]) or _NEVER, re.IGNORECASE)
    return re.compile(in_lower_case), re.compile(as_written), harmless


def is_error(line: str, whole: str | None = None) -> bool:
    """Whether a line is about a failure; a line of XML never is, whatever its elements are called. ``whole``: the text
    that it is a line of, in lower case; only what that has is then looked for.
    """
    text, (in_lower_case, as_written, _) = line.strip()[:LONGEST_LINE], _telling(whole)
    return bool(in_lower_case.search(text.lower()) or as_written.search(text)) and not _is_harmless(text, whole)


def _is_harmless(line: str, whole: str | None = None) -> bool:
    text = line.strip()[:LONGEST_LINE]
    return bool(_telling(whole)[2].search(text) or re.match(r"</?[a-z_]{1,80}[ >].*>$", text))
