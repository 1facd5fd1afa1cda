from __future__ import annotations

from envcheck.snapshot import Driver, Gpu, Listing, Memory, ProbeRun, Snapshot, Variables
from envcheck.snapshot.merge import merge


def gpus(*items: Gpu, complete: bool = False) -> Snapshot:
    return Snapshot(gpus=Listing(items=items, complete=complete))


def test_gpus_are_joined_by_bus_id_or_uuid_and_never_by_position() -> None:
    merged = merge(
        [
            gpus(
                Gpu(source="sysfs", pci_bus_id="0000:2a:00.0", kernel_driver="nvidia"),
                Gpu(source="sysfs", pci_bus_id="0000:1b:00.0"),
            ),
            gpus(
                Gpu(source="nvml", pci_bus_id="0000:1b:00.0", uuid="GPU-a", index=0),
                Gpu(source="nvml", pci_bus_id="0000:2a:00.0", uuid="GPU-b", index=1),
            ),
            gpus(Gpu(source="cuda", uuid="GPU-b", cuda_ordinal=0), complete=True),
        ]
    )
    assert merged.gpus is not None
    assert merged.gpus.complete
    assert [(gpu.pci_bus_id, gpu.uuid, gpu.index, gpu.cuda_ordinal) for gpu in merged.gpus.items] == [
        ("0000:2a:00.0", "GPU-b", 1, 0),
        ("0000:1b:00.0", "GPU-a", 0, None),
    ]
    joined = merged.gpus.items[0]
    assert (joined.source_of("kernel_driver"), joined.source_of("index"), joined.source_of("cuda_ordinal")) == (
        "sysfs",
        "nvml",
        "cuda",
    )
    assert merged.disagreements == ()


def test_the_first_source_decides_and_the_other_is_kept_as_evidence() -> None:
    merged = merge(
        [
            Snapshot(driver=Driver(source="nvml", release="550.54.14")),
            Snapshot(driver=Driver(source="file", release="535.1")),
        ]
    )
    assert merged.driver is not None
    assert merged.driver.release == "550.54.14"
    (clash,) = merged.disagreements
    assert clash.path == "driver.release"
    assert [(reading.value, reading.source) for reading in clash.readings] == [("550.54.14", "nvml"), ("535.1", "file")]


def test_a_moving_quantity_is_no_disagreement() -> None:
    one = gpus(Gpu(pci_bus_id="0000:01:00.0", memory=Memory(total=10, used=1)))
    assert merge([one, gpus(Gpu(pci_bus_id="0000:01:00.0", memory=Memory(total=10, used=2)))]).disagreements == ()


def test_nobody_looked_stays_apart_from_looked_and_absent() -> None:
    assert merge([Snapshot()]).gpus is None
    assert merge([Snapshot(), gpus(complete=True)]).gpus == Listing(items=(), complete=True)
    assert merge([gpus(), gpus()]).gpus == Listing(items=(), complete=False)


def test_runs_are_collected_and_variables_joined() -> None:
    merged = merge(
        [
            Snapshot(runs=(ProbeRun(name="a", status="ok"),), variables=Variables(values={"A": "1"})),
            Snapshot(
                runs=(ProbeRun(name="b", status="crashed"),),
                variables=Variables(values={"A": "2", "B": "3"}, complete=True),
            ),
        ]
    )
    assert [run.name for run in merged.runs] == ["a", "b"]
    assert merged.variables is not None
    assert merged.variables.values == {"A": "1", "B": "3"}
    assert merged.variables.complete


def test_merging_is_idempotent() -> None:
    part = gpus(
        Gpu(source="nvml", pci_bus_id="0000:01:00.0", name="NVIDIA H200", memory=Memory(total=10)), complete=True
    )
    assert merge([part, part]) == merge([part])
