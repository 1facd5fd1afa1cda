"""The rule ``repository-refused``, which error lines alone reveal."""

from envcheck.model.snapshot import Snapshot
from tests.every import every
from tests.rules.machines import check_of, error, machine, statuses

LINE = (
    "W: GPG error: https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2004/x86_64  InRelease: "
    "The following signatures couldn't be verified because the public key is not available: NO_PUBKEY A4B469963BF863CC"
)

CASES: list[tuple[str, str, Snapshot, tuple[str, ...]]] = [
    ("repository-refused", "a key of NVIDIA's is missing", error(LINE), ("fail",)),
    ("repository-refused", "the key is another's", error(LINE.replace("A4B469963BF863CC", "871920D1991BC93C")), ()),
    ("repository-refused", "it does not arise without a line", machine(), ()),
]
"""Rule, case, machine, expected statuses. Other tests take the machines from here."""


@every(CASES)
def test_rule(rule: str, case: str, snapshot: Snapshot, expected: tuple[str, ...]) -> None:
    assert statuses(rule, snapshot) == expected, case


def test_the_key_is_fetched_from_the_repository_that_the_line_names() -> None:
    found = check_of("repository-refused", error(LINE))
    assert found.fixes[0].command[-1].endswith("/compute/cuda/repos/ubuntu2004/x86_64/3bf863cc.pub")
