"""How CUDA reads CUDA_VISIBLE_DEVICES, against what cuInit answered on two H200 (driver 580)."""

from __future__ import annotations

import pytest

from envcheck.compat.relations.variables import hides_all, read_visible
from envcheck.snapshot import Gpu, Mig
from tests.every import every

U0, U1 = "GPU-bebd79c4-790f-694b-5d21-69e019bf01ce", "GPU-b2b71e50-b73a-656e-f034-82e481296e80"
GPUS = tuple(Gpu(source="nvml", uuid=uuid, index=at, mig=Mig(enabled=False)) for at, uuid in enumerate((U0, U1)))

NONE = """abc -1 -2 -1,0 ,0 , 5 5,0 99 2147483647 2147483648 99999999999999999999 all none None void NoDevFiles GPU0
cuda:0 null "0" '0' [0] GPU- GPU G GPU-deadbeef MIG- MIG-deadbeef MIG-0"""
ONE = "0 +0 00 0.5 0;1 0-1 0:1 0abc 0x0 0,-1 0,-1,1 0, 0,,1 0,5 0,5,0 4294967296 4294967297 0:0 0,MIG-deadbeef"
MEASURED = {
    0: [*NONE.split(), " ", U0.lower(), U0[4:], f" {U0}", U0.replace("-", ""), f"GPU-deadbeef,{U0}", f"GPU-,{U0}"],
    1: [
        *ONE.split(),
        " 0",
        "0 ",
        "0 1",
        *(f"{U0}{more}" for more in ("", "x", "0", " ", ",", ",0", ",1", ",abc", ",-1")),
    ],
    2: ["0,1,", "0,1", "1,0", f"{U0},{U1}", f"{U1},{U0}"],
}
MEASURED[0] += [f"MIG-{U0}/0/0"]
MEASURED[1] += [f"0,{U0}", f"0,{U1}", f"1,{U0}", U0[:12], U0[:-1], f"GPU-{U0[4:].upper()}", f"MIG-{U0[4:]}"]
MEASURED[1] += [f"{U0},GPU-deadbeef", f"{U0},MIG-deadbeef"]
REFUSED = ["0 ,0", "0,0", "1,1", "0,1,0", "0,1,1", f"{U0},{U0}", f"{U0[:12]},{U0}"]


@every([(count, value) for count, values in MEASURED.items() for value in values])
def test_as_many_are_visible_as_cuda_showed(visible: int, value: str) -> None:
    reading = read_visible(value, GPUS)
    assert (0 if hides_all(value) else reading.visible) == visible
    assert not reading.refused


@pytest.mark.parametrize("value", REFUSED)
def test_a_gpu_named_twice_is_refused(value: str) -> None:
    reading = read_visible(value, GPUS)
    assert (reading.refused, reading.visible) == (True, 0)
    assert reading.problem
    assert reading.problem.kind == "twice"


@every(["0", "0,1", U0, f"{U0},{U1}", "0,-1", "1,", "MIG-8c1d", "17"])
def test_nothing_is_wrong_where_the_gpus_are_not_known(value: str) -> None:
    assert read_visible(value, None).problem is None
