"""Names of GPUs as people and tools write them, and how CUDA reads CUDA_VISIBLE_DEVICES."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envcheck.compat.lookup import look_up
from envcheck.knowledge.gpu_names import name_keys
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.relations.variables import hides_all, read_visible
from envcheck.model.components import Bound, Component
from envcheck.model.snapshot import Gpu, Mig
from tests.every import every, every_tabled
from tests.knowledge.asking import judged, verdict
from tests.known import known

MATRIX = load_matrix()


@every_tabled
def test_a_name_as_people_and_tools_write_it(written: str, model: str, capability: str) -> None:
    found = known(MATRIX.find_gpu(written))
    assert (found.name, found.compute_capability) == (model, capability)


@every_tabled
def test_a_name_that_is_none_or_says_too_little(written: str) -> None:
    assert MATRIX.find_gpu(written) is None


def test_a_name_without_end_is_none() -> None:
    assert MATRIX.find_gpu("x" * 500) is None


def test_an_unlisted_size_has_what_all_variants_share() -> None:
    found = known(MATRIX.find_gpu("V100 64GB"))
    assert (found.name, found.compute_capability, found.memory) == ("V100", "7.0", None)
    assert known(MATRIX.find_gpu("Tesla V100-SXM2-32GB")).memory == 32 * 2**30


def test_every_row_is_found_by_each_of_its_names() -> None:
    for row in MATRIX.gpus:
        for name in (row.name, *row.aliases):
            for written in (name, f"NVIDIA {name}", name.upper(), name.lower()):
                assert MATRIX.find_gpu(written) == row


def test_a_model_that_laptops_alone_have_is_found_without_that_word() -> None:
    names = {row.name for row in MATRIX.gpus}
    bare = {name.removesuffix(" Laptop GPU"): name for name in names if name.endswith(" Laptop GPU")}
    alone = {short: name for short, name in bare.items() if short not in names}
    assert len(alone) > 10
    for short, name in alone.items():
        found, meant = MATRIX.find_gpu(short), MATRIX.find_gpu(name)
        assert known(found).compute_capability == known(meant).compute_capability, short


def test_a_pci_id_names_a_model_only_where_it_is_its_alone() -> None:
    assert known(MATRIX.find_gpu_by_pci_id("10DE:2335")).name == "H200"
    assert MATRIX.find_gpu_by_pci_id("10de:1e30") is None, "Quadro RTX 6000 and 8000 share it"
    assert MATRIX.find_gpu_by_pci_id("10de:ffff") is None


@given(st.text(max_size=150))
def test_no_text_breaks_it(text: str) -> None:
    assert MATRIX.find_gpu(text) is None or name_keys((text,))[0]


@every([name for row in MATRIX.shared_names for name in (row.name, *row.aliases)])
def test_a_name_of_several_gpus_is_judged_by_what_holds_for_each(name: str) -> None:
    """Software of all ages: what fits each is compatible, what fits none incompatible, and else nobody can tell."""
    row = known(MATRIX.find_shared_name(f"NVIDIA {name}"))
    assert MATRIX.find_gpu(name) is None
    written = name.replace(" ", ",")
    for beside in ("cuda==8.0", "cuda==9.2", "cuda==11.4", "cuda==13.0", "driver-linux==390.157", "torch==2.9.1"):
        each = {verdict(f"{beside} gpu=={one}") for one in row.compute_capabilities}
        assert verdict(f"{beside} gpu=={written}") == (each.pop() if len(each) == 1 else "unknown"), beside


def test_an_answer_about_a_name_of_several_gpus_names_them() -> None:
    found = judged("cuda==9.2 gpu==GT,730")
    assert found.verdict == "unknown"
    assert "GeForce GT 730 may have compute capability 2.1, 3.0 or 3.5" in found.reasons[0].message
    page = known(look_up(MATRIX, Component("gpu", (Bound("==", "GT 730"),))))
    assert page.facts[0]["compute_capabilities"] == ("2.1", "3.0", "3.5")


# --- How CUDA reads CUDA_VISIBLE_DEVICES, against what cuInit answered on two H200 (driver 580) ---------------------
U0, U1 = "GPU-bebd79c4-790f-694b-5d21-69e019bf01ce", "GPU-b2b71e50-b73a-656e-f034-82e481296e80"
GPUS = tuple(Gpu(source="nvml", uuid=uuid, index=at, mig=Mig(enabled=False)) for at, uuid in enumerate((U0, U1)))

NONE = """abc -1 -2 -1,0 ,0 , 5 5,0 99 2147483647 2147483648 99999999999999999999 all none None void NoDevFiles GPU0
cuda:0 null "0" '0' [0] GPU- GPU G GPU-deadbeef MIG- MIG-deadbeef MIG-0"""
ONE = "0 +0 00 0.5 0;1 0-1 0:1 0abc 0x0 0,-1 0,-1,1 0, 0,,1 0,5 0,5,0 4294967296 4294967297 0:0 0,MIG-deadbeef"
MEASURED = {
    0: [*NONE.split(), " ", U0.lower(), U0[4:], f" {U0}", U0.replace("-", ""), f"GPU-deadbeef,{U0}", f"GPU-,{U0}"],
    1: [
        *ONE.split(), " 0", "0 ", "0 1",
        *(f"{U0}{more}" for more in ("", "x", "0", " ", ",", ",0", ",1", ",abc", ",-1")),
    ],
    2: ["0,1,", "0,1", "1,0", f"{U0},{U1}", f"{U1},{U0}"],
}  # fmt: skip
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
    assert (reading.refused, reading.visible, known(reading.problem).kind) == (True, 0, "twice")


@every("0", "0,1", U0, f"{U0},{U1}", "0,-1", "1,", "MIG-8c1d", "17")
def test_nothing_is_wrong_where_the_gpus_are_not_known(value: str) -> None:
    assert read_visible(value, None).problem is None
