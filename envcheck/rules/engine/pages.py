"""Which documentation a finding cites: of its framework, and of what all frameworks share."""

from __future__ import annotations

from envcheck.checks import Source
from envcheck.compat.matrix import Matrix
from envcheck.compat.tables import ProductRow
from envcheck.rules.api import FrameworkSubject, Rule, Subject


def pages(rule: Rule, subject: Subject, matrix: Matrix) -> tuple[Source, ...]:
    """The rule's own pages, without those of other frameworks than the one that ``subject`` is.

    Of an extension the pages of what it extends serve too. Where only pages of others were left out, the framework's
    page on installing it stands in; where there is none, the rule's pages stay as they are.
    """
    if not isinstance(subject, FrameworkSubject):
        return rule.sources
    framework = subject.framework
    return pages_about(rule, framework.name, matrix, base=framework.extends or framework.name)


def pages_about(rule: Rule, name: str, matrix: Matrix, *, base: str = "") -> tuple[Source, ...]:
    """The same for a program by its name; ``base`` is what it extends."""
    own = [row for row in matrix.products if name.startswith(row.frameworks)]
    of_base = [row for row in matrix.products if (base or name).startswith(row.frameworks)]
    kept = tuple(source for source in rule.sources if _product(source, matrix) in (None, *own, *of_base))
    named = any(_product(source, matrix) for source in kept)
    if not named and len(kept) < len(rule.sources):
        kept = (*kept, *matrix.cite(*(own or of_base)))
    return kept or rule.sources


def _product(source: Source, matrix: Matrix) -> ProductRow | None:
    """The product that a page's title names first."""
    named = ((source.title.find(name), row) for row in matrix.products for name in row.names)
    return min((each for each in named if each[0] >= 0), key=lambda each: each[0], default=(0, None))[1]
