"""A configuration is found, and what is wrong in it is named by file and line."""

import json
import os
import tempfile
from pathlib import Path

import jsonschema
import msgspec
import pytest

from envcheck.config.describe import entries
from envcheck.config.find import find
from envcheck.config.meaning import of_gpus, options_of, policy
from envcheck.config.read import Configuration, read, schema
from envcheck.errors import UsageError
from envcheck.model.components import parse_components
from tests.every import cases, every, every_tabled
from tests.known import known

WHOLE = (Path(__file__).with_name("data") / "whole.toml").read_text(encoding="utf-8")


def written(folder: Path, text: str, name: str = "envcheck.toml") -> Configuration:
    (folder / name).write_text(text)
    return read(str(folder / name))


def refused(text: str, folder: Path) -> str:
    try:
        place = written(folder, text)
        options_of(place)
        of_gpus(place)
        policy(place)
    except UsageError as error:
        return str(error).replace(f"{folder}/", "")
    return ""


def test_everything_that_it_may_say(tmp_path: Path) -> None:
    place = written(tmp_path, WHOLE)
    assert options_of(place) == {
        "require": list(parse_components("torch>=2.4")), "scopes": frozenset({"node", "env"}), "skip": ["no-framework"],
        "fail_on": "warn", "format": "summary", "output": [f"json:{tmp_path}/out/report.json"],
    }  # fmt: skip
    assert list(map(str, of_gpus(place))) == ["gpus>=8", "gpu==H100|sm_90", "gpu-memory>=79GiB"]
    decided = known(policy(place))
    assert (decided.forbid, decided.severity) == (("cpu-only-build",), {"persistence-mode-off": "fail"})
    assert decided.shares == {"device-memory": 0.8}
    assert (decided.ignore[0].problem, str(decided.ignore[0].until)) == ("no-nvidia-gpu@machine", "2027-01-31")
    assert (decided.places["torch>=2.4"].line, decided.places["gpu-memory>=79GiB"].line) == (1, 11)


def test_what_it_may_say_is_valid_by_the_schema_and_what_is_written_is_read_again(tmp_path: Path) -> None:
    place = written(tmp_path, WHOLE)
    content = {key: value for key, value in json.loads(msgspec.json.encode(place.config)).items() if value is not None}
    jsonschema.Draft202012Validator(schema()).validate(content)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema()).validate({**content, "reqire": ["torch"]})
    assert written(tmp_path, "\n".join(entries(content))).config == place.config


@cases("section", "", "[tool.envcheck]\n")
def test_the_same_in_a_section(section: str, tmp_path: Path) -> None:
    place = written(tmp_path, f'{section}fail-on = "warn"\n', "pyproject.toml" if section else "envcheck.toml")
    assert place.value("fail-on") == "warn"
    assert place.line("fail-on") == 1 + bool(section)


@every_tabled
def test_what_is_wrong_is_named_with_its_line(text: str, message: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = refused(text, Path(folder))
    assert message in found, found
    assert "\n" not in found


@every(
    ("a" + ".a" * 300 + " = 1\n", "envcheck.toml:1: a key with more than 50 dots"),
    ('\n"a"' + ".a" * 300 + " = 1\n", "envcheck.toml:2: a key with more than 50 dots"),
    ("a = " + "[" * 5000 + "\n", "envcheck.toml:"),
)
def test_what_is_too_deep_is_refused(text: str, message: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert message in refused(text, Path(folder))


def test_the_nearest_file_counts(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "envcheck.toml").write_text("fail-on = 'warn'\n")
    (inner / "pyproject.toml").write_text("[project]\nname = 'envcheck'\n")
    found = known(find(str(inner)))
    assert found.path == f"{tmp_path}/envcheck.toml"
    (inner.parent / "pyproject.toml").write_text("[tool.envcheck]\nfail-on = 'fail'\n")
    found = known(find(str(inner)))
    assert found.path == f"{tmp_path}/a/pyproject.toml"
    (inner.parent / "envcheck.toml").write_text("fail-on = 'warn'\n")
    found = known(find(str(inner)))
    assert found.path == f"{tmp_path}/a/envcheck.toml"


def test_one_that_cannot_be_read_is_no_absent_one(tmp_path: Path) -> None:
    (tmp_path / "envcheck.toml").mkdir()
    with pytest.raises(UsageError, match=r"cannot read the configuration .*envcheck\.toml.*--no-config"):
        find(str(tmp_path))
    (tmp_path / "envcheck.toml").rmdir()
    os.mkfifo(tmp_path / "envcheck.toml")
    with pytest.raises(UsageError, match="not a regular file"):
        find(str(tmp_path))
    with pytest.raises(UsageError, match="No such file"):
        read(str(tmp_path / "nothing.toml"))
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    with pytest.raises(UsageError, match=r"has no \[tool.envcheck\]"):
        read(str(tmp_path / "pyproject.toml"))


def test_hostile_texts_are_written_so_that_they_are_read_as_they_are(tmp_path: Path) -> None:
    hostile = {"require": ['a"\n[x]\\', "\x7f\x1b[31m'"], "target": {'a"b\n]': {"gpu": "é\u2028\u0000"}}}
    place = written(tmp_path, "\n".join(entries(hostile)))
    assert list(place.value("require")) == hostile["require"]
    assert place.config.target == hostile["target"]
    assert json.dumps(entries(hostile)).isascii()
