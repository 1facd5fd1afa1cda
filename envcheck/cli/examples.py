"""The examples at the end of every ``--help``."""

from __future__ import annotations

import textwrap

_COLUMNS = 80

EXAMPLES: dict[str, tuple[str, ...]] = {
    "envcheck": (
        "envcheck check",
        "envcheck check --deep --python /opt/venv",
        "envcheck bench --quick",
        "envcheck rule driver-too-old",
    ),
    "envcheck check": (
        "envcheck check -v",
        "envcheck check --require 'torch>=2.4' --require 'gpus>=8' -o json:envcheck.json",
        "envcheck check --assume gpu==H100,driver==550.54.14,os==linux",
        "envcheck check --from envcheck.json --format markdown",
    ),
    "envcheck bench": (
        "envcheck bench --gpu 0 --save-baseline before.json",
        "envcheck bench --only cudnn --baseline before.json",
        "envcheck bench --baseline runs/ -o json:runs/today.json",
        "envcheck bench --fleet --slurm='-p gpu --gpus-per-node=8'",
    ),
    "envcheck collect": (
        "envcheck collect --script > collect.py   # then: ssh NODE python3 -I - < collect.py | envcheck check --from -",
    ),
    "envcheck fleet": (
        "envcheck fleet --reports /shared/reports -o jsonl:fleet.jsonl -o html:fleet.html",
        "envcheck fleet --reports '/shared/reports/gpu*.json' --since fleet.jsonl",
    ),
    "envcheck tui": ("envcheck tui --from envcheck.json",),
    "envcheck serve": ("envcheck serve --port 0",),
    "envcheck explain": ("python -m torch.utils.collect_env | envcheck explain", "envcheck explain error.log --here"),
    "envcheck rule": ("envcheck rule", "envcheck rule cudnn", "envcheck rule driver-too-old --format markdown"),
    "envcheck diff": ("envcheck diff before.json after.json", "envcheck diff --base runs/ today.json"),
    "envcheck config": ("envcheck config", "envcheck config --config ci/envcheck.toml --json"),
    "envcheck init": ("envcheck init", "envcheck init --from envcheck.json -o -"),
    "envcheck schema": ("envcheck schema", "envcheck schema diff"),
    "envcheck completion": (
        "envcheck completion bash > ~/.local/share/bash-completion/completions/envcheck",
        "envcheck completion zsh > ~/.envcheck.zsh   # in ~/.zshrc, after compinit: source ~/.envcheck.zsh",
        "envcheck completion fish > ~/.config/fish/completions/envcheck.fish",
    ),
    "envcheck matrix": (
        "envcheck matrix check torch==2.5.1+cu124 driver==550.54.14",
        "envcheck matrix show cuda==12.4",
    ),
    "envcheck matrix check": ("envcheck matrix check torch==2.5.1+cu124 gpu=='RTX 5090' driver==550.54.14",),
    "envcheck matrix show": ("envcheck matrix show torch==2.5.1", "envcheck matrix show gpu==H200"),
    "envcheck matrix refresh": ("envcheck matrix refresh --only torch --dry-run",),
}
"""By what ``--help`` calls the program; every command line here is one that the parser accepts."""


def help_end(program: str, epilog: str | None) -> str:
    """The end of a help page: ``epilog`` wrapped, and the examples."""
    parts = [textwrap.fill(epilog, _COLUMNS)] if epilog else []
    if program in EXAMPLES:
        parts.append("\n".join(["examples:", *(f"  {line}" for line in EXAMPLES[program])]))
    return "\n\n".join(parts)
