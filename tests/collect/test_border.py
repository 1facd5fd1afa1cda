"""What is no header or no fact of the right shape does not come in, and what came before it stays."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envcheck.collect import child
from envcheck.collect.catalog import ProbeSpec, probes_in
from envcheck.collect.protocol import decode, decode_fact
from envcheck.collect.runner import WrongMessageError
from envcheck.errors import EnvcheckError
from envcheck.model.snapshot import Gpu, Listing, Snapshot
from tests.every import cases

FACT = '{"variables": {"values": {"half": "sent"}}}'

WRONG: dict[str, tuple[str, str]] = {
    # what is wrong: (what the probe does, detail)
    "not JSON": ("out._write(b'{\"probe\": oops\\n')",
        "it sent a message that is not JSON: invalid character (byte 10)"),
    "cut off JSON": ("out._write(b'{\"probe\": \\n')", "it sent a message that is not JSON: Input data was truncated"),
    "noise": ("out._write(b'hello\\n')", "it sent a message that is not JSON: invalid character (byte 0)"),
    "NaN": ("out.fact({'gpus': {'items': [{'fan': float('nan')}]}})",
        "it sent a message that is not JSON: invalid character (byte 54)"),
    "not UTF-8": ('out._write(b\'{"probe": "\' + NAME.encode() + b\'", "progress": "\\xff"}\\n\')',
        "it sent a message that is not UTF-8"),
    "fact not UTF-8": (
        'out._write(b\'{"probe": "\' + NAME.encode() + b\'", "fact": {"platform": {"host": "\\xff"}}}\\n\')',
        "it sent a fact that is not UTF-8"),
    "not an object": ("out._write(b'[]\\n')", "it sent a message of the wrong shape: Expected `object`, got `array`"),
    "unknown message": ("out._send({'facts': {}})",
        "it sent a message of the wrong shape: Object contains unknown field `facts`"),
    "unknown status": ("out._send({'done': {'status': 'timed-out'}})",
        "it sent a message of the wrong shape: Invalid enum value 'timed-out' - at `$.done.status`"),
    "another's name": ('out._write(b\'{"probe": "driver", "progress": ""}\\n\')',
        "it sent a message in the name of another probe"),
    "wrong type": ("out.fact({'gpus': {'items': [{'index': 'first'}]}})",
        "it sent a fact of the wrong shape: Expected `int | null`, got `str` - at `$.gpus.items[0].index`"),
    "missing field": ("out.fact({'toolkits': {'items': [{}]}})",
        "it sent a fact of the wrong shape: Object missing required field `path` - at `$.toolkits.items[0]`"),
    "unknown section": ("out.fact({'gpu': []})", "it sent a fact of the wrong shape: the Snapshot has no `$.gpu`"),
    "unknown field": ("out.fact({'gpus': {'items': [{'memory': {'size': 1}}]}})",
        "it sent a fact of the wrong shape: the Snapshot has no `$.gpus.items[0].memory.size`"),
    "a row of its own": ("out.fact({'runs': [{'name': 'other', 'status': 'ok'}]})",
        "it sent a fact of the wrong shape: `$.runs` is not for probes"),
    "huge line": ("out.fact({'platform': {'host': 'x' * (5 << 20)}})", "it sent a line longer than 4 MiB"),
    "two things": ("out._write(b'x\\n'); out._write(b'y\\n'); out._write(b'z\\n')",
        "it sent a message that is not JSON: invalid character (byte 0) (and 2 more)"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
@cases("kind", "file", "driver")
def test_wrong_message_fails_its_probe_alone(probes: Any, kind: str, what: str) -> None:
    statement, detail = WRONG[what]
    probes.add_healthy("before", "later")
    probes.add("errs", f"def collect(tree, out):\n    out.fact({FACT})\n    {statement}\n", kind=kind)
    run = probes.run()["errs"]
    assert (run.status, run.detail) == ("failed", detail)
    assert probes.facts("errs") == {"half": "sent"}
    assert probes.parts["errs"] == Snapshot(variables=probes.parts["errs"].variables, runs=(run,))
    probes.assert_healthy("before", "later")


@cases("kind", "file", "driver")
def test_child_that_sends_without_end_is_ended(probes: Any, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envcheck.collect.child.TOTAL_LIMIT", 3 << 20)
    probes.add_healthy("later")
    body = f"def collect(tree, out):\n    out.fact({FACT})\n    while True: out.progress('x' * 100000)\n"
    probes.add("endless", body, kind=kind)
    run = probes.run()["endless"]
    assert (run.status, run.detail.partition(" while ")[0]) == ("failed", "it sent more than 3 MiB")
    assert probes.facts("endless") == {"half": "sent"}
    probes.assert_healthy("later")


def test_death_and_wrong_message_are_both_said(probes: Any) -> None:
    probes.add("errs", "def collect(tree, out):\n    out.fact([])\n    import os; os.abort()\n")
    detail = "crashed: SIGABRT; it sent a fact of the wrong shape: Expected `object`, got `array`"
    assert probes.run()["errs"].detail == detail


def test_done_by_the_probe_itself_counts_once(probes: Any) -> None:
    probes.add("eager", f"def collect(tree, out):\n    out.done()\n    out.fact({FACT})\n    out.done()\n")
    probes.add_healthy("next")
    assert (probes.run()["eager"].status, probes.facts("eager")) == ("ok", {})
    probes.assert_healthy("next")


def test_death_after_done_costs_the_next_probe_nothing(probes: Any) -> None:
    probes.add("eager", "import os\ndef collect(tree, out):\n    out.done()\n    os._exit(3)\n")
    probes.add_healthy("next", "one_more")
    assert probes.run()["eager"].status == "ok"
    probes.assert_healthy("next", "one_more")


def test_message_left_open_does_not_swallow_the_next(probes: Any) -> None:
    probes.add("opens", f"def collect(tree, out):\n    out.fact({FACT})\n    out._write(b'{{\"probe\": ')\n")
    probes.add_healthy("next")
    run = probes.run()["opens"]
    assert (run.status, run.detail) == ("failed", "it sent a message that is not JSON: Input data was truncated")
    probes.assert_healthy("next")


def test_bytes_that_are_no_utf_8_come_in_as_replacement_characters(probes: Any) -> None:
    body = r"""
    def collect(tree, out):
        out.fact({"variables": {"values": {"PATH": "a\udc80\\udc80 \U0001f600"}}})
    """
    probes.add("odd", body)
    assert probes.run()["odd"].status == "ok"
    assert probes.facts("odd") == {"PATH": "a\N{REPLACEMENT CHARACTER}\\udc80 \U0001f600"}


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_a_message_or_refused(line: bytes) -> None:
    try:
        message = decode(line)
    except WrongMessageError:
        return
    assert isinstance(message.probe, str)


SECTIONS = st.sampled_from([*Snapshot.__struct_fields__, "items", "complete", *Gpu.__struct_fields__])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | SECTIONS, inner, max_size=3),
    max_leaves=10,
)


@given(JSON)
def test_any_json_is_a_fact_or_refused(value: Any) -> None:
    try:
        fact = decode_fact(msgspec.Raw(json.dumps(value).encode("utf-8", "surrogatepass")))
    except WrongMessageError:
        return
    assert isinstance(fact, Snapshot)
    assert not fact.runs


@given(st.text(st.characters(exclude_categories=()) | st.sampled_from("\\ud8\ud83d\ude00")))
def test_repair_changes_only_lone_surrogates(text: str) -> None:
    line = json.dumps({"probe": text}).encode()
    assert decode(line).probe == text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def test_deep_nesting_is_refused() -> None:
    for text in (b'{"probe": "x", "fact": ' + b"[" * 100_000, b'{"probe":' * 100_000):
        with pytest.raises(WrongMessageError):
            decode(text)


@given(st.lists(st.integers(min_value=1, max_value=50)), st.lists(st.integers(min_value=0, max_value=40), min_size=1))
def test_lines_are_the_same_however_they_are_cut(cuts: list[int], lengths: list[int]) -> None:
    stream = b"".join(bytes([97 + index % 26]) * length + b"\n" for index, length in enumerate(lengths))
    lines, found, rest = child.Lines(), [], stream
    for cut in cuts:
        found += lines.feed(rest[:cut])
        rest = rest[cut:]
    found += lines.feed(rest)
    assert found == stream.split(b"\n")[:-1]
    assert lines.total == len(stream)


def test_line_that_is_too_long_is_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "LINE_LIMIT", 10)
    lines = child.Lines()
    assert lines.feed(b"0123456789\n0123456789") == [b"0123456789"]
    assert lines.feed(b"x" * 1000) == []
    assert lines._rest == b""
    assert lines.feed(b"more\nnext\n") == [None, b"next"]


def test_good_fact_is_the_snapshot_it_says() -> None:
    raw = msgspec.Raw(b'{"gpus": {"items": [{"uuid": "GPU-1", "read": {"name": "nvml"}}], "complete": true}}')
    expected = Snapshot(gpus=Listing(items=(Gpu(uuid="GPU-1", read={"name": "nvml"}),), complete=True))
    assert decode_fact(raw) == expected


# --- A header is read as data, whatever else is in the file ---------------------------------------------------------
FIELDS = {
    "title": "Kernel module", "kind": "file", "seconds": 5, "uses": "files", "scopes": ["node", "container"],
    "fills": ["kernel", "driver.release"],
}  # fmt: skip
SPEC = ProbeSpec(
    name="kernel", title="Kernel module", kind="file", seconds=5.0, uses="files", scopes=("node", "container"),
    fills=("kernel", "driver.release"),
)  # fmt: skip
LONG = "{\n" + "".join(f"    {key!r}: {value!r},  # {{\n" for key, value in FIELDS.items()) + "}"
ODD = "{\n" + "".join(f"    {key!r}: {value!r},\n" for key, value in FIELDS.items()) + "    # {}\n}"


def write(folder: Path, text: str, name: str = "kernel.py") -> Path:
    file = folder / name
    file.write_text(text)
    return file


@cases("header", repr(FIELDS), LONG, ODD, ids=["one line", "usual", "comment that looks like an end"])
def test_header_is_read_without_running_the_file(tmp_path: Path, header: str) -> None:
    mark = tmp_path / "mark"
    before = f"'''PROBE = {{}} is the header.'''\nopen({str(mark)!r}, 'w')\nraise SystemExit\n"
    write(tmp_path, f"{before}PROBE = {header}\nother = {{}}\n")
    write(tmp_path, "not Python at all", "_helper.py")
    write(tmp_path, "not Python at all", "readme.txt")
    assert probes_in(tmp_path) == (SPEC,)
    assert not mark.exists()


def test_all_fields(tmp_path: Path) -> None:
    write(tmp_path, f"PROBE = { ({**FIELDS, 'early': True, 'seconds': 0.5, 'seconds_per_gpu': 3})!r}\n")
    (spec,) = probes_in(tmp_path)
    assert (spec.early, spec.seconds, spec.seconds_per_gpu) == (True, 0.5, 3.0)


def test_probes_come_by_name(tmp_path: Path) -> None:
    for name in ("zeta.py", "alpha.py", "beta_2.py"):
        write(tmp_path, f"PROBE = {FIELDS!r}\n", name)
    assert [spec.name for spec in probes_in(tmp_path)] == ["alpha", "beta_2", "zeta"]


WRONG_CATALOG = {
    "no header": ("x = 1", "there is no assignment of a dict display to PROBE"),
    "in a function": (f"def f():\n    PROBE = {FIELDS!r}", "there is no assignment of a dict display to PROBE"),
    "computed": ("PROBE = dict(title='x')", "there is no assignment of a dict display to PROBE"),
    "not literal": ("PROBE = {'title': str(1)}", "it holds something that is not a literal"),
    "unpacked": ("PROBE = {**{}}", "it holds something that is not a literal"),
    "not Python": ("\nPROBE = {'title': 'x'", "'{' was never closed (line 2)"),
    "empty": ("PROBE = {}", "Object missing required field `title`"),
    "unknown field": (f"PROBE = { ({**FIELDS, 'speed': 1})!r}", "Object contains unknown field `speed`"),
    "own name": (f"PROBE = { ({**FIELDS, 'name': 'x'})!r}", "its name is the name of its file and cannot be set"),
    "kind": (f"PROBE = { ({**FIELDS, 'kind': 'net'})!r}", "Invalid enum value 'net' - at `$.kind`"),
    "scope": (f"PROBE = { ({**FIELDS, 'scopes': ['all']})!r}", "Invalid enum value 'all' - at `$.scopes[0]`"),
    "no scope": (f"PROBE = { ({**FIELDS, 'scopes': []})!r}", "Expected `array` of length >= 1 - at `$.scopes`"),
    "seconds": (f"PROBE = { ({**FIELDS, 'seconds': '5'})!r}", "Expected `float`, got `str` - at `$.seconds`"),
    "no time": (f"PROBE = { ({**FIELDS, 'seconds': 0})!r}", "Expected `float` > 0.0 - at `$.seconds`"),
    "fills": (f"PROBE = { ({**FIELDS, 'fills': ['gpu.name']})!r}", "no section of the Snapshot holds 'gpu.name'"),
    "early driver": (f"PROBE = { ({**FIELDS, 'kind': 'driver', 'early': True})!r}",
        "only a probe of kind 'file' can be early"),
    "tries": (f"PROBE = { ({**FIELDS, 'kind': 'bench', 'tries': ['torch']})!r}",
        "only a probe that runs in an environment tries frameworks"),
    "per": (f"PROBE = { ({**FIELDS, 'per': 'gpu'})!r}", "only a probe of kind 'bench' has the key 'per'"),
    "runs_in": (f"PROBE = { ({**FIELDS, 'runs_in': 'environment'})!r}",
        "only a probe of kind 'bench' has the key 'runs_in'"),
    "key": ("PROBE = {1: 2}", "the key 1 is not text"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG_CATALOG)
def test_malformed_header_is_one_sentence_with_the_file(tmp_path: Path, what: str) -> None:
    text, problem = WRONG_CATALOG[what]
    file = write(tmp_path, text)
    with pytest.raises(EnvcheckError) as caught:
        probes_in(tmp_path)
    assert str(caught.value) == f"the probe {file} has no usable header PROBE: {problem}"


def test_name_that_is_no_identifier(tmp_path: Path) -> None:
    write(tmp_path, f"PROBE = {FIELDS!r}", "kernel copy.py")
    with pytest.raises(EnvcheckError, match="the name of the file is not a Python identifier"):
        probes_in(tmp_path)


def test_file_that_cannot_be_decoded(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(EnvcheckError, match=r"kernel\.py has no usable header PROBE: 'utf-8' codec"):
        probes_in(tmp_path)
