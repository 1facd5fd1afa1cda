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
from tests.every import cases, every
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


@every(
    ("", "envcheck.toml:1: the configuration is empty"),
    ("# nothing\n", "envcheck.toml:1: the configuration is empty"),
    ("[tool.envcheck]\n", "envcheck.toml:1: the configuration is empty"),
    ("fail-on = 'warn'\nrequire = [\n", "envcheck.toml:3: no valid TOML"),
    ("fail-on = \n", "envcheck.toml:1: no valid TOML"),
    ("\nreqire = ['a']\n", "envcheck.toml:2: there is no key 'reqire': did you mean 'require'?"),
    ("fail-on = 'never'\n", "envcheck.toml:1: fail-on: write fail or warn"),
    ("scope = ['node',\n'nod']\n", "envcheck.toml:2: scope[1]: write a list of node, container, env"),
    ("require = 'torch'\n", "envcheck.toml:1: require: expected a list, got a text"),
    ("require = []\n", "envcheck.toml:1: require: expected a list of length >= 1"),
    ("require = ['torch>=2',\n'torch']\n", "envcheck.toml:2: require: cannot read 'torch'"),
    ("require = ['torch>=x']\n", "envcheck.toml:1: require: torch>=x: 'x' is not a version"),
    ("format = 'jsno'\n", "envcheck.toml:1: there is no format 'jsno': did you mean 'json'?"),
    ("output = ['json']\n", "envcheck.toml:1: output: write FORMAT:FILE"),
    ("output = ['json:/tmp/x']\n", "'/tmp/x' is not in the folder of the configuration"),
    ("output = ['json:../x']\n", "'../x' is not in the folder of the configuration"),
    ("[gpus]\n", "envcheck.toml:1: gpus: it is empty"),
    ("[gpus]\ncount = 'many'\n", "envcheck.toml:2: gpus: gpus==many: 'many' is not a version"),
    ("[gpus]\nmemory = '80'\n", "envcheck.toml:2: gpus: gpu-memory>=80: write a size"),
    ("[gpus]\nmodel = ['H100']\n", "envcheck.toml:2: there is no key 'model': did you mean 'models'?"),
    ("[gpus]\nmodels = ['H100\"']\n", "envcheck.toml:2: gpus.models: 'H100\"' is no name of a model"),
    ("[severity]\nno-framework = 'none'\n", "envcheck.toml:2: severity.no-framework: write note, warn, fail"),
    ("[severity]\nno-framewrk = 'warn'\n", "envcheck.toml:2: severity: there is no rule 'no-framewrk': did"),
    ("severity = 3\n", "envcheck.toml:1: severity: write a table, [severity]"),
    ("forbid = ['x',\n'y']\n", "envcheck.toml:1: forbid: there is no rule 'x'"),
    ("forbid = ['no-framework']\nseverity.no-framework = 'warn'\n", "envcheck.toml:2: severity: no-framework is"),
    ("[minimum-share]\ngemm = 80\n", "envcheck.toml:2: minimum-share.gemm: expected a number <= 1"),
    ("[minimum-share]\ngem = 0.8\n", "envcheck.toml:2: minimum-share: there is no quantity 'gem': did"),
    ("[[ignore]]\nproblem = 'no-framework'\nuntil = 2027-01-01\n", "envcheck.toml:1: ignore[0]: the key 'reas"),
    ("[[ignore]]\nproblem = 'no-framework'\nreason = 'x'\nuntil = 'soon'\n",
     "envcheck.toml:4: ignore[0].until: write a date"),
    ("[[ignore]]\nproblem = 'no-framework'\nreason = ''\nuntil = 2027-01-01\n",
     "envcheck.toml:3: ignore[0].reason: expected a text of length >= 1"),
    ("[target.a]\n", "envcheck.toml:1: target a: it is empty"),
    ("[target.a]\npython = 3.1\n", "envcheck.toml:2: target a: python: write a text"),
    ("a" + ".a" * 300 + " = 1\n", "envcheck.toml:1: a key with more than 50 dots"),
    ('\n"a"' + ".a" * 300 + " = 1\n", "envcheck.toml:2: a key with more than 50 dots"),
    ("a = " + "[" * 5000 + "\n", "envcheck.toml:"),
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_line(text: str, message: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = refused(text, Path(folder))
    assert message in found, found
    assert "\n" not in found


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
