"""Instructions of the processor."""

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
    """The processor lacks instructions that a framework was compiled for.

    What it checks
        Reads error lines of frameworks that name the missing instructions, such as TensorFlow's about
        AVX.

    Why it matters
        The program ends at once, often with "Illegal instruction". Processors before 2011, some small
        ones, and virtual machines with a generic CPU type lack AVX.

    How to fix
        In a virtual machine, choose a CPU type that passes AVX on. Otherwise install a build for this
        processor, or compile the package here.

    Sources
        TensorFlow, installation, hardware requirements: https://www.tensorflow.org/install/pip
    """
