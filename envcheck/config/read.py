"""Read a configuration, and name the line of what is wrong in it. The JSON Schema for editors (``envcheck schema
config``) is made from the structs.
"""

from __future__ import annotations

import datetime as dt
import os
import re
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar, get_args

import msgspec
from msgspec import Meta

from envcheck.config.find import SHARED, read_bytes
from envcheck.config.options import KEYS, Option
from envcheck.config.values import scopes
from envcheck.errors import UsageError
from envcheck.text.toml import Path, TomlError, line_of, lines_of, loads
from envcheck.text.wrap import did_you_mean

Text = Annotated[str, Meta(min_length=1, max_length=1000)]
Texts = Annotated[tuple[Text, ...], Meta(min_length=1, max_length=500)]
ADDRESS = r"https?://[^\s\x00-\x20\x7f\"'<>`\\]{1,500}"  # Of a page on the network, as a regular expression for it all
Share = Annotated[float, Meta(gt=0, le=1)]
Severity = Literal["note", "warn", "fail"]


class ConfigTable(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, rename="kebab"
):
    """A table of the configuration: an unknown key is an error."""


class Gpus(ConfigTable, frozen=True, kw_only=True):
    """The GPUs that the machine must have."""

    count: Annotated[int | str | None, Meta(description='How many GPUs: a number, or a bound such as ">=8".')] = None
    models: Annotated[
        Texts | None, Meta(description="Every GPU is one of these models or architectures: H100, sm_90.")
    ] = None
    memory: Annotated[Text | None, Meta(description='Least memory of each GPU: "79GiB", "80GB".')] = None


class Ignore(ConfigTable, frozen=True, kw_only=True):
    """A finding that is set aside until a day."""

    problem: Annotated[Text, Meta(description="Name of the rule, or the id of one check: RULE@SUBJECT.")]
    reason: Annotated[Text, Meta(description="Why the finding is acceptable; the report shows it.")]
    until: Annotated[
        dt.date,
        Meta(description="Last day on which it is ignored. Then envcheck warns for 14 days, and fails after that."),
    ]


Ignored: TypeAlias = Annotated[tuple[Ignore, ...], Meta(min_length=1, max_length=500)] | None
Severities: TypeAlias = dict[str, Severity] | None


class PlanGroup(ConfigTable, frozen=True, kw_only=True):
    """Files that are installed together: one of several plans that are judged in one run."""

    name: Annotated[Text, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9._-]*$", description="Names it in --plan @NAME.")]
    files: Annotated[Texts, Meta(description="Files as for --plan, also FILE[EXTRA]; from the configuration's folder.")]
    targets: Annotated[
        Texts | None, Meta(description="Targets it is judged for unless --target or --assume names a machine.")
    ] = None


class FleetGroup(ConfigTable, frozen=True, kw_only=True):
    """Nodes of which envcheck fleet expects the same."""

    nodes: Annotated[Texts, Meta(description="Names and ranges of its nodes: gpu-[001-128], r[1-4]n[01-16].")]
    gpus: Annotated[Gpus | None, Meta(description="The GPUs that each of them must have.")] = None
    severity: Annotated[Severities, Meta(description="Status there of a rule's findings: note, warn or fail.")] = None
    ignore: Annotated[Ignored, Meta(description="Findings to set aside there, with a reason and a last day.")] = None


class FleetTable(ConfigTable, frozen=True, kw_only=True):
    """What envcheck fleet holds the reports of nodes against."""

    group: Annotated[
        tuple[FleetGroup, ...], Meta(min_length=1, max_length=500, description="Groups of nodes; no node is in two.")
    ]


def _key_of(option: Option) -> Any:
    """The type of the key that sets an option."""
    kind: Any = Text
    known = option.kind.get("choices")
    if isinstance(known, tuple):
        kind = Literal[known]
    elif not option.takes_value:
        kind = bool
    elif option.kind.get("action") == "append":
        kind = Texts
    elif option.kind.get("type") is scopes:
        kind = Annotated[tuple[Literal["node", "container", "env"], ...], Meta(min_length=1)]
    return Annotated[kind | None, Meta(description=option.key)]


if TYPE_CHECKING:
    _Options = ConfigTable
else:
    _KEYS = [(name.replace("-", "_"), _key_of(option), None) for name, option in KEYS.items()]
    _Options = msgspec.defstruct("_Options", _KEYS, bases=(ConfigTable,), frozen=True, kw_only=True)


class Config(_Options, frozen=True, kw_only=True):
    """The whole of ``[tool.envcheck]`` or of ``envcheck.toml``."""

    documentation: Annotated[
        Annotated[str, Meta(pattern=f"^{ADDRESS}$")] | None,
        Meta(description="Where envcheck's documentation is hosted; envcheck rule prints a page's address there."),
    ] = None
    forbid: Annotated[
        Texts | None,
        Meta(description="Problems that must be absent: their findings fail, and not having checked is no verdict."),
    ] = None
    gpus: Annotated[Gpus | None, Meta(description="The GPUs that the machine must have.")] = None
    minimum_share: Annotated[
        dict[str, Share] | None,
        Meta(
            description="Least share of the ceiling by quantity (envcheck bench --list), judged where it is measured."
        ),
    ] = None
    severity: Annotated[Severities, Meta(description="Status of the findings of a rule: note, warn or fail.")] = None
    ignore: Annotated[Ignored, Meta(description="Findings that are set aside, with a reason and a last day.")] = None
    plan: Annotated[
        Annotated[tuple[PlanGroup, ...], Meta(min_length=1, max_length=500)] | None,
        Meta(description="Plans by name, each judged on its own: check --plan @NAME, or @all."),
    ] = None
    fleet: Annotated[FleetTable | None, Meta(description="What envcheck fleet expects of groups of nodes.")] = None
    targets: Annotated[
        Texts | None,
        Meta(description="Targets that check judges for unless --target or --assume names a machine; all: every one."),
    ] = None
    target: Annotated[
        Annotated[dict[str, dict[str, str | int]], Meta(max_length=100)] | None,
        Meta(description="Machines by name, by the keys of --assume: gpu, gpus, driver, os, machine, kernel-module …"),
    ] = None


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a configuration."""
    from envcheck.model.checks import SCHEMA_VERSION  # noqa: PLC0415  reading a configuration needs no report

    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:envcheck:schema:config:{SCHEMA_VERSION}",
        "title": "envcheck configuration: envcheck.toml, or [tool.envcheck] in pyproject.toml",
        "minProperties": 1,
        **msgspec.json.schema(Config),
    }


T = TypeVar("T")

_FREE: dict[str, Any] = {"severity": Severity, "minimum-share": Share, "target": dict[str, Any]}
_TYPES = {
    "array": "a list", "object": "a table", "str": "a text",
    "int": "a number", "float": "a number", "bool": "true or false",
}  # fmt: skip
"""msgspec's names of types, and TOML's."""
_STEP = re.compile(r"\.(?P<key>[\w-]+)|\[(?P<item>\d+)\]")
FIELDS: dict[Path, tuple[str, ...]] = {
    (): Config.__struct_encode_fields__,
    ("gpus",): Gpus.__struct_encode_fields__,
    ("ignore",): Ignore.__struct_encode_fields__,
    ("fleet",): ("group", *FleetGroup.__struct_encode_fields__),
    ("plan",): PlanGroup.__struct_encode_fields__,
}


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration and where each part of it stands."""

    path: str
    section: Path = ()  # Path of the table in the file: empty, or ``tool.envcheck``
    config: Config
    lines: dict[Path, int] = {}

    def value(self, key: str) -> Any:
        """The value of a key at the top; None where it is not set."""
        return getattr(self.config, key.replace("-", "_"))

    def line(self, *path: str | int) -> int:
        return line_of(self.lines, (*self.section, *path))

    def error(self, problem: str, *path: str | int) -> UsageError:
        """The error that names the line of ``path``."""
        return UsageError(f"{self.path}:{self.line(*path)}: {problem}")


def read(path: str) -> Configuration:
    """The configuration in ``path``; raise UsageError where there is none."""
    found = in_file(path, read_bytes(path))
    if found is None:
        raise UsageError(f"{path} has no [tool.envcheck]; envcheck init writes a configuration")
    return found


def in_file(path: str, data: bytes, remark: str = "") -> Configuration | None:
    """The configuration in ``data``, the content of ``path``; None for another tool's ``pyproject.toml``."""
    document, text = parse(path, data, remark)
    shared = os.path.basename(path) == SHARED  # noqa: PTH119
    section: Path = ("tool", "envcheck") if shared or "tool" in document else ()
    table: Any = document
    for key in section:
        table = table.get(key) if isinstance(table, dict) else None
    if table is None:
        return None
    lines = lines_of(text)
    if not isinstance(table, dict) or not table:
        where = f"{path}:{line_of(lines, section)}"
        raise UsageError(f"{where}: the configuration is empty; delete it, or write one with envcheck init")
    unread = Configuration(path=path, section=section, config=Config(), lines=lines)
    # msgspec names the path of what is wrong, except below a table whose keys are free; those go entry by entry.
    for name, kind in _FREE.items():
        entries = table.get(name, {})
        if not isinstance(entries, dict):
            raise unread.error(f"{name}: write a table, [{'.'.join(map(str, (*section, name)))}]", name)
        for key, value in entries.items():
            _convert(unread, value, kind, (name, key))
    for target, words in table.get("target", {}).items():
        check_words(unread, target, words, ("target", target))
    return msgspec.structs.replace(unread, config=_convert(unread, table, Config, ()))


def parse(path: str, data: bytes, remark: str = "") -> tuple[dict[str, Any], str]:
    """The document and its text; raise UsageError with the line where it is no TOML."""
    ending = f"; {remark}" if remark else ""
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
        return loads(text), text
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}:{number}: it is not UTF-8{ending}") from None
    except TomlError as error:
        raise UsageError(f"{path}:{error.line or 1}: {error}{ending}") from None


def check_words(place: Configuration, name: str, words: dict[str, Any], path: Path) -> None:
    """Raise UsageError where the words of a target at ``path`` are none."""
    if not words:
        raise place.error(f"target {name}: it is empty; write gpu, driver, os …", *path)
    for word, value in words.items():
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise place.error(f'target {name}: {word}: write a text, as in {word} = "H100"', *path, word)


def _convert(place: Configuration, value: Any, kind: type[T], path: Path) -> T:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        found = re.fullmatch(r"(?P<problem>.*?)(?: - at `\$(?P<path>[^`]*)`)?", str(error))
        problem, rest = (found["problem"], found["path"] or "") if found else (str(error), "")
        steps = [step["key"] or int(step["item"]) for step in _STEP.finditer(rest)]
        raise _named(place, problem, (*path, *steps), kind) from None


def _named(place: Configuration, problem: str, path: Path, kind: Any) -> UsageError:
    unknown = re.search("unknown field `(.*)`", problem)
    missing = re.search("missing required field `(.*)`", problem)
    called = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
    if unknown:
        known = FIELDS.get(path[:1], ())
        return place.error(f"there is no key {unknown[1]!r}{did_you_mean(unknown[1], known)}", *path, unknown[1])
    if missing:
        return place.error(f"{called}: the key {missing[1]!r} is missing", *path)
    if kind is Severity or path[-1:] in (("scope",), ("fail-on",)) or path[:1] == ("scope",):
        words = {"fail-on": "fail or warn", "scope": "a list of node, container, env"}
        return place.error(f"{called}: write {words.get(str(path[0]), ', '.join(get_args(Severity)))}", *path)
    if path[-1:] == ("until",):
        return place.error(f"{called}: write a date, as in until = 2027-01-31", *path)
    if path == ("documentation",):
        return place.error(f"{called}: write an address, as in https://docs.example.org/envcheck/", *path)
    plain = problem[:1].lower() + problem[1:].replace(" | null", "").replace("`", "")
    for theirs, ours in _TYPES.items():
        plain = re.sub(rf"\b{theirs}\b", ours, plain)
    return place.error(f"{called}: {plain}", *path)
