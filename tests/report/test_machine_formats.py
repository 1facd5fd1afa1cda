"""JSON, the summary, the schemas, and reading a report back."""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

import envcheck.report
from envcheck.cli.parser import parse
from envcheck.errors import UsageError
from envcheck.knowledge.relations.fit import Fit
from envcheck.model.checks import SCHEMA_VERSION, Check, Fix, Report, Summary, ways_in_order
from envcheck.pipeline.request import Request
from envcheck.pipeline.session import judge
from envcheck.report import FORMATS, Options, render
from envcheck.report.saved import MOST_BYTES, read_report
from envcheck.report.schema import SCHEMAS, published, schema
from envcheck.text.output import parse_targets
from envcheck.tui.widgets.choices import choices
from tests.every import cases
from tests.report.examples import EXAMPLES, about, check, gpu, healthy, machine, report

VALIDATOR = jsonschema.Draft202012Validator(schema("report"))


def summary(found: Report) -> tuple[str, dict[str, Any]]:
    line = render(found, "summary")
    return line, json.loads(line)


def test_a_format_is_whatever_module_declares_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file: the command line, -o, ENVCHECK_FORMAT and the application take it from there."""
    assert set(FORMATS) >= {"text", "json", "speed", "summary", "markdown", "html", "junit"}
    with pytest.raises(UsageError, match=r"there is no format 'pen'; choose from .*html, json"):
        render(healthy(), "pen")
    (tmp_path / "yaml.py").write_text(
        "from envcheck.report import Format\n"
        "FORMAT = Format(shows='a test', suffix='yml', syntax='text')\n"
        "def render(report, options):\n"
        "    return f'verdict: {report.verdict}\\n'\n"
    )
    monkeypatch.setattr(envcheck.report, "_FOLDER", tmp_path)
    monkeypatch.setattr(envcheck.report, "__path__", [str(tmp_path)])
    assert parse(["check", "--format", "yaml"], {}).format == "yaml"
    assert parse(["check"], {"ENVCHECK_FORMAT": "yaml"}).format == "yaml"
    assert parse_targets([f"yaml:{tmp_path / 'out'}"], FORMATS)[0].format == "yaml"
    assert "a test" in choices()["yaml"]
    assert render(healthy(), "yaml") == "verdict: pass\n"
    with pytest.raises(UsageError, match="invalid choice 'html'"):
        parse(["check", "--format", "html"], {})
    del sys.modules["envcheck.report.yaml"]


@pytest.mark.parametrize("form", FORMATS)
def test_what_o_takes_format_takes_too_and_help_lists(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert parse(["explain", "--format", form], {}).format == form
    assert parse_targets([f"{form}:/dev/null"], FORMATS)[0].format == form
    with pytest.raises(SystemExit):
        parse(["check", "--help"], {})
    assert re.search(rf"output format:[^(]*\b{form}\b", capsys.readouterr().out)
    assert set(choices()) >= {form}


@pytest.mark.parametrize("name", EXAMPLES)
def test_json_is_the_whole_report_and_fits_its_schema(name: str) -> None:
    found = EXAMPLES[name]()
    text = render(found, "json")
    VALIDATOR.validate(json.loads(text))
    assert read_report(text.encode()) == found
    assert text.isprintable() or set(filter(lambda char: not char.isprintable(), text)) <= {"\n"}


@cases("name", "healthy", "unknown-nvml", "hostile")
def test_no_key_is_left_out(name: str) -> None:
    """What is not known is null, in the facts as in the checks."""

    def complete(value: Any, record: Any) -> int:
        if isinstance(record, msgspec.Struct):
            names = dict(zip(record.__struct_fields__, record.__struct_encode_fields__, strict=True))
            assert list(value) == list(names.values()), type(record)
            return 1 + sum(complete(value[key], getattr(record, field)) for field, key in names.items())
        if isinstance(record, tuple):
            return sum(complete(*both) for both in zip(value, record, strict=True))
        return 0

    found = EXAMPLES[name]()
    assert complete(json.loads(render(found, "json")), found) > 20
    assert json.loads(render(found, "json"))["snapshot"]["fabric"] is None


def test_json_has_the_keys_of_the_contract() -> None:
    content = json.loads(render(EXAMPLES["warned"](), "json"))
    assert set(content) == {
        "schema_version", "tool", "created", "duration_s", "host", "headline", "exit_code", "verdict",
        "unknown_allowed", "primary",
        "primary_check", "configuration", "fix", "summary", "assumed", "overlays", "overlays_unread", "grounds",
        "ask", "targets", "checks", "measurements", "across_gpus", "snapshot", "probes", "timing",
    }  # fmt: skip
    assert set(content["summary"]) == {"pass", "note", "warn", "fail", "unknown", "skipped"}
    assert set(content["checks"][0]) == {
        "id", "rule", "scope", "layer", "subject", "status", "title", "message", "evidence", "decided_by",
        "confidence", "missing", "explained_by", "location", "ignored", "judged", "figure", "fixes", "action",
        "sources", "frameworks",
    }  # fmt: skip
    assert content["checks"][0]["explained_by"] is None
    subject = {"kind", "key", "index", "uuid", "pci_bus_id", "path", "environment"}
    assert set(content["checks"][0]["subject"]) == subject


@cases("name", "driver-too-old", "no-gpu", "healthy")
def test_the_fix_at_the_top_is_the_first_that_the_page_shows(name: str) -> None:
    snapshot = EXAMPLES[name]().snapshot
    assert snapshot
    found = judge(snapshot, Request(variables={}))
    cause = found.check(found.primary_check)
    assert found.fix == (ways_in_order(cause.fixes)[0] if cause and cause.fixes else ())
    assert bool(found.fix) == (name != "healthy")


def test_the_schema_rejects_what_is_no_report() -> None:
    content = json.loads(render(healthy(), "json"))
    wrongs: list[dict[str, Any]] = [{"verdict": "fine"}, {"summary": None}, {"checks": [{}]}, {"duration_s": "1"}]
    for wrong in wrongs:
        with pytest.raises(jsonschema.ValidationError):
            VALIDATOR.validate(content | wrong)


def test_the_schema_allows_keys_of_a_later_minor() -> None:
    VALIDATOR.validate(json.loads(render(healthy(), "json")) | {"new": 1})


def test_the_schema_of_fit_fits() -> None:
    validator = jsonschema.Draft202012Validator(schema("fit"))
    fits = [Fit(verdict="compatible", reason="they fit", rows=("cuda/12.4",)), Fit(verdict="unknown", reason="no row")]
    for fit in fits:
        validator.validate(json.loads(msgspec.json.encode(fit)))
    with pytest.raises(jsonschema.ValidationError):
        validator.validate({"verdict": "maybe", "reason": ""})


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_schemas(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(name))


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_property_of_a_schema_is_described(name: str) -> None:
    found = schema(name)
    assert found["$id"] == f"urn:envcheck:schema:{name}:{SCHEMA_VERSION}"
    lacking = [
        f"{kind}.{key}"
        for kind, part in found["$defs"].items()
        for key, value in part.get("properties", {}).items()
        if len(value.get("description", "")) < 5
    ]
    assert lacking == []
    assert len(found["$defs"]) >= 3


def test_a_description_is_the_comment_behind_the_field_or_the_docstring_below() -> None:
    assert schema("report")["$defs"]["Figure"]["properties"]["share"]["description"] == "`value` divided by `ceiling`."
    assert schema("report")["$defs"]["Summary"]["properties"]["pass"]["description"] == "What holds."
    assert schema("report")["$defs"]["Gpu"]["properties"]["source"]["description"].startswith("Where it was read")


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_published_schema_is_the_one_that_is_printed(name: str) -> None:
    """After an intended change: ENVCHECK_REWRITE_GOLDEN=1, and read the difference."""
    file = Path(__file__).resolve().parents[2] / "docs" / "schema" / published(name)
    if os.environ.get("ENVCHECK_REWRITE_GOLDEN"):
        file.write_text(json.dumps(schema(name), indent=2) + "\n", encoding="utf-8")
    assert json.loads(file.read_text(encoding="utf-8")) == json.loads(json.dumps(schema(name)))


def test_an_unknown_schema_is_named() -> None:
    with pytest.raises(UsageError, match="there is no schema 'policy'; choose from report, fit"):
        schema("policy")


@pytest.mark.parametrize("name", EXAMPLES)
def test_summary_is_one_short_line(name: str) -> None:
    found = EXAMPLES[name]()
    line, content = summary(found)
    assert line.endswith("\n")
    assert line.count("\n") == 1
    assert len(line.encode()) < 8000
    assert "snapshot" not in content
    assert content["summary"]["pass"] == found.summary.passed
    assert all(told["status"] in ("fail", "warn", "unknown") for told in content["checks"])
    told = [check for check in found.checks if check.status in ("fail", "warn", "unknown")]
    assert len(content["checks"]) + content["cut"]["checks"] == len(told)


def test_summary_of_a_small_report_is_complete() -> None:
    _, content = summary(EXAMPLES["warned"]())
    assert (content["cut"], content["verdict"]) == ({"checks": 0, "assumed": 0, "ask": 0, "targets": 0}, "warn")
    assert content["primary"] == "row-remap-pending"
    assert content["checks"][0] == {
        "id": "row-remap-pending@0000:09:00.0", "rule": "row-remap-pending", "status": "warn",
        "title": "Row remapping waits for a reset of the GPU", "message": "", "explained_by": None,
        "fix": {
            "text": "Reset the GPU when nothing runs on it", "command": ["nvidia-smi", "--gpu-reset", "-i", "3"],
            "who": "root",
        },
    }  # fmt: skip


def many(per_gpu: int, **more: Any) -> Report:
    gpus = tuple(gpu(number) for number in range(8))
    checks = [
        check(f"rule-{rule}", "fail", layer="gpu", subject=about(found), **more)
        for found in gpus
        for rule in range(per_gpu)
    ]
    return report(checks, machine(gpus, None), primary=checks[5])


def test_summary_tells_every_rule_before_it_repeats_one() -> None:
    line, content = summary(many(12, message="m" * 150))
    assert len(line.encode()) < 8000
    assert content["checks"][0]["rule"] == "rule-5"
    assert {told["rule"] for told in content["checks"]} == {f"rule-{number}" for number in range(12)}
    assert content["cut"]["checks"] == 96 - len(content["checks"]) > 0


@cases("text", "x" * 10_000, "漢" * 5_000, "\x1b" * 5_000, "\u202e" * 5_000, '"\\' * 5_000, "\udcff" * 3_000)
def test_summary_stays_short_whatever_the_names(text: str) -> None:
    found = many(3, title=text, message=text, fixes=(Fix(text=text, command=("rm", text)),))
    hostile = msgspec.structs.replace(
        found, host=text, headline=text, created=text, primary=text,
        assumed={f"{number}{text}": text for number in range(50)}, ask=(text,) * 50,
    )  # fmt: skip
    line, content = summary(hostile)
    assert len(line.encode()) < 8000
    assert content["checks"]
    assert (content["checks"][0]["fix"]["command"], content["cut"]["assumed"]) == (None, 40)


def test_summary_without_checks() -> None:
    _, content = summary(report([], machine((), None), verdict="unknown"))
    assert (content["checks"], content["summary"]["pass"]) == ([], 0)


def test_json_of_names_that_are_no_text() -> None:
    odd = msgspec.structs.replace(healthy(), host="no\udcfftext", headline="\x9b\u202e\x7f")
    for form in ("json", "summary"):
        text = render(odd, form)
        assert json.loads(text)["host"] == "no\\udcfftext"
        assert json.loads(text)["headline"] == "\x9b\u202e\x7f"
        assert not set(text) & set("\x9b\u202e\x7f")


def test_machine_formats_heed_no_options() -> None:
    options = Options(color=True, verbose=True, ascii=True, width=40, quiet=True)
    for form in ("json", "summary"):
        assert render(EXAMPLES["warned"](), form, options) == render(EXAMPLES["warned"](), form)


def saved(**changed: Any) -> bytes:
    return json.dumps(json.loads(render(healthy(), "json")) | changed).encode()


def test_a_later_minor_with_unknown_keys_is_read() -> None:
    content = json.loads(saved(schema_version="1.7", brand_new={"a": [1, 2]}))
    content["checks"][0]["also_new"] = True
    content["snapshot"]["gpus"]["items"][0]["also_new"] = {}
    found = read_report(json.dumps(content).encode())
    assert (found.schema_version, found.checks) == ("1.7", healthy().checks)


def test_a_byte_order_mark_is_no_obstacle() -> None:
    assert read_report(b"\xef\xbb\xbf" + saved()) == healthy()


@cases("content, reason",
    (b"", "is empty"), (b" \n", "is empty"), (b"GPU 0: H100", "is not JSON"), (b"\xff\xfe{\x00", "is not JSON"),
    (b'"\\udcff"', "is not JSON"), (b'{"schema_version": "1.0"', "is not JSON"), (b"[]", "not a report of envcheck"),
    (b"null", "not a report of envcheck"),
    (b"{}", "not a report of envcheck: Object missing required field `schema_version`"),
    (b'{"schema_version": 1}', "not a report of envcheck"),
    (b'{"schema_version": "1.0"}', "not a report of envcheck: Object missing required field"),
    (b'{"schema_version": "one"}', "has a schema_version of 'one'"),
    (b'{"schema_version": "1"}', "has a schema_version of '1'"),
    (b'{"schema_version": "2.0"}', "has schema 2.0, and this envcheck reads up to 1.x; use a newer envcheck"),
    (b'{"schema_version": "0.9"}', "has schema 0.9, which this envcheck"), (b'{"x":' * 100_000, "the file is "),
    (saved(verdict=["\x1b[2Jfine"]), "not a report of envcheck"),
    (saved(duration_s="long"), "not a report of envcheck"),
)  # fmt: skip
def test_what_is_no_report_is_refused_in_one_sentence(content: bytes, reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_report(content)
    message = str(caught.value)
    assert reason in message
    assert message.isprintable()
    assert len(message) < 250


def test_a_file_beyond_bounds_is_refused() -> None:
    with pytest.raises(UsageError, match="more than 64 MiB"):
        read_report(b" " * (MOST_BYTES + 1))


def test_a_saved_report_is_printed_as_it_was() -> None:
    for name, build in EXAMPLES.items():
        assert render(read_report(render(build(), "json").encode()), "text") == render(build(), "text"), name


def test_counts_are_the_checks() -> None:
    checks: tuple[Check, ...] = healthy().checks
    assert Summary.of(checks) == healthy().summary
