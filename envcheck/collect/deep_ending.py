"""What the end of a trial says of the framework that was tried, besides what the probe itself sent."""

from __future__ import annotations

import msgspec

from envcheck.collect.job import Ended
from envcheck.snapshot import Environment, Framework, Listing, Snapshot, Trial

SOURCE = "trial"


def with_its_end(ended: Ended) -> Ended:
    """What a trial sent, with what its printed lines and its death say of the framework.

    A process that crashed or exited did that by itself. One that was ended from outside (a deadline, memory that ran
    out) leaves open whether the framework works.
    """
    about = ended.run
    if about.framework is None or about.environment is None or about.status in ("skipped", "absent"):
        return ended
    sent = [trial for part in ended.facts if (trial := _trial(part)) is not None]
    past_import = any(trial.imported is not None for trial in sent)
    record = Trial(source=SOURCE, warnings=ended.telling)
    if ended.death is not None:
        record = Trial(
            source=SOURCE,
            warnings=ended.telling,
            imported=False if ended.death == "own" and not past_import else None,
            ran_on_gpu=False if ended.death == "own" and past_import else None,
            error=about.detail,
        )
    elif not sent:
        return ended
    framework = Framework(source=SOURCE, name=about.framework, trial=record)
    part = Environment(source=SOURCE, key=about.environment, frameworks=Listing(items=(framework,)))
    return msgspec.structs.replace(ended, facts=(*ended.facts, Snapshot(environments=Listing(items=(part,)))))


def _trial(part: Snapshot) -> Trial | None:
    environments = part.environments.items if part.environments else ()
    frameworks = [framework for found in environments if found.frameworks for framework in found.frameworks.items]
    return next((framework.trial for framework in frameworks if framework.trial), None)
