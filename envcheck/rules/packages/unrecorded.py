from __future__ import annotations

from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import Environment, frameworks_in
from envcheck.rules.api import Facts, Outcome, rule
from envcheck.rules.facts.machine import and_more
from envcheck.rules.facts.trials import imported

_SHOWN = 8
_AGAIN = Fix(text="Install the package again with pip, uv or conda, or remove its folder if it is not wanted")


@rule(layer="framework", per="environment", ground="environment", remedy=(_AGAIN,))
def package_unrecorded(environment: Environment, _facts: Facts) -> Outcome | None:
    """A package has no record of its installation."""
    paths = environment.unrecorded
    if not paths or environment.problem is not None:  # as a required check that passes, it would carry a verdict
        return None
    frameworks = [each for each in frameworks_in(environment) if each.path in paths and not imported(each)]
    first = [each.path for each in frameworks if each.path]
    shown = [*first, *(path for path in paths if path not in first)]
    names = [path.rpartition("/")[2] for path in shown]
    return Outcome(
        status="unknown" if frameworks or not environment.distributions else "note",
        title=f"No record of the installation of {names[0][:40]}{and_more(names)}",
        message=f"No metadata names {', '.join(shown[:_SHOWN])}: the installation may have ended early.",
        evidence=tuple(Evidence(what=path, value="no metadata names it", source=f"file {path}") for path in shown)[
            :_SHOWN
        ],
        decided_by="declared",
        fixes=(_AGAIN,),
    )
