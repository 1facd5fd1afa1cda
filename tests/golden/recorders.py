"""All that is recorded: by name, what makes the files of the corpus."""

from collections.abc import Callable
from functools import partial

from tests.golden.causes import causes
from tests.golden.pages import help_pages, rule_pages
from tests.golden.questions import KINDS, answers
from tests.golden.reports import GROUPS, comparisons, documents
from tests.golden.verbs import printed

RECORDERS: dict[str, Callable[[], dict[str, str]]] = {
    "causes": causes,
    "help": help_pages,
    "rules": rule_pages,
    **{f"answers of {kind}": partial(answers, kind) for kind in KINDS},
    **{f"reports {group}": partial(documents, group) for group in GROUPS},
    "diff": comparisons,
    "verbs": printed,
}
"""By name: file of the corpus → its text."""
