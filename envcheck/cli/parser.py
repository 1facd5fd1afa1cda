"""The parser of the command line, made from the table of options, and an ``ENVCHECK_…`` variable for every option."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NoReturn

from envcheck.config.options import HEADINGS, OPTIONS, VERBS, options_of, variable
from envcheck.config.values import flattened
from envcheck.errors import UsageError
from envcheck.text.lazy import lazy_pattern
from envcheck.text.wrap import did_you_mean

_COLUMNS = 80
_PREFIX = "ENVCHECK_"
_LIST_SEPARATOR = ";"  # Separates the values of a repeatable option in its variable
_OTHER_VARIABLES = lazy_pattern(
    "CHILD|DEBUG|DOCS_URL|SECONDS|SYS"
    "|FUZZ_SECONDS|LAB_WHEELS|NCCL|NVRTC|OTHER_NCCL|REQUIRE_PREPARED|REWRITE_GOLDEN|SARIF_SCHEMA|THOROUGH"
    r"|WRITE_COST|WRITE_SAMPLES|WRITE_SCREENS|TEST(?:_\w+)?"
)
"""Those that set no option: of the program, of its documented scripts; then of its build and its tests."""
_OF_A_SERVICE = lazy_pattern(r"(?:\w+_)?(?:SERVICE_(?:HOST|PORT(?:_\w+)?)|PORT(?:_[0-9]+_\w+)?)")
"""What Kubernetes sets in every pod for a service whose name begins with ``envcheck``."""


class _Append(argparse._AppendAction):  # noqa: SLF001 - argparse has no public name for it
    """Values on the command line replace those of the variable; they are not appended to them."""

    def __call__(self, *arguments: Any) -> None:
        _, namespace, values, *_ = arguments
        given = getattr(namespace, self.dest)
        before = [] if given is self.default else given
        setattr(namespace, self.dest, [*(before or ()), *flattened([values])])


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help that breaks no line within a name, which could not be copied, and groups the verbs."""

    def _format_action(self, action: argparse.Action) -> str:
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - argparse has no public name for it
            return "".join(map(self._format_action, self._iter_indented_subactions(action)))
        heading: str = getattr(action, "heading", None) or ""
        return (f"\n  {heading}:\n" if heading else "") + super()._format_action(action)

    def _split_lines(self, text: str, width: int) -> list[str]:
        import textwrap  # only help needs it

        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)


class Parser(argparse.ArgumentParser):
    """A parser that reports a wrong command line as a UsageError and takes no abbreviated option."""

    variables: Mapping[str, str] = MappingProxyType({})  # Defaults of options that are not given
    settings: Mapping[str, Any] = MappingProxyType({})
    """Defaults by destination, from a configuration; ``variables`` outrank them."""
    examples: tuple[str, ...] = ()

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{**kwargs, "allow_abbrev": False, "formatter_class": partial(_Help, width=_COLUMNS)})
        self.register("action", "append", _Append)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Read defaults from the variables now: a value that only suits another verb must not stop this one."""
        self.set_defaults(**self.settings)
        for action in self._actions:
            name = next((flag[2:] for flag in action.option_strings if flag.startswith("--")), "help")
            if name != "help" and (text := self.variables.get(variable(name))):
                self.set_defaults(**{action.dest: self._from_variable(action, variable(name), text)})
        return super().parse_known_args(args, namespace)

    def _from_variable(self, action: argparse.Action, name: str, text: str) -> object:
        """The value of an option, with the checks of the command line."""
        if action.nargs == 0:
            if text.lower() not in ("1", "true", "yes", "0", "false", "no"):
                raise UsageError(f"{name}={text}: write 1 or 0")
            on = text.lower() in ("1", "true", "yes")
            if isinstance(action, argparse.BooleanOptionalAction):
                return on
            return action.const if on else self.get_default(action.dest)
        values = text.split(_LIST_SEPARATOR) if isinstance(action, _Append) else [text]
        if action.choices is not None and text not in action.choices:
            raise UsageError(f"{name}={text}: choose from {', '.join(map(str, action.choices))}")
        try:
            typed = [action.type(value) if callable(action.type) else value for value in values]
        except UsageError as error:
            raise UsageError(f"{name}={text}: {_without_flag(error, action)}") from None
        return flattened(typed) if isinstance(action, _Append) else typed[0]

    def format_help(self) -> str:
        import textwrap

        self.formatter_class = _Help  # asks for the terminal's width, as every option that is added would
        epilog = self.epilog
        end = [textwrap.fill(epilog, _COLUMNS)] if epilog else []
        self.epilog = "\n\n".join([*end, "\n".join(["examples:", *(f"  {line}" for line in self.examples)])])
        try:
            return super().format_help()
        finally:
            self.epilog = epilog

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        try:
            return super()._get_value(action, arg_string)
        except UsageError as error:
            raise argparse.ArgumentError(action, _without_flag(error, action)) from None

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Offer a known name for a misspelled one."""
        if action.choices is not None and value not in action.choices:
            raise argparse.ArgumentError(action, f"invalid choice {value!r}{did_you_mean(str(value), action.choices)}")

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")


def _without_flag(error: UsageError, action: argparse.Action) -> str:
    """What is wrong with a value; the option is named beside it."""
    return str(error).removeprefix(f"{(action.option_strings or [''])[-1]} ")


def parse(
    argv: Sequence[str], variables: Mapping[str, str], settings: Mapping[str, Any] = MappingProxyType({})
) -> argparse.Namespace:
    """Parse a command line; ``variables`` hold the defaults of options that are not given.

    ``settings`` are defaults of options with a key, by destination, which the variables outrank.
    """
    refuse_unknown(variables)
    options: argparse.Namespace
    argv = argv or ["check"]
    options, unknown = grammar(variables, settings, argv[0]).parse_known_args(argv)
    below = getattr(options, f"{options.verb}_verb", None)
    verb = options.verb = f"{options.verb} {below}" if below else options.verb or ""
    if unknown:
        command = f"envcheck {verb}".rstrip()
        flag = next((word.partition("=")[0] for word in unknown if word.startswith("-")), "")
        if not flag:
            raise UsageError(f"{command} takes no argument {' '.join(unknown)!r}; see {command} --help")
        of_verbs = (each.name for each in VERBS if any(flag in option.flags for option in options_of(each.name)))
        if (other := next(of_verbs, None)) is not None:
            raise UsageError(f"{command} has no option {flag}: see {f'envcheck {other}'.rstrip()} --help")
        known = {each for option in (options_of(verb) if verb else OPTIONS) for each in option.flags}
        raise UsageError(f"{command} has no option {flag}{did_you_mean(flag, sorted(known))}; see {command} --help")
    # Options that cannot be given together, or that mean nothing without another one.
    own = options_of(verb)
    unset = (None, False)
    given = [option for option in own if getattr(options, option.dest) not in (*unset, option.kind.get("default"))]
    flags = {option.flags[-1] for option in given if option.flags}
    for option in given:
        for other in option.excludes.split():
            if other in flags:
                raise UsageError(option.because.format(other))
        needed = option.needs.split()
        if any(flag in needed for each in own for flag in each.flags) and not flags.intersection(needed):
            raise UsageError(f"{option.flags[-1]} needs {' or '.join(needed)}")
    return options


def configured(options: argparse.Namespace, argv: Sequence[str], variables: Mapping[str, str]) -> argparse.Namespace:
    """The options of ``argv`` with the values of the configuration of ``--config``, or else the nearest, where nothing
    else is given, and with ``configuration``; ``found_outputs`` says whether the files to write are of one that nobody
    named.

    Raises UsageError for a configuration that cannot be read or is wrong.
    """
    configuration, found_outputs = None, False
    if options.no_config:  # it outranks the variable of --config
        pass
    elif options.config:
        from envcheck.config.read import read

        configuration = read(options.config)
    else:
        from envcheck.collect.starting import working_folder
        from envcheck.config.find import find

        configuration = find(working_folder())
    if configuration is not None:
        from envcheck.config.meaning import options_of as options_in

        named, settings = options.config, options_in(configuration)
        options = parse(argv, variables, settings)
        found_outputs = not named and getattr(options, "output", None) is settings.get("output")
    options.configuration, options.found_outputs = configuration, found_outputs
    return options


def grammar(
    variables: Mapping[str, str] = MappingProxyType({}),
    settings: Mapping[str, Any] = MappingProxyType({}),
    first: str = "",
) -> Parser:
    """The parser; without defaults it describes the command line. ``first`` is the first word, if one is to be parsed:
    where it is a verb, no other is described, which takes six times as long.
    """
    verbs = [verb for verb in VERBS if verb.name.partition(" ")[0] in ("", first)]
    verbs = verbs if any(verb.name == first != "" for verb in verbs) else [*VERBS]
    parsers: dict[str, Parser] = {}
    below: dict[str, Any] = {}
    groups: dict[tuple[str, str], Any] = {}
    for verb in verbs:
        above, _, name = verb.name.rpartition(" ")
        if not verb.name:
            parser = Parser(prog="envcheck", description=verb.help, epilog=verb.end)
        else:
            if above not in below:
                dest = f"{above}_verb".lstrip("_")
                below[above] = parsers[above].add_subparsers(dest=dest, metavar="VERB", required=above == "matrix")
                parsers[above]._positionals.title = "verbs"  # noqa: SLF001 - a title of add_subparsers comes last
            parser = below[above].add_parser(name, help=verb.help, epilog=verb.end)
            below[above]._get_subactions()[-1].heading = HEADINGS.get(verb.name)  # noqa: SLF001 - for the formatter
        parser.examples, parser.variables = verb.examples, variables if verb.reads_variables else {}
        parsers[verb.name] = parser
    for option in OPTIONS:
        for name, title in option.places:
            if name not in parsers:
                continue
            parser = parsers[name]
            if option.key and option.dest in settings:
                parser.settings = {**parser.settings, option.dest: settings[option.dest]}
            if (name, title) not in groups:
                groups[name, title] = parser.add_argument_group(title) if title else parser
            group = groups[name, title]
            if option.one_of:
                place = (name, f"{title}: {option.one_of}")
                group = groups[place] = groups.get(place) or group.add_mutually_exclusive_group()
            group.add_argument(*option.names, **option.arguments)
    return parsers[""]


def refuse_unknown(variables: Mapping[str, str]) -> None:
    """Raise UsageError for an ``ENVCHECK_…`` variable that sets no option: misspelt, it would be silently ignored."""
    known = {option.name for option in OPTIONS if option.flags}
    for variable_name, value in variables.items():
        rest = variable_name.removeprefix(_PREFIX)
        if variable_name == rest or not value or _OTHER_VARIABLES.fullmatch(rest) or _OF_A_SERVICE.fullmatch(rest):
            continue
        name = rest.lower().replace("_", "-")
        if name not in known:
            near = did_you_mean(f"--{name}", [f"--{each}" for each in known])
            raise UsageError(f"{variable_name}: there is no option --{name}{near}")
        if variable_name != variable(name):
            raise UsageError(f"{variable_name}: write {variable(name)}")
