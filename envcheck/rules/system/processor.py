from __future__ import annotations

from envcheck.checks import Fix
from envcheck.rules.api import never, rule

_OTHER_BUILD = (
    Fix(
        text="Install a build for this processor, or compile the package here; a virtual machine can pass the "
        'host\'s instructions on (CPU type "host")'
    ),
)


@rule(layer="framework", arises=never, remedy=_OTHER_BUILD, explains=("framework-import-fails",))
def cpu_lacks_instructions() -> None:
    """The processor lacks instructions that a framework was compiled for."""
