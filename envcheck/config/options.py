"""Every verb and every option, once.

The parser, the ``ENVCHECK_…`` variables, the keys of a configuration, the completions, the man page, the help and the
Request of a check are made from these two tables. To add an option, add an entry to OPTIONS: a verb finds its value as
an attribute of its ``options``, and where Request or BenchRequest has a field of that name, it is there too.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from envcheck.config.values import READERS, SCOPES, assumptions, indices, number, path, quantities, requirements, scopes
from envcheck.report import FORMATS

FILES = ("FILE", "REPORT", "DIR", "PATH", "FORMAT:FILE")  # What help calls values that name a file
MANY = {"action": "append"}  # An option that can be repeated; what reads it may make several values of a text
SWITCH = {"action": argparse.BooleanOptionalAction}

# Where an option stands: verbs, and the title of a group of their help.
SUBJECT = "check: what to check"
JUDGING = "check, explain: how to check it"
MEASURING = "bench: what to measure"
NODES = "bench: between nodes"
SOURCE = "fleet: where the reports come from"
ENGINE = "fleet: how to ask"
COMPARING = "fleet: how to compare"
ON_FINDING = "fleet: what to do about it"
CONFIGURATION = "check, plan, bench, config, fleet: configuration"
REPORT = "check, bench, explain: output"
ANSWER = "diff, matrix check, matrix show, matrix status: output"
PLAN_INPUT = "plan: what to install"
PLAN_OUTPUT = "plan: output"
APPLICATION = "tui, serve"


class Verb(NamedTuple):
    name: str  # ``matrix check`` is a verb of ``matrix``; the program itself has an empty name
    help: str
    examples: tuple[str, ...]  # Command lines that the parser accepts
    end: str = ""  # What its help ends with
    reads_variables: bool = True


class Option(NamedTuple):
    """An option of verbs, or an argument that has no name."""

    usage: str  # ``-o --output FILE``; of an argument, what its value is called in program and help: ``file FILE``
    where: str  # ``check, explain: how to check it; tui``
    help: str
    kind: Mapping[str, Any] = {}  # What argparse does with it; with nothing else, an option without a value is a flag
    one_of: str = ""  # Only one of the options with the same word here can be given
    key: str = ""  # What the schema says of the configuration's key of its name; empty: it has none
    excludes: str = ""  # Options that cannot be given beside it
    because: str = ""  # Why; ``{}`` stands for the other option
    needs: str = ""  # Options of which one has to be given beside it, in a verb that has them

    @property
    def names(self) -> list[str]:
        words = self.usage.split()
        return [word for word in words if word.startswith("-")] or words[:1]

    @property
    def value(self) -> str:
        """What help calls the value; empty where none is taken, or it is one of ``choices``."""
        return " ".join(self.usage.split()[len(self.names) :])

    @property
    def arguments(self) -> dict[str, Any]:
        """What argparse is told."""
        keywords: dict[str, Any] = {"help": self.help}
        if self.value:
            keywords["metavar"] = self.value
        elif not self.kind:
            keywords["action"] = "store_true"
        if self.flags and self.value in READERS:
            keywords["type"] = READERS[self.value]
        return {**keywords, **self.kind}

    @property
    def dest(self) -> str:
        """The attribute that holds its value."""
        return self.kind.get("dest") or self.name.replace("-", "_")

    @property
    def name(self) -> str:
        """``fail-on``: in a configuration, and behind ``ENVCHECK_`` in capitals."""
        return self.names[-1].lstrip("-")

    @property
    def flags(self) -> tuple[str, ...]:
        """How it is written; none for an argument without a name."""
        flags = [name for name in self.names if name.startswith("-")]
        negated = [f"--no-{flag[2:]}" for flag in flags if self.kind.get("action") is argparse.BooleanOptionalAction]
        return (*flags, *negated)

    @property
    def takes_value(self) -> bool:
        return "action" not in self.arguments or self.arguments["action"] == "append"

    @property
    def places(self) -> Iterator[tuple[str, str]]:
        """The verbs that have it, each with the title of its group."""
        for part in self.where.split("; "):
            verbs, _, title = part.partition(": ")
            yield from ((verb, title) for verb in verbs.split(", "))


VERBS = (
    Verb("", "Shows what is installed on this GPU machine, whether it fits together, and how to fix it.",
        ("envcheck check",
         "envcheck check --deep --python /opt/venv",
         "envcheck bench --quick",
         "envcheck rule driver-too-old"),
        "Exit status: 0 no finding at or above --fail-on, 1 at least one, 2 wrong usage, 3 no verdict, 4 internal "
        "error, 130 interrupted. ENVCHECK_SOME_OPTION sets the option --some-option."),
    Verb("check", "check this machine (default)",
        ("envcheck check -v",
         "envcheck check --require 'torch>=2.4' --require 'gpus>=8' -o json:envcheck.json",
         "envcheck check --assume gpu==H100,driver==550.54.14,os==linux",
         "envcheck check --from envcheck.json --format markdown")),
    Verb("tui", "open the terminal application (envcheck alone opens it on a terminal)",
        ("envcheck tui --from envcheck.json",)),
    Verb("serve", "open the terminal application in a browser on this machine (needs the extra 'serve')",
        ("envcheck serve --port 0",)),
    Verb("mcp", "offer check, explain, plan, matrix check and rule to an agent as tools (needs the extra 'mcp')",
        ("envcheck mcp", "envcheck mcp --allow-deep"), reads_variables=False),
    Verb("init", "write an envcheck.toml that requires what this machine has",
        ("envcheck init", "envcheck init --from envcheck.json -o -")),
    Verb("config", "show the configuration in effect here, and where each value comes from",
        ("envcheck config", "envcheck config --config ci/envcheck.toml --json"),
        "Exit status: 0 a configuration is in effect, 2 none was found or it is wrong."),
    Verb("bench", "measure the GPUs and their links, and compare the figures with the chip's peaks",
        ("envcheck bench --gpu 0 --save-baseline before.json",
         "envcheck bench --only cudnn --baseline before.json",
         "envcheck bench --baseline runs/ -o json:runs/today.json",
         "envcheck bench --fleet --slurm='-p gpu --gpus-per-node=8'")),
    Verb("diff", "show what changed between saved reports",
        ("envcheck diff before.json after.json", "envcheck diff --base runs/ today.json"),
        "Exit status: 0 no difference in what both reports know, 1 a difference, 2 wrong usage."),
    Verb("explain", "diagnose pasted text: output of torch's collect_env or nvidia-smi, or an error",
        ("python -m torch.utils.collect_env | envcheck explain", "envcheck explain error.log --here")),
    Verb("plan", "choose what to install here: the newest releases that fit each other and the machine",
        ("envcheck plan torch vllm 'flash-attn>=2.7'",
         "envcheck plan 'jax' --assume gpu==H100,driver==550.54.14 --python 3.12 --format requirements",
         "envcheck plan -r requirements.in --target cluster",
         "envcheck plan --repair"),
        "Exit status: 0 a set fits, 1 none does, 2 wrong usage, 3 it is not known whether the set fits."),
    Verb("rule", "explain a rule: what it checks, why it matters, how to fix it, its sources",
        ("envcheck rule", "envcheck rule cudnn", "envcheck rule driver-too-old --format markdown"),
        reads_variables=False),
    Verb("matrix", "answer compatibility questions without examining a machine",
        ("envcheck matrix check torch==2.5.1+cu124 driver==550.54.14", "envcheck matrix show cuda==12.4")),
    Verb("matrix check", "check whether components fit together",
        ("envcheck matrix check torch==2.5.1+cu124 gpu=='RTX 5090' driver==550.54.14",),
        "Exit status: 0 compatible, 1 incompatible, 2 wrong usage, 3 unknown."),
    Verb("matrix show", "show what the matrix knows about a component",
        ("envcheck matrix show torch==2.5.1", "envcheck matrix show gpu==H200"),
        "Exit status: 0 known, 2 wrong usage, 3 unknown."),
    Verb("matrix status", "show how old the rows are, and where they come from",
        ("envcheck matrix status", "envcheck matrix status --online"),
        "Exit status: 0 done, 1 the index has newer rows, 2 wrong usage, or no answer from the index."),
    Verb("matrix update",
        "bring newer rows from a package index, or from a wheel of gpu-envcheck-matrix",
        ("envcheck matrix update", "envcheck matrix update --back"),
        "Exit status: 0 newer rows are in use, or there are none; 2 wrong usage, no index, or rows that were refused, "
        "and nothing was changed.",
        reads_variables=False),  # a variable must not choose what is written
    Verb("matrix refresh",
        "regenerate rows from the wheels on a package index (needs the extra 'refresh' and the network)",
        ("envcheck matrix refresh --only torch --dry-run",),
        "Exit status: 0 done; 2 wrong usage, no index or an unreadable answer, and nothing was changed.",
        reads_variables=False),  # a variable must not choose what is written
    Verb("schema", "print the JSON Schema of an output, or of the configuration",
        ("envcheck schema", "envcheck schema diff")),
    Verb("completion", "print the completion of a shell: bash, zsh or fish",
        ("envcheck completion bash > ~/.local/share/bash-completion/completions/envcheck",
         "envcheck completion zsh > ~/.envcheck.zsh   # in ~/.zshrc, after compinit: source ~/.envcheck.zsh",
         "envcheck completion fish > ~/.config/fish/completions/envcheck.fish")),
    Verb("fleet", "compare many nodes, and show which ones differ or are slow (needs the extra 'fleet')",
        ("envcheck fleet --reports /shared/reports -o jsonl:fleet.jsonl -o html:fleet.html",
         "envcheck fleet --reports '/shared/reports/gpu*.json' --since fleet.jsonl"),
        "Exit status: 0 nothing at or above --fail-on, 1 a node or GPU at or above it, 2 wrong usage, "
        "3 a node without an answer or verdict, 130 interrupted (results so far are shown)."),
    Verb("fleet history", "show a node's history in a store: verdicts, findings and since when, its speed by week",
        ("envcheck fleet history gpu00417 --store fleet.duckdb",)),
    Verb("node",
        "report what was found on this machine a short while ago, without looking: for Prolog and health checks",
        ("envcheck node --look", "envcheck node --max-age 10m --format slurm-reason"),
        "Exit status: that of the check (--look: envcheck check --scope node --no-config) that found it; "
        "3 where nothing is kept, or it is too old."),
    Verb("collect", "print a collector for machines where nothing can be installed",
        (("envcheck collect --script > collect.py   # then: "
          "ssh NODE python3 -I - < collect.py | envcheck check --from -"),)),
)  # fmt: skip

HEADINGS = {"check": "look", "bench": "measure", "explain": "ask", "fleet": "many machines"}
"""Headings in the program's help, by the verb that they stand above."""


def _formats(where: str, formats: Collection[str], json: str = "json") -> tuple[Option, Option]:
    text = "output format: %(choices)s (default: text)"
    key = "Output format on stdout (default: text)." if where == REPORT else ""
    return (
        Option("--format FORMAT", where, text, {"choices": formats, "default": "text"}, key=key),
        Option(
            "--json", where, f"the same as --format {json}", {"action": "store_const", "const": json, "dest": "format"}
        ),
    )


_HERE = "--python --all-envs"
_OF_ONE_MACHINE = "--quick --full --only --frameworks --list --baseline --save-baseline"
_TOGETHER = "--fleet --fleet-node"
_INDEX = "index to ask (default: PIP_INDEX_URL, UV_DEFAULT_INDEX, UV_INDEX_URL)"
_REDACT = "replace hosts, users, home folders, network addresses, GPU UUIDs and serial numbers by pseudonyms"

OPTIONS = (
    Option("-V --version", "", "print the versions of envcheck and its matrix"),
    # What is looked at.
    Option("--python PATH", SUBJECT,
        "interpreter or environment folder to check (repeatable; the verdict is about the first) "
        "(default: VIRTUAL_ENV, CONDA_PREFIX or UV_PROJECT_ENVIRONMENT, ./.venv, python3 on PATH, envcheck's own)",
        MANY),
    Option("--all-envs", SUBJECT, "also scan for environments (working folder, conda, pyenv, uv, /opt, PATH …)"),
    Option("--plan FILE", SUBJECT,
        "check what FILE would install instead of an environment: a requirements file, pyproject.toml, setup.py, "
        "pylock.toml, uv.lock, poetry.lock, pdm.lock, Pipfile.lock, environment.yml, pixi.toml, pixi.lock, a "
        "Dockerfile, compose file or cog.yaml (repeatable; --assume names the machine); @NAME: the files of a [[plan]] "
        "of the configuration, judged on their own, and @all: each of them", MANY,
        excludes=f"{_HERE} --verify --deep --bench --from",
        because="{} is about an environment that exists, and --plan about files: use one of them"),
    Option("wishes REQUIREMENT", PLAN_INPUT, "a package, or one within bounds: torch, 'vllm>=0.9', 'jax[cuda12]'",
        {"nargs": "*"}),
    Option("-r --requirement FILE", PLAN_INPUT, "also what this file requires (repeatable; as for check --plan)", MANY),
    Option("--python VERSION", PLAN_INPUT, "the Python that the set is for (default: any that all have wheels for)"),
    Option("--resolve", PLAN_INPUT,
        "also let uv resolve the set, with all that it requires (needs uv and the network), and judge its answer",
        excludes="--as-of", because="{} is about the releases of a day, and --resolve about today's: use one of them"),
    Option("--repair ENVIRONMENT", PLAN_INPUT,
        "instead, the nearest releases with which what is installed fits: in this environment, or check's default",
        {"nargs": "?", "const": ""}, excludes="--requirement --resolve --python --as-of",
        because="{} is about what to install, and --repair about what is installed: use one of them"),
    Option("--newest", SUBJECT,
        "judge what FILE leaves open by the newest known release that an installer would choose", needs="--plan"),
    Option("--as-of DATE", f"{SUBJECT}; {PLAN_INPUT}",
        "leave out releases that appeared on PyPI after this day (2026-11-30), or whose day is not known, where a "
        "requirement leaves open which one; check judges the newest of the others, as --newest does",
        needs="--plan"),
    Option("--fix-plan", SUBJECT, "print, as a diff of FILE, the nearest releases with which the plan fits",
        needs="--plan", excludes="--target", because="{} changes FILE for one machine: name it with --assume"),
    Option("--from REPORT", SUBJECT, "check the facts of a saved JSON report instead of this machine (- is stdin)",
        {"dest": "saved"}, excludes=f"{_HERE} --verify --deep --bench",
        because="{} examines this machine, and --from reads a saved report: use one of them"),
    Option("--verify", SUBJECT,
        "also hash the files of the frameworks and of their dependencies, and list those that changed since "
        "installation (--deep includes this)"),
    Option("--deep", SUBJECT,
        "also start the environment's interpreter, import each framework in a separate process and run a computation "
        "on the GPU"),
    Option("--bench", SUBJECT, "also measure the GPUs, as envcheck bench --quick does"),
    Option("--force", SUBJECT, "with --deep and --bench: also use a busy GPU"),
    Option("--script", "collect",
        "print one Python file (standard library, Python 3.8 or newer) that prints the facts of the machine that "
        "runs it, for envcheck check --from -; it takes --python, --scope and --timeout",
        {"action": "store_true", "required": True}),
    Option("file FILE", "explain", "file with the text, or - for stdin", {"nargs": "?", "default": "-"}),
    Option("--here", "explain", "add this machine's own facts"),
    Option("-o --output FILE", "init",
        "file to write, or - for stdout (default: envcheck.toml); an existing file is not changed"),
    Option("--python PATH", "init", "environment to describe", MANY),
    Option("--from REPORT", "init", "describe the machine of a saved JSON report", {"dest": "saved"},
        excludes="--python",
        because="{} is an environment of this machine, and --from reads a saved report: use one of them"),
    Option("--host ADDRESS", "serve", "127.0.0.1 (default), ::1 or localhost", {"default": "127.0.0.1"}),
    Option("--port N", "serve", "port to listen on; 0 selects a free one (default: 8000)",
        {"type": number("a port", 0, 65535), "default": 8000}),
    Option("--allow-deep", "mcp", "let the agent ask for check --deep, which starts the environment's interpreter"),
    Option("--python PATH", APPLICATION, "interpreter or environment folder to check", MANY),
    Option("--from REPORT", APPLICATION, "open a saved JSON report, or a fleet report (jsonl)", {"dest": "saved"}),
    # What is measured.
    Option("--quick", MEASURING, "measure the main figures, in about ten seconds (default)", one_of="length"),
    Option("--full", MEASURING, "measure everything, in a few minutes", one_of="length"),
    Option("--gpu I,J", MEASURING, "measure only these GPUs, by nvidia-smi's index", {"type": indices, "dest": "gpus"}),
    Option("--only NAME", MEASURING,
        "measure only these quantities or groups: gemm,device-memory,cudnn … (repeatable)",
        {"type": quantities, **MANY}),
    Option("--frameworks", MEASURING,
        "also import the environment's frameworks and measure them, beside the libraries that they use"),
    Option("--list", MEASURING, "list what can be measured, and measure nothing"),
    Option("--force", MEASURING, "also measure a busy GPU; its figures are not rated"),
    Option("--python PATH", MEASURING, "environment whose CUDA libraries to use", MANY),
    Option("--baseline FILE", f"{SUBJECT}; {MEASURING}; {APPLICATION}",
        "compare the figures with a file of --save-baseline, a JSON report, or a folder of these (repeatable)", MANY),
    Option("--save-baseline FILE", MEASURING, "save the figures for later comparison"),
    Option("--timeout S", SUBJECT,
        "time limit of the whole run in seconds; the report then shows what was found (nothing, where reading a "
        "plan takes longer)"),
    Option("--timeout S", MEASURING, "time limit of the whole run in seconds; the report then shows what was found"),
    # How it is judged.
    Option("--target NAME", f"check: for other machines; {PLAN_INPUT}",
        "judge for a machine that the configuration names, for all of them (all), or for those of a TOML file "
        "with the keys of --assume (repeatable; the exit status is the worst); none: for this machine, whatever the "
        "configuration's targets are", {"type": path, **MANY}),
    Option("--scope S", JUDGING, "node, container, env, or several with commas (default: all)",
        {"type": scopes, "dest": "scopes", "default": frozenset(SCOPES)}, key="Scopes to check (default: all)."),
    Option("--assume EXPR,…", f"{JUDGING}; {PLAN_INPUT}",
        "check as if this were installed: gpu==H100,driver==550.54.14,os==linux; or given to a container or job: "
        "shm==64M,cpus==2,limit.memlock==64K; with a GPU or driver assumed, no other fact about this machine's GPUs "
        "is used", {"type": assumptions, **MANY}),
    Option("--require EXPR", JUDGING,
        "fail unless this holds: 'torch>=2.4', 'gpus>=8', 'gpu==H100|H200', 'gpu-memory>=79GiB'",
        {"type": requirements, **MANY}, key='Components that must be present: "torch>=2.4", "driver>=550".'),
    Option("components NAME==VERSION", "matrix check",
        "driver, gpu, cuda, nvcc, python, os, jetpack … or a distribution by its PyPI name: "
        "torch==2.5.1+cu124 gpu=='RTX 5090' driver==550.54.14", {"nargs": "+"}),
    Option("component NAME[==VERSION]", "matrix show",
        "torch==2.5.1, gpu==H200, cuda, driver==565.57.01 …; without one, list the known components", {"nargs": "?"}),
    Option("--matrix DIR", f"{JUDGING}; {PLAN_INPUT}; {MEASURING}; {APPLICATION}; matrix check, matrix show, node",
        "folder of TOML rows to add to the matrix; a row replaces the one with the same id "
        "(the folder envcheck/matrix in the configuration folder is read first)"),
    Option("--only RULE", JUDGING, "run only this rule (repeatable)", MANY, key="Run only these rules."),
    Option("--skip RULE", JUDGING, "skip this rule (repeatable)", MANY, key="Skip these rules."),
    Option("--fail-on", f"{JUDGING}; {MEASURING}", "lowest status that sets exit status 1 (default: fail)",
        {"choices": ("fail", "warn"), "default": "fail"}, key="Lowest status that sets exit status 1 (default: fail)."),
    Option("--accept REPORT", JUDGING,
        "set aside what this JSON report found already, by target: only what is new decides"),
    Option("--allow-unknown", JUDGING,
        "exit with 0 where nothing fails and no verdict can be given; the headline says so",
        key="Whether no verdict sets exit status 0 where nothing fails (default: false)."),
    # Many nodes.
    Option("--fleet", NODES,
        "measure NCCL's all-reduce between nodes, in groups of them, and name the slow ones (within --timeout: 600 s)",
        one_of="role", excludes=f"{_OF_ONE_MACHINE} --gpu --force --python",
        because="--fleet takes no {}: put a node's own options into --command"),
    Option("--fleet-node", NODES, "take part as a node: what --fleet starts on each of them", one_of="role",
        excludes=_OF_ONE_MACHINE, because="--fleet-node takes no {}"),
    Option("--reports PLACE", SOURCE,
        "read saved JSON reports: a folder, a tar file, a quoted pattern, or - for reports one after another or a tar "
        "file on stdin", one_of="engine"),
    Option("--hosts FILE", f"{SOURCE}; {NODES}", "ask each host of FILE by ssh, one per line (- is stdin)",
        one_of="engine", needs=_TOGETHER),
    Option("--slurm OPTIONS", f"{SOURCE}; {NODES}",
        "ask each node by srun, with these options of srun: --slurm='-p gpu -A project'", {"nargs": "?", "const": ""},
        one_of="engine", needs=_TOGETHER),
    Option("--ray ADDRESS", f"{SOURCE}; {NODES}", "ask each node of a Ray cluster: auto, or host:port",
        one_of="engine", needs=_TOGETHER),
    Option("--kubernetes IMAGE", SOURCE, "ask each node by a Job of kubectl with an image that has python3",
        one_of="engine"),
    Option("--command COMMAND", NODES, "what each node runs to take part (default: envcheck bench --fleet-node)",
        needs=_TOGETHER),
    Option("--command COMMAND", ENGINE,
        "what each node runs to print its report, as in --command 'envcheck check --bench --json' "
        "(default: the collector, for which the nodes need nothing but python3)",
        needs="--hosts --slurm --ray --kubernetes"),
    Option("--selector LABELS", ENGINE, "with --kubernetes: only nodes with these labels", needs="--kubernetes"),
    Option("--timeout S", ENGINE,
        "seconds for all nodes together, after which those without an answer are listed (default: 120)"),
    Option("--node-timeout S", ENGINE,
        "seconds after which a node is no longer waited for (default: 30 for the collector over ssh, else all of "
        "--timeout)", needs="--hosts --slurm --ray --kubernetes"),
    Option("--jobs N", ENGINE, "nodes to ask at the same time (default: 128)", {"type": number("a number", 1, 10_000)}),
    Option("--save DIR", ENGINE, "keep the report of each node in this folder"),
    Option("--expect-nodes NODES", COMPARING,
        "fail if one of these sends nothing: names and ranges, as in gpu-[001-128], or a file of them (a path "
        "with a slash) (repeatable)", MANY,
        key="Nodes that envcheck fleet must hear from: gpu-[001-128], or a file of names (a path with a slash)."),
    Option("--since FILE", COMPARING, "also show what changed since a fleet report saved as jsonl"),
    Option("--store FILE", f"{COMPARING}; fleet history",
        "DuckDB file that keeps what fleet finds: which nodes became slower and since when, what comes and goes"),
    Option("--store-days N", COMPARING, "days after which the store deletes what it keeps (default: 90)",
        {"type": number("a number of days", 8, 3650)}, needs="--store"),
    Option("node NODE", "fleet history", "name of the node"),
    Option("--serials", COMPARING, "name the serial numbers of slow GPUs"),
    Option("--fail-on", COMPARING,
        "lowest status that sets exit status 1; differences and slow GPUs warn, GPUs below 85 %% of the median fail "
        "(default: fail)", {"choices": ("fail", "warn"), "default": "fail"}),
    Option("--on-finding COMMAND", ON_FINDING,
        "run this for each node that fails, and failed by the same rule in the report of --since: "
        "'scontrol update nodename={node} state=drain reason={reason}', 'kubectl cordon {node}'", needs="--since"),
    Option("--on-finding-limit PERCENT", ON_FINDING,
        "run it for none if it would run for more than this share of the nodes, and more than one (default: 2)",
        {"type": number("a percentage", 1, 100)}, needs="--on-finding"),
    Option("--dry-run", ON_FINDING, "only say what would run", needs="--on-finding"),
    # One node of many.
    Option("--look", "node", "examine the machine, and keep what was found; a systemd timer runs this"),
    Option("--max-age AGE", "node", "maximum age of what is reported: 90s, 10m, 2h, 1d (default: 10m)",
        {"default": "10m"}, excludes="--look",
        because="--max-age is for what was found before, and {} looks now: use one of them"),
    Option("--runtime-dir DIR", "node",
        "private folder that keeps it (default: /run/envcheck for root, else envcheck in XDG_RUNTIME_DIR)"),
    Option("--format", "node", "output format (default: text)",
        {"choices": ("text", "slurm-reason", "node-problem-detector"), "default": "text"}),
    # The configuration.
    Option("--config FILE", CONFIGURATION,
        "configuration to use (default: the nearest envcheck.toml, or pyproject.toml with [tool.envcheck], "
        "from the working folder up; it must be yours or root's, and nobody else may write it)",
        one_of="configuration"),
    Option("--no-config", CONFIGURATION, "use no configuration", one_of="configuration"),
    Option("--json", "config", "print it as JSON"),
    # What is printed and written.
    Option("files REPORT", "diff", "saved JSON reports, compared with the first; - is stdin", {"nargs": "+"}),
    Option("--base REPORT", "diff",
        "earlier report, or a folder of them, to compare all REPORTs with (repeatable): figures are compared "
        "with all of these runs, everything else with the newest", MANY),
    Option("name NAME", "rule", "name of a rule, or a word to search for (default: list all)", {"nargs": "?"}),
    Option("--format", "rule", "output format (default: text)",
        {"choices": ("text", "json", "markdown"), "default": "text"}),
    Option("shell SHELL", "completion", "bash, zsh or fish", {"choices": ("bash", "zsh", "fish")}),
    Option("name NAME", "schema", "report (default), fit, plan, diff, fleet, fleet-bench, fleet-history or config",
        {"nargs": "?", "default": "report",
         "choices": ("report", "fit", "plan", "diff", "fleet", "fleet-bench", "fleet-history", "config")}),
    Option("--matrix DIR", "matrix refresh", "folder of rows to change (default: the checkout's matrix)"),
    Option("--only NAME", "matrix refresh", "refresh only this distribution (repeatable)", MANY),
    Option("--online", "matrix status", "also ask the index for newer rows (needs the extra 'refresh')"),
    Option("--index-url URL", "matrix status", _INDEX, needs="--online"),
    Option("--index-url URL", "matrix update", _INDEX, one_of="where"),
    Option("--index-url URL", "matrix refresh", _INDEX),
    Option("--from WHEEL", "matrix update", "read this file instead of asking an index", {"dest": "from_file"},
        one_of="where", needs="--sha256"),
    Option("--sha256 HASH", "matrix update", "expected SHA-256 of that file, from where it was published",
        needs="--from"),
    Option("--back", "matrix update", "remove the newest rows that were brought", one_of="where"),
    Option("--dry-run", "matrix refresh", "show what would change, without writing"),
    *_formats(REPORT, FORMATS),
    *_formats("fleet: output", ("text", "jsonl", "html", "prometheus"), "jsonl"),
    *_formats("fleet history", ("text", "json")),
    *_formats(ANSWER, ("text", "json")),
    *_formats(PLAN_OUTPUT, ("text", "json", "requirements", "pyproject", "dockerfile", "conda", "pixi")),
    Option("--color", f"{REPORT}; fleet: output; fleet history; {ANSWER}; {PLAN_OUTPUT}",
        "use colors (default: auto, which respects NO_COLOR, FORCE_COLOR, CLICOLOR and CLICOLOR_FORCE)",
        {"choices": ("auto", "always", "never"), "default": "auto"}),
    Option("--ascii", f"{REPORT}; fleet: output; fleet history; {ANSWER}; {PLAN_OUTPUT}; {APPLICATION}",
        "use ASCII characters only"),
    Option("--redact", REPORT,
        f"{_REDACT} (default: in formats to share, such as markdown and html; secrets are always masked)", SWITCH),
    Option("-o --output FORMAT:FILE", REPORT, "also write the report to a file, as in json:report.json (repeatable)",
        MANY, key='Reports to write, "FORMAT:FILE"; FILE is in the folder of the configuration or below.'),
    Option("-o --output FORMAT:FILE", "fleet: output",
        "also write the fleet to a file, as in jsonl:fleet.jsonl (repeatable)", MANY),
    Option("-v --verbose", REPORT, "show every check with its evidence, fixes and sources", one_of="detail"),
    Option("-q --quiet", REPORT, "print only the verdict and its cause, without progress", one_of="detail"),
    Option("-v --verbose", "fleet: output", "show every row", one_of="detail"),
    Option("-q --quiet", "fleet: output", "print only the verdict, without progress", one_of="detail"),
    Option("-v --verbose", "diff: output", "also show passed checks that were added or removed, and unchanged figures"),
    Option("-q --quiet", "diff: output", "do not list what was not compared"),
    Option("--redact", "diff: output",
        f"{_REDACT} (default: no; redacted reports can be compared with others)", SWITCH),
    Option("-q --quiet", "matrix refresh", "no progress on stderr"),
)  # fmt: skip


def variable(name: str) -> str:
    return "ENVCHECK_" + name.replace("-", "_").upper()


def options_of(verb: str) -> list[Option]:
    return [option for option in OPTIONS if any(name == verb for name, _ in option.places)]


KEYS = {option.name: option for option in OPTIONS if option.key}
"""The options that a configuration can set, by their key. Those of other verbs that are called alike are not meant."""


def verbs_below(verb: str) -> dict[str, Verb]:
    """The verbs of ``verb``, an empty name for the program, by their last word."""
    names = [(each.name.rpartition(" "), each) for each in VERBS if each.name]
    return {name: each for (above, _, name), each in names if above == verb}
