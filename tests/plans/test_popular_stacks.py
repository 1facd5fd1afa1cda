"""What resolvers install for popular requirements: judged as a plan, and as the list of an environment, without alarm.

The first line of each list says how an installer made it; ``tests/lab/test_popular_stacks.py`` installs the same.
"""

from pathlib import Path

from envcheck.importers import read_text
from envcheck.model.checks import Report
from envcheck.model.components import parse_components
from envcheck.pipeline import session
from envcheck.pipeline.request import Request
from tests.every import cases
from tests.plans.reading import judge, plan

FOLDER = Path(__file__).parent / "popular"
NEWER, OLDER = "gpu==H100,driver==580.95.05", "gpu==RTX 4090,driver==570.86.10"
TRUE = {"cupy": {"numpy-abi-mismatch"}}
"""numba-cuda admits NumPy 2.5, and compiles no kernel beside it."""


def alarms(report: Report) -> set[str]:
    return {check.rule for check in report.checks if check.status in ("fail", "warn")}


@cases("name, machine",
    ("vllm", NEWER), ("transformers", NEWER), ("diffusers", NEWER), ("jax13", NEWER), ("onnxruntime", NEWER),
    *((name, machine) for name in ("jax12", "tensorflow", "cupy", "torch22") for machine in (NEWER, OLDER)),
)  # fmt: skip
def test_what_a_resolver_chose_is_left_in_peace(name: str, machine: str, tmp_path: Path) -> None:
    true, text = TRUE.get(name, set()), (FOLDER / f"{name}.txt").read_text()
    planned = plan(tmp_path, "3.11" if name == "torch22" else "3.12", requirements__txt=text)
    assert alarms(judge(planned, machine)) == true
    listed = Request(assume=parse_components(machine))
    assert alarms(session.judge(read_text(f"$ pip freeze\n{text}"), listed)) <= true
