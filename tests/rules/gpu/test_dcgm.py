"""What DCGM found, and which rule tells it."""

from typing import Any

from envcheck.model.snapshot import Dcgm, Incident, Snapshot
from tests.every import cases, every
from tests.rules.machines import but, check_of, machine, statuses

DCGM: dict[str, Any] = {"source": "dcgmi health"}
REMAP = Incident(**DCGM, subject="GPU 1", status="warn", watch="Memory system", text="GPU 1: row remaps are pending")
LINK = Incident(**DCGM, subject="GPU 5", status="fail", watch="NVLINK system", text="GPU 5's NvLink link 3 is down")
LOST = Incident(**DCGM, subject="GPU 3", status="fail", text="GPU 3 has fallen off the bus", pci_bus_id="0000:5d:00.0")
MMU = Incident(**DCGM, subject="GPU 0", status="warn", text="Detected XID 31 for GPU 0", xid=31)

IMEX_TEXT = "IMEX daemon status is -3 (not READY)"
IMEX = Incident(**DCGM, subject="this machine", status="fail", watch="NVLINK system", text=IMEX_TEXT)


def of(*incidents: Incident, **fields: Any) -> Snapshot:
    return but(machine(), dcgm=Dcgm(source="dcgmi", incidents=incidents, **fields))


SILENT = but(machine(), dcgm=Dcgm(source="dcgmi", why_not="Error: Health watches not enabled"))
CASES: list[tuple[str, str, Snapshot, tuple[str, ...]]] = [
    ("dcgm-unhealthy", "a failure among warnings", of(REMAP, LINK), ("fail",)),
    ("dcgm-unhealthy", "a warning", of(REMAP), ("warn",)),
    ("dcgm-unhealthy", "what only jobs on several nodes need", of(IMEX), ("warn",)),
    ("dcgm-unhealthy", "a link beside it", of(IMEX, LINK), ("fail",)),
    ("dcgm-unhealthy", "none", of(), ("pass",)),
    ("dcgm-unhealthy", "an Xid that another rule tells", of(MMU), ("pass",)),
    ("dcgm-unhealthy", "it does not answer", SILENT, ("skipped",)),
    ("dcgm-unhealthy", "it is not installed", machine(), ()),
    ("gpu-error-logged", "an Xid that DCGM saw", of(MMU), ("warn",)),
    ("gpu-lost", "DCGM saw that it fell off the bus", of(LOST), ("fail",)),
]


@every(CASES)
def test_rule(rule: str, case: str, snapshot: Snapshot, expected: tuple[str, ...]) -> None:
    assert statuses(rule, snapshot) == expected


@cases("snapshot, title",
    (of(REMAP, LINK), "DCGM reports a failure of GPU 5 and GPU 1"),
    (of(IMEX), "DCGM reports a warning of this machine"),
    (of(tests=("software", "memory")), "DCGM found nothing; its diagnostic passed: software, memory"),
    (of(MMU), "DCGM found nothing else"),
)  # fmt: skip
def test_what_it_says(snapshot: Snapshot, title: str) -> None:
    assert check_of("dcgm-unhealthy", snapshot).title == title


def test_a_finding_that_dcgm_confirms_is_one() -> None:
    assert check_of("dcgm-unhealthy", of(LOST)).explained_by == "gpu-lost@machine"
    assert [each.what for each in check_of("gpu-error-logged", of(MMU)).evidence] == ["DCGM"]
