"""The command line's grammar: verbs, options, and an ``ENVCHECK_…`` variable for every option."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NoReturn

from envcheck import __version__
from envcheck.cli.option_values import count, indices, path, port, read_variables, refuse_unknown, scopes, seconds
from envcheck.errors import UsageError
from envcheck.model.components import Component, parse_components
from envcheck.report import FORMATS

_OF_BENCH = ("fail_on", "format", "output")
"""What ``bench`` takes from a configuration's options."""


class _Append(argparse._AppendAction):  # noqa: SLF001 - argparse has no public name for it
    """Values on the command line replace those of the variable; they are not appended to them."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        option_string: str | None = None,
    ) -> None:
        if getattr(namespace, self.dest) is self.default:
            setattr(namespace, self.dest, None)
        super().__call__(parser, namespace, values, option_string)


class _Help(argparse.HelpFormatter):
    """Help that breaks no line within a name: it could not be copied."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        import textwrap

        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)


class Parser(argparse.ArgumentParser):
    """A parser that reports a wrong command line as a UsageError and takes no abbreviated option."""

    variables: Mapping[str, str] = MappingProxyType({})
    """Defaults of options that are not given."""
    settings: Mapping[str, Any] = MappingProxyType({})
    """Defaults by destination, from a configuration; ``variables`` outrank them."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        kwargs["allow_abbrev"] = False
        kwargs.setdefault("formatter_class", _Help)
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]  # argparse's own signature
        self.register("action", "append", _Append)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Read defaults from the variables now: a value that only suits another verb must not stop this one."""
        self.set_defaults(**self.settings)
        read_variables(self, self.variables)
        return super().parse_known_args(args, namespace)

    def format_help(self) -> str:
        """The help page, which ends with examples."""
        from envcheck.cli.examples import help_end

        own, self.epilog = self.epilog, help_end(self.prog, self.epilog)
        self.formatter_class = argparse.RawDescriptionHelpFormatter
        try:
            return super().format_help()
        finally:
            self.epilog = own

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Offer a known name for a misspelled one."""
        if action.choices is not None and value not in action.choices:
            from envcheck.text.wrap import did_you_mean

            known = tuple(map(str, action.choices))
            near = did_you_mean(str(value), known) or f": choose from {', '.join(known)}"
            raise argparse.ArgumentError(action, f"invalid choice {value!r}{near}")

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")


def parse(
    argv: Sequence[str], variables: Mapping[str, str], settings: Mapping[str, Any] = MappingProxyType({})
) -> argparse.Namespace:
    """Parse a command line; ``variables`` hold the defaults of options that are not given.

    ``settings`` are defaults of ``check`` and ``bench`` by destination, which the variables outrank.
    """
    parser = _parser(variables, settings)
    refuse_unknown(parser, variables)
    return parser.parse_args(argv or ["check"])


def grammar() -> argparse.ArgumentParser:
    """The parser without defaults of variables, for what describes the command line."""
    return _parser({}, {})


def _parser(variables: Mapping[str, str], settings: Mapping[str, Any]) -> Parser:
    parser = Parser(
        prog="envcheck",
        description="Shows what is installed on this GPU machine, whether it fits together, and how to fix it.",
        epilog="Exit status: 0 no finding at or above --fail-on, 1 at least one, 2 wrong usage, 3 no verdict, "
        "4 internal error, 130 interrupted. ENVCHECK_SOME_OPTION sets the option --some-option.",
    )
    parser.add_argument("-V", "--version", action="store_true", help="print the versions of envcheck and its matrix")
    add = _verbs(parser, "verb")
    add(
        "check",
        *(
            _add_subject_options,
            _add_target_option,
            _add_judging_options,
            _add_configuration_options,
            _add_output_options,
        ),
        help="check this machine (default)",
        variables=variables,
        settings=settings,
    )
    add(
        "bench",
        *(_add_bench_options, _add_nodes_options, _add_configuration_options, _add_output_options),
        help="measure the GPUs and their links, and compare the figures with the chip's peaks",
        variables=variables,
        settings={name: value for name, value in settings.items() if name in _OF_BENCH},
    )
    add(
        "tui",
        _add_tui_options,
        help="open the terminal application (envcheck alone opens it on a terminal)",
        variables=variables,
    )
    add(
        "serve",
        _add_serve_options,
        help="open the terminal application in a browser on this machine (needs the extra 'serve')",
        variables=variables,
    )
    add(
        "explain",
        *(_add_text_options, _add_judging_options, _add_output_options),
        help="diagnose pasted text: output of torch's collect_env or nvidia-smi, or an error",
        variables=variables,
    )
    add(
        "fleet",
        *(_add_engine_options, _add_fleet_options, _add_fleet_output),
        help="compare many nodes, and show which of them is different or slow (needs the extra 'fleet')",
        epilog="Exit status: 0 nothing at or above --fail-on, 1 a node or GPU at or above it, 2 wrong usage, "
        "3 a node without an answer or verdict, 130 interrupted (results so far are shown).",
        variables=variables,
    )
    add(
        "collect",
        _add_collect_options,
        help="print a collector for machines where nothing can be installed",
    )
    add("completion", _add_shell, help="print the completion of a shell: bash, zsh or fish")
    add("rule", _add_rule_name, help="explain a rule: what it checks, why it matters, how to fix it, its sources")
    add(
        "diff",
        _add_diff_options,
        help="show what changed between saved reports",
        epilog="Exit status: 0 no difference in what both reports know, 1 a difference, 2 wrong usage.",
        variables=variables,
    )
    add(
        "config",
        *(_add_configuration_options, _add_config_page),
        help="show the configuration in effect here, and where each value comes from",
        epilog="Exit status: 0 a configuration is in effect, 2 none was found or it is wrong.",
        variables=variables,
    )
    add(
        "init",
        _add_init_options,
        help="write an envcheck.toml that requires what this machine has",
        variables=variables,
    )
    add("schema", _add_schema_name, help="print the JSON Schema of an output, or of the configuration")
    add(
        "matrix",
        partial(_add_matrix_verbs, variables=variables),
        help="answer compatibility questions without examining a machine",
    )
    return parser


def _verbs(parser: Parser, name: str, *, required: bool = False) -> Callable[..., None]:
    """A function that adds a verb: its name, functions that add its options, its variables, argparse's arguments."""
    verbs = parser.add_subparsers(dest=name, metavar="VERB", required=required)

    def add(
        verb: str,
        *fills: Callable[[Parser], object],
        variables: Mapping[str, str] = parser.variables,
        settings: Mapping[str, Any] = parser.settings,
        **arguments: Any,
    ) -> None:
        made = verbs.add_parser(verb, **arguments)
        made.variables, made.settings = variables, settings
        for fill in fills:
            fill(made)

    return add


def _add_matrix_verbs(matrix: Parser, variables: Mapping[str, str]) -> None:
    add = _verbs(matrix, "matrix_verb", required=True)
    add(
        "check",
        *(_add_components, _add_overlay_option, _add_plain_page_options),
        help="check whether components fit together",
        epilog="Exit status: 0 compatible, 1 incompatible, 2 wrong usage, 3 unknown.",
        variables=variables,
    )
    add(
        "show",
        *(_add_component, _add_overlay_option, _add_plain_page_options),
        help="show what the matrix knows about a component",
        epilog="Exit status: 0 known, 2 wrong usage, 3 unknown.",
        variables=variables,
    )
    add(
        "refresh",
        _add_refresh_options,
        help="regenerate rows from the wheels on a package index (needs the extra 'refresh' and the network)",
        epilog="Exit status: 0 done; 2 wrong usage, no index or an unreadable answer, and nothing was changed.",
    )


def _add_components(verb: Parser) -> None:
    verb.add_argument(
        "components",
        nargs="+",
        metavar="NAME==VERSION",
        help="driver, gpu, cuda, nvcc, python, os, jetpack … or a distribution by its PyPI name: "
        "torch==2.5.1+cu124 gpu=='RTX 5090' driver==550.54.14",
    )


def _add_component(verb: Parser) -> None:
    verb.add_argument(
        "component",
        nargs="?",
        metavar="NAME[==VERSION]",
        help="torch==2.5.1, gpu==H200, cuda, driver==565.57.01 …; without one, list the known components",
    )


def _add_refresh_options(refresh: Parser) -> None:
    """No ``ENVCHECK_…`` variable counts here: a variable must not choose what is written."""
    refresh.add_argument(
        "--matrix", type=path, metavar="DIR", help="folder of rows to change (default: the checkout's matrix)"
    )
    refresh.add_argument("--only", action="append", metavar="NAME", help="refresh only this distribution (repeatable)")
    refresh.add_argument(
        "--index-url", metavar="URL", help="index to ask (default: PIP_INDEX_URL, UV_DEFAULT_INDEX, UV_INDEX_URL)"
    )
    refresh.add_argument("--dry-run", action="store_true", help="show what would change, without writing")
    refresh.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")


def _add_text_options(verb: Parser) -> None:
    verb.add_argument("file", nargs="?", default="-", metavar="FILE", help="file with the text, or - for stdin")
    verb.add_argument("--here", action="store_true", help="add this machine's own facts")


def _add_rule_name(verb: Parser) -> None:
    verb.add_argument(
        "name", nargs="?", metavar="NAME", help="name of a rule, or a word to search for (default: list all)"
    )
    verb.add_argument(
        "--format", choices=("text", "json", "markdown"), default="text", help="output format (default: text)"
    )


def _add_shell(verb: Parser) -> None:
    verb.add_argument("shell", choices=("bash", "zsh", "fish"), metavar="SHELL", help="bash, zsh or fish")


def _add_schema_name(verb: Parser) -> None:
    verb.add_argument(
        "name",
        nargs="?",
        default="report",
        metavar="NAME",
        help="report (default), fit, diff, fleet, fleet-bench or config",
    )


def _add_configuration_options(verb: Parser) -> None:
    group = verb.add_argument_group("configuration")
    chosen = group.add_mutually_exclusive_group()
    chosen.add_argument(
        "--config",
        type=path,
        metavar="FILE",
        help="configuration to use (default: the nearest envcheck.toml, or pyproject.toml with [tool.envcheck], "
        "from the working folder up; it must be yours or root's, and nobody else may write it)",
    )
    chosen.add_argument("--no-config", action="store_true", help="use no configuration")


def _add_config_page(verb: Parser) -> None:
    verb.add_argument("--json", action="store_true", help="print it as JSON")


def _add_init_options(verb: Parser) -> None:
    verb.add_argument(
        "-o",
        "--output",
        type=path,
        metavar="FILE",
        help="file to write, or - for stdout (default: envcheck.toml); an existing file is not changed",
    )
    verb.add_argument("--python", action="append", type=path, metavar="PATH", help="environment to describe")
    verb.add_argument(
        "--from", dest="saved", type=path, metavar="REPORT", help="describe the machine of a saved JSON report"
    )


def _add_diff_options(verb: Parser) -> None:
    verb.add_argument(
        "files", nargs="+", metavar="REPORT", help="saved JSON reports, compared with the first; - is stdin"
    )
    verb.add_argument(
        "--base",
        action="append",
        type=path,
        metavar="REPORT",
        help="earlier report, or a folder of them, to compare all REPORTs with (repeatable): figures are compared "
        "with all of these runs, everything else with the newest",
    )
    page = _add_plain_page_options(verb)
    page.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="also show passed checks that were added or removed, and unchanged figures",
    )
    page.add_argument("-q", "--quiet", action="store_true", help="do not list what was not compared")
    _add_redact_option(page, "default: no; redacted reports can be compared with others")


def _add_plain_page_options(verb: Parser) -> argparse._ArgumentGroup:
    return _add_page_options(verb, ("text", "json"))


def _add_overlay_option(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--matrix",
        type=path,
        metavar="DIR",
        help="folder of TOML rows to add to the matrix; a row replaces the one with the same id "
        "(the folder envcheck/matrix in the configuration folder is read first)",
    )


def _add_subject_options(verb: argparse.ArgumentParser) -> None:
    group = verb.add_argument_group("what to check")
    group.add_argument(
        "--python",
        action="append",
        type=path,
        metavar="PATH",
        help="interpreter or environment folder to check (repeatable; the verdict is about the first) "
        "(default: VIRTUAL_ENV, CONDA_PREFIX or UV_PROJECT_ENVIRONMENT, ./.venv, python3 on PATH, envcheck's own)",
    )
    group.add_argument(
        "--all-envs",
        action="store_true",
        help="also scan for environments (working folder, conda, pyenv, uv, /opt, PATH …)",
    )
    group.add_argument(
        "--plan",
        action="append",
        type=path,
        metavar="FILE",
        help="check what FILE would install instead of an environment: a requirements file, pyproject.toml, "
        "pylock.toml, uv.lock, poetry.lock, Pipfile.lock, environment.yml or a Dockerfile (repeatable; --assume names "
        "the machine)",
    )
    group.add_argument(
        "--from",
        dest="saved",
        type=path,
        metavar="REPORT",
        help="check the facts of a saved JSON report instead of this machine (- is stdin)",
    )
    group.add_argument(
        "--verify",
        action="store_true",
        help="also hash the files of the frameworks and of their dependencies, and list those that changed since "
        "installation (--deep includes this)",
    )
    group.add_argument(
        "--deep",
        action="store_true",
        help="also start the environment's interpreter, import each framework in a separate process and run a "
        "computation on the GPU",
    )
    group.add_argument("--bench", action="store_true", help="also measure the GPUs, as envcheck bench --quick does")
    group.add_argument("--force", action="store_true", help="with --deep and --bench: also use a busy GPU")
    _add_baseline_option(group)
    group.add_argument(
        "--timeout",
        type=seconds,
        metavar="S",
        help="time limit of the whole run in seconds; the report then shows what was found (nothing, where reading a "
        "plan takes longer)",
    )


def _add_target_option(verb: argparse.ArgumentParser) -> None:
    verb.add_argument_group("for other machines").add_argument(
        "--target",
        action="append",
        type=path,
        metavar="NAME",
        help="judge for a machine that the configuration names, for all of them (all), or for those of a TOML file "
        "with the words of --assume (repeatable; the exit status is the worst); none: for this machine, whatever the "
        "configuration's targets are",
    )


def _add_tui_options(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--python", action="append", type=path, metavar="PATH", help="interpreter or environment folder to check"
    )
    verb.add_argument(
        "--from", dest="saved", type=path, metavar="REPORT", help="open a saved JSON report, or a fleet report (jsonl)"
    )
    _add_baseline_option(verb)
    _add_overlay_option(verb)
    verb.add_argument("--ascii", action="store_true", help="use ASCII characters only")


def _add_serve_options(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="127.0.0.1 (default), ::1 or localhost")
    verb.add_argument(
        "--port", type=port, default=8000, metavar="N", help="port to listen on; 0 selects a free one (default: 8000)"
    )
    _add_tui_options(verb)


def _add_collect_options(verb: Parser) -> None:
    verb.add_argument(
        "--script",
        action="store_true",
        required=True,
        help="print one Python file (standard library, Python 3.8 or newer) that prints the facts of the machine that "
        "runs it, for envcheck check --from -; it takes --python, --scope and --timeout",
    )


def _add_launchers(group: argparse._ActionsContainer) -> None:
    """What starts a program on each node."""
    group.add_argument(
        "--hosts", type=path, metavar="FILE", help="ask each host of FILE by ssh, one a line (- is stdin)"
    )
    group.add_argument(
        "--slurm",
        nargs="?",
        const="",
        metavar="OPTIONS",
        help="ask each node by srun, with these options of srun: --slurm='-p gpu -A project'",
    )
    group.add_argument("--ray", metavar="ADDRESS", help="ask each node of a Ray cluster: auto, or host:port")


def _add_engine_options(verb: Parser) -> None:
    """What brings the reports; one of them has to be given."""
    group = verb.add_argument_group("where the reports come from").add_mutually_exclusive_group()
    group.add_argument(
        "--reports",
        type=path,
        metavar="PLACE",
        help="read saved JSON reports: a folder, a quoted pattern, or - for reports one after another on stdin",
    )
    _add_launchers(group)
    group.add_argument(
        "--kubernetes", metavar="IMAGE", help="ask each node by a Job of kubectl with an image that has python3"
    )
    more = verb.add_argument_group("how to ask")
    more.add_argument(
        "--command",
        metavar="COMMAND",
        help="what each node runs to print its report, as in --command 'envcheck check --bench --json' "
        "(default: the collector, for which the nodes need nothing but python3)",
    )
    more.add_argument("--selector", metavar="LABELS", help="with --kubernetes: only nodes with these labels")
    more.add_argument(
        "--timeout",
        type=seconds,
        metavar="S",
        help="seconds for all nodes together, after which those without an answer are listed (default: 120)",
    )
    more.add_argument("--jobs", type=count, metavar="N", help="nodes to ask at the same time (default: 64)")
    more.add_argument("--save", type=path, metavar="DIR", help="keep the report of each node in this folder")


def _add_fleet_options(verb: Parser) -> None:
    group = verb.add_argument_group("how to compare")
    group.add_argument(
        "--since", type=path, metavar="FILE", help="also show what changed since a fleet report saved as jsonl"
    )
    group.add_argument("--serials", action="store_true", help="name the serial numbers of slow GPUs")
    _add_fail_on(group, "; differences and slow GPUs warn, GPUs below 85 %% of the median fail")


def _add_fail_on(group: argparse._ActionsContainer, more: str = "") -> None:
    told = f"lowest status that sets exit status 1{more} (default: fail)"
    group.add_argument("--fail-on", choices=("fail", "warn"), default="fail", help=told)


def _add_fleet_output(verb: Parser) -> None:
    group = _add_page_options(verb, ("text", "jsonl", "html"))
    group.add_argument(
        "-o",
        "--output",
        action="append",
        metavar="FORMAT:FILE",
        help="also write the fleet to a file, as in jsonl:fleet.jsonl (repeatable)",
    )
    detail = group.add_mutually_exclusive_group()
    detail.add_argument("-v", "--verbose", action="store_true", help="show every row")
    detail.add_argument("-q", "--quiet", action="store_true", help="print only the verdict, without progress")


def _add_bench_options(verb: argparse.ArgumentParser) -> None:
    group = verb.add_argument_group("what to measure")
    length = group.add_mutually_exclusive_group()
    length.add_argument("--quick", action="store_true", help="measure the main figures, in about ten seconds (default)")
    length.add_argument("--full", action="store_true", help="measure everything, in a few minutes")
    group.add_argument("--gpu", type=indices, metavar="I,J", help="measure only these GPUs, by nvidia-smi's index")
    group.add_argument(
        "--only",
        action="append",
        metavar="NAME",
        help="measure only these quantities or groups: gemm,device-memory,cudnn … (repeatable)",
    )
    group.add_argument(
        "--frameworks",
        action="store_true",
        help="also import the environment's frameworks and measure them, beside the libraries that they use",
    )
    group.add_argument("--list", action="store_true", help="list what can be measured, and measure nothing")
    group.add_argument("--force", action="store_true", help="also measure a busy GPU; its figures are not rated")
    group.add_argument(
        "--python", action="append", type=path, metavar="PATH", help="environment whose CUDA libraries to use"
    )
    _add_baseline_option(group)
    group.add_argument("--save-baseline", type=path, metavar="FILE", help="save the figures for later comparison")
    group.add_argument(
        "--timeout",
        type=seconds,
        metavar="S",
        help="time limit of the whole run in seconds; the report then shows what was found",
    )
    _add_overlay_option(group)
    _add_fail_on(group)


def _add_nodes_options(verb: Parser) -> None:
    group = verb.add_argument_group("between nodes")
    role = group.add_mutually_exclusive_group()
    role.add_argument(
        "--fleet",
        action="store_true",
        help="measure NCCL's all-reduce between nodes, in groups of them, and name the slow ones (within --timeout: "
        "600 s)",
    )
    role.add_argument(
        "--fleet-node", action="store_true", help="take part as a node: what --fleet starts on each of them"
    )
    _add_launchers(group.add_mutually_exclusive_group())
    group.add_argument(
        "--command",
        metavar="COMMAND",
        help="what each node runs to take part (default: envcheck bench --fleet-node)",
    )


def _add_baseline_option(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--baseline",
        action="append",
        type=path,
        metavar="FILE",
        help="compare the figures with a file of --save-baseline, a JSON report, or a folder of these (repeatable)",
    )


def _add_judging_options(verb: argparse.ArgumentParser) -> None:
    group = verb.add_argument_group("how to check it")
    group.add_argument(
        "--scope", type=scopes, metavar="S", help="node, container, env, or several with commas (default: all)"
    )
    group.add_argument(
        "--assume",
        action="append",
        metavar="EXPR,…",
        help="check as if this were installed: gpu==H100,driver==550.54.14,os==linux; with a GPU or driver assumed, "
        "no other fact of this machine's GPUs counts",
    )
    group.add_argument(
        "--require",
        action="append",
        metavar="EXPR",
        help="fail unless this holds: 'torch>=2.4', 'gpus>=8', 'gpu==H100|H200', 'gpu-memory>=79GiB'",
    )
    _add_overlay_option(group)
    group.add_argument("--only", action="append", metavar="RULE", help="run only this rule (repeatable)")
    group.add_argument("--skip", action="append", metavar="RULE", help="skip this rule (repeatable)")
    _add_fail_on(group)


def _add_output_options(verb: argparse.ArgumentParser) -> None:
    group = _add_page_options(verb, FORMATS)
    _add_redact_option(group, "default: in formats to share, such as markdown and html; secrets are always masked")
    group.add_argument(
        "-o",
        "--output",
        action="append",
        metavar="FORMAT:FILE",
        help="also write the report to a file, as in json:report.json (repeatable)",
    )
    detail = group.add_mutually_exclusive_group()
    detail.add_argument(
        "-v", "--verbose", action="store_true", help="show every check with its evidence, fixes and sources"
    )
    detail.add_argument(
        "-q", "--quiet", action="store_true", help="print only the verdict and its cause, without progress"
    )


def _add_redact_option(group: argparse._ActionsContainer, default: str) -> None:
    group.add_argument(
        "--redact",
        action=argparse.BooleanOptionalAction,
        help="replace hosts, users, home folders, network addresses, GPU UUIDs and serial numbers by pseudonyms "
        f"({default})",
    )


def _add_page_options(verb: argparse.ArgumentParser, formats: Collection[str]) -> argparse._ArgumentGroup:
    group = verb.add_argument_group("output")
    group.add_argument("--format", choices=formats, metavar="FORMAT", help="output format: %(choices)s (default: text)")
    json = "jsonl" if "jsonl" in formats else "json"
    group.add_argument("--json", action="store_const", const=json, dest="format", help=f"the same as --format {json}")
    group.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="use colors (default: auto, which respects NO_COLOR and FORCE_COLOR)",
    )
    group.add_argument("--ascii", action="store_true", help="use ASCII characters only")
    return group


def components(texts: Sequence[str] | None, option: str) -> tuple[Component, ...]:
    found: list[Component] = []
    for text in texts or ():
        try:
            found.extend(parse_components(text))
        except UsageError as error:
            raise UsageError(f"{option}: {error}") from None
    return tuple(found)


def versions(matrix: str) -> str:
    return f"envcheck {__version__} (matrix read {matrix})"
