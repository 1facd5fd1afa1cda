"""What a configuration may say. The JSON Schema for editors (``envcheck schema config``) is made from these structs."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

Text = Annotated[str, Meta(min_length=1, max_length=1000)]
Texts = Annotated[tuple[Text, ...], Meta(min_length=1, max_length=500)]
ADDRESS = r"https?://[^\s\x00-\x20\x7f\"'<>`\\]{1,500}"
"""Of a page on the network, as a regular expression for the whole."""
Share = Annotated[float, Meta(gt=0, le=1)]
Severity = Literal["note", "warn", "fail"]


class Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """A table of the configuration: an unknown key is an error."""


class Gpus(Table, frozen=True, kw_only=True):
    """The GPUs that the machine must have."""

    count: Annotated[int | str | None, Meta(description='How many GPUs: a number, or a bound such as ">=8".')] = None
    models: Annotated[
        Texts | None, Meta(description="Every GPU is one of these models or architectures: H100, sm_90.")
    ] = None
    memory: Annotated[Text | None, Meta(description='Least memory of each GPU: "79GiB", "80GB".')] = None


class Ignore(Table, frozen=True, kw_only=True):
    """A finding that is set aside until a day."""

    problem: Annotated[Text, Meta(description="Name of the rule, or the id of one check: RULE@SUBJECT.")]
    reason: Annotated[Text, Meta(description="Why the finding is acceptable; the report shows it.")]
    until: Annotated[
        dt.date,
        Meta(description="Last day on which it is ignored. Then envcheck warns for 14 days, and fails after that."),
    ]


class Config(Table, frozen=True, kw_only=True):
    """The whole of ``[tool.envcheck]`` or of ``envcheck.toml``."""

    require: Annotated[
        Texts | None, Meta(description='Components that must be present: "torch>=2.4", "driver>=550".')
    ] = None
    scope: Annotated[
        Annotated[tuple[Literal["node", "container", "env"], ...], Meta(min_length=1)] | None,
        Meta(description="Scopes to check (default: all)."),
    ] = None
    only: Annotated[Texts | None, Meta(description="Run only these rules.")] = None
    skip: Annotated[Texts | None, Meta(description="Skip these rules.")] = None
    fail_on: Annotated[
        Literal["fail", "warn"] | None, Meta(description="Lowest status that sets exit status 1 (default: fail).")
    ] = None
    format: Annotated[Text | None, Meta(description="Output format on stdout (default: text).")] = None
    output: Annotated[
        Texts | None,
        Meta(description='Reports to write, "FORMAT:FILE"; FILE lies in the folder of the configuration or below.'),
    ] = None
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
    severity: Annotated[
        dict[str, Severity] | None, Meta(description="Status of the findings of a rule: note, warn or fail.")
    ] = None
    ignore: Annotated[
        Annotated[tuple[Ignore, ...], Meta(min_length=1, max_length=500)] | None,
        Meta(description="Findings that are set aside, each with a reason and a last day."),
    ] = None
    targets: Annotated[
        Texts | None,
        Meta(description="Targets that check judges for unless --target or --assume names a machine; all: every one."),
    ] = None
    target: Annotated[
        Annotated[dict[str, dict[str, str | int]], Meta(max_length=100)] | None,
        Meta(description="Machines by name, in the words of --assume: gpu, gpus, driver, os, machine, kernel-module …"),
    ] = None


KEYS = tuple(field.encode_name for field in msgspec.structs.fields(Config))
"""The keys at the top, in the order in which they are printed."""


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a configuration."""
    from envcheck.checks import SCHEMA_VERSION  # noqa: PLC0415  reading a configuration needs no report

    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:envcheck:schema:config:{SCHEMA_VERSION}",
        "title": "envcheck configuration: envcheck.toml, or [tool.envcheck] in pyproject.toml",
        "minProperties": 1,
        **msgspec.json.schema(Config),
    }
