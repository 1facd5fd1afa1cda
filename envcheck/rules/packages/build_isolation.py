"""Builds of extensions that do not see the installed PyTorch."""

from __future__ import annotations

from envcheck.checks import Fix
from envcheck.rules.api import Facts, Outcome, never, rule
from envcheck.rules.fixes.commands import pip_command
from envcheck.snapshot import Snapshot


def _without_isolation(facts: Facts) -> tuple[Fix, ...]:
    return (
        Fix(
            text="Install PyTorch first, then the package without build isolation",
            command=pip_command(facts.environment, "install", "--no-build-isolation", "PACKAGE"),
        ),
        Fix(text="Or install a wheel of the package that is compiled for this PyTorch, CUDA and Python"),
    )


@rule(layer="framework", arises=never, remedy=_without_isolation)
def build_does_not_see_torch(_snapshot: Snapshot, _facts: Facts) -> Outcome | None:
    """A build of an extension does not see PyTorch.

    What it checks
        Reads error lines of pip and uv: "No module named 'torch'" while a package is built.

    Why it matters
        pip and uv build packages in an environment of their own, which holds only what the package
        declares for its build. Extensions such as flash-attn or torch-scatter import PyTorch there
        without declaring it, so that the build stops although PyTorch is installed.

    How to fix
        Install PyTorch first, then the package with --no-build-isolation (uv: also
        no-build-isolation-package), or install a compiled wheel.

    Sources
        pip, build isolation: https://pip.pypa.io/en/stable/reference/build-system/
        FlashAttention, installation:
            https://github.com/Dao-AILab/flash-attention#installation-and-features
    """
    return None
