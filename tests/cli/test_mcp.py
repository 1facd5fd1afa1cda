"""``envcheck mcp`` with the client of the protocol's own SDK, in a process of its own."""

import asyncio
import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from envcheck.cli.verbs.mcp import run
from envcheck.errors import UsageError
from tests.cli.calling import envcheck
from tests.installed import INSTALLED

Call = tuple[str, dict[str, Any]]
ERROR = "RuntimeError: CUDA error: no kernel image is available for execution on the device"
BLACKWELL = "gpu==RTX 5090,driver==570.86.10"
COMPONENTS = ["torch==2.5.1+cu124", "gpu==RTX 5090"]
CALLS: tuple[Call, ...] = (
    ("explain", {"text": ERROR, "assume": BLACKWELL}), ("more", {"handle": "answer-1", "offset": 2}),
    ("matrix_check", {"components": COMPONENTS}), ("plan", {"packages": ["torch"], "assume": BLACKWELL}),
    ("rule", {"name": "gpu-code-missing"}), ("check", {"deep": True}), ("check", {"plan": ["--deep"]}),
    ("plan", {"packages": ["--resolve"], "assume": BLACKWELL}), ("rule", {"name": "--help"}),
    ("matrix_check", {"components": ["--matrix=rows"]}), ("more", {"handle": "answer-9"}),
)  # fmt: skip


@pytest.fixture(scope="module")
def answers() -> list[Any]:
    """The tools, then what each call answers. Each worker collects this module, and one needs the SDK."""
    mcp: Any = pytest.importorskip("mcp", reason="the extra 'mcp' is not installed")

    async def talk() -> list[Any]:
        server = mcp.StdioServerParameters(
            command=sys.executable, args=["-m", "envcheck", "mcp"], cwd=INSTALLED, env={"PYTHONPATH": str(INSTALLED)}
        )
        async with mcp.stdio_client(server) as (read, write), mcp.ClientSession(read, write) as session:
            await session.initialize()
            tools = (await session.list_tools()).tools
            return [tools, *[await session.call_tool(name, arguments) for name, arguments in CALLS]]

    return asyncio.run(talk())


def test_tools_only_look_and_answer_as_the_command_line_does(answers: list[Any], tmp_path: Path) -> None:
    tools, explained, _, fit, chosen, rule, *_ = answers
    assert {tool.name for tool in tools} == {"check", "explain", "plan", "matrix_check", "rule", "more"}
    assert all(tool.annotations.read_only_hint and not tool.annotations.destructive_hint for tool in tools)
    assert fit.structured_content["data"] == envcheck("matrix", "check", *COMPONENTS, "--json", cwd=tmp_path).out
    assert fit.structured_content["status"] == "finding"
    assert "gpu-code-missing" in explained.structured_content["data"]
    schema = json.loads(envcheck("schema", "plan", cwd=tmp_path).out)
    jsonschema.Draft202012Validator(schema).validate(json.loads(chosen.structured_content["data"]))
    assert rule.structured_content["status"] == "ok"
    assert all(sum(len(part.text) for part in each.content) <= 4096 for each in (fit, explained, chosen, rule))


def test_what_is_too_long_is_read_on_by_its_handle(answers: list[Any]) -> None:
    page, document = answers[1:3]
    assert page.structured_content["more"] == "answer-1"
    rest = document.structured_content
    end, _, whole = rest["status"].partition(" of ")
    assert rest["data"].startswith('  "schema_version"')
    assert int(end) < int(whole.partition(" ")[0])
    assert rest["more"] == "answer-1"


def test_no_word_of_the_agent_is_an_option_or_starts_anything(answers: list[Any]) -> None:
    refused = [answer.structured_content for answer in answers[6:]]
    assert len(refused) == 6
    assert {answer["status"] for answer in refused} == {"usage"}
    assert "--allow-deep" in refused[0]["data"]


def test_without_the_extra_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server", None)
    with pytest.raises(UsageError, match=r"pip install 'gpu-envcheck\[mcp\]'"):
        run(Namespace(allow_deep=False))
