"""What several sources say, put together: facts, what a framework would load, and what a process held."""

from typing import Any

from envcheck.enrich.complete import MEMORY_MAP, join_loads, observed_loads, version_of
from envcheck.model.merge import merge
from envcheck.model.snapshot import (
    Driver,
    Environment,
    Framework,
    Gpu,
    Library,
    Listing,
    Load,
    Loaded,
    Memory,
    ProbeRun,
    Snapshot,
    Trial,
    Variables,
)
from tests.every import cases
from tests.known import known


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
    assert known(merged.driver).release == "550.54.14"
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


# --- What a framework would load meets the copies on disk -----------------------------------------------------------
VENV = "/venv"
CUDNN = "/venv/nvidia/cudnn/lib/libcudnn.so.9"


def copy(path: str = CUDNN, **fields: Any) -> Library:
    known = {"family": "cudnn", "soname": "libcudnn.so.9", "environment": VENV, "source": f"elf {path}"}
    return Library(path=path, **{**known, **fields})


def joined(load: Load, *copies: Library) -> Load:
    framework = Framework(name="torch", loads=(load,), source="test")
    environment = Environment(key=VENV, frameworks=Listing(items=(framework,), complete=True), source="test")
    result = join_loads(Snapshot(environments=Listing(items=(environment,)), libraries=Listing(items=copies)))
    assert join_loads(result) == result
    frameworks = known(result.environments).items[0].frameworks
    assert frameworks is not None
    assert frameworks.items[0].loads is not None
    return frameworks.items[0].loads[0]


def asked(path: str | None = CUDNN, **fields: Any) -> Load:
    return Load(name="libcudnn.so.9", needed_by="/venv/torch/lib/libtorch_cuda.so", path=path, source="elf x", **fields)


def test_owner_and_version_come_from_the_copy_at_that_path() -> None:
    owner, read = "nvidia-cudnn-cu12==9.1.0.70", {"owner": "wheel metadata", "declared": "wheel metadata"}
    load = joined(asked(), copy(owner=owner, declared="9.1.0.70", on_disk="9.1.0", read=read))
    assert (load.owner, load.version) == (owner, "9.1.0.70")
    assert load.source_of("owner") == "wheel metadata"


def test_the_longer_form_of_the_version_in_the_file_s_name() -> None:
    load = joined(asked(version="9.1.0"), copy(owner="libcudnn9 9.1.0.70-1", declared="9.1.0.70", on_disk="9.1.0"))
    assert load.version == "9.1.0.70"


def test_what_is_known_stays() -> None:
    load = asked(owner="somebody", version="8.9.2")
    assert joined(load, copy(owner="other", on_disk="9.1.0")) == load


def test_a_path_that_is_not_in_the_inventory_stays_without_owner() -> None:
    load = asked("/elsewhere/libcudnn.so.9")
    assert joined(load, copy(owner="other", on_disk="9.1.0")) == load


def test_copies_of_a_library_that_is_not_found_are_named_nearest_first() -> None:
    system = copy("/a/libcudnn.so.9.5.1", names=("/a/libcudnn.so.9",), soname=None, environment=None)
    stub = copy("/a/stubs/libcudnn.so.9", stub=True)
    other = copy("/a/libcudnn.so.8", soname="libcudnn.so.8")
    renamed = copy("/venv/vision.libs/libcudnn.e8e8b82a.so.9")  # its soname is the old name, by which no loader looks
    assert joined(asked(None), system, stub, other, renamed, copy()).unfound == (CUDNN, "/a/libcudnn.so.9.5.1")
    assert joined(asked(None, unfound=("/known",)), copy()).unfound == ("/known",)


def test_without_an_inventory_nothing_changes() -> None:
    snapshot = Snapshot(environments=Listing(items=(Environment(key=VENV, source="test"),)))
    assert join_loads(snapshot) is snapshot


@cases("fields, version",
    ({"declared": "9.1.0.70", "on_disk": "9.1.0"}, "9.1.0.70"),
    ({"declared": "9.1.0.70", "on_disk": "9.10.2"}, "9.10.2"),
    ({"declared": "9.1.0.70", "on_disk": "9.1.0", "loaded": "9.10.2"}, "9.10.2"),
    ({"declared": "9.1.0.70"}, "9.1.0.70"), ({"declared": "9.1.0.70", "altered": True}, None),
    ({"on_disk": "9.1.0"}, "9.1.0"), ({}, None),
)  # fmt: skip
def test_the_file_outranks_what_its_package_says(fields: dict[str, Any], version: str | None) -> None:
    assert version_of(copy(**fields)) == version


# --- What a process held stands in for what the search over files did not find --------------------------------------
CUDNN_OBSERVED = "/opt/cudnn/libcudnn.so.9.1.0"


def snapshot(*frameworks: Framework) -> Snapshot:
    environment = Environment(key="/env", judged=True, frameworks=Listing(items=frameworks, complete=True))
    return Snapshot(environments=Listing(items=(environment,), complete=True))


def load(name: str = "libcudnn.so.9", path: str | None = None) -> Load:
    unfound = () if path else ("/elsewhere/libcudnn.so.9",)
    return Load(source="elf", name=name, needed_by="/x", path=path, unfound=unfound)


def trial(*paths: str) -> Trial:
    return Trial(imported=True, libraries=tuple(Loaded(path=path, family="cudnn", version="9.1.0") for path in paths))


def loads_of(found: Snapshot, name: str = "torch") -> tuple[Load, ...]:
    assert found.environments
    (environment,) = found.environments.items
    assert environment.frameworks
    (framework,) = [item for item in environment.frameworks.items if item.name == name]
    return framework.loads or ()


def test_a_library_that_was_not_found_and_was_loaded() -> None:
    (found,) = loads_of(observed_loads(snapshot(Framework(name="torch", loads=(load(),), trial=trial(CUDNN_OBSERVED)))))
    assert (found.path, found.version, found.unfound) == (CUDNN_OBSERVED, "9.1.0", ())
    assert found.source_of("path") == MEMORY_MAP


def test_what_was_predicted_stays() -> None:
    given = snapshot(Framework(name="torch", loads=(load(path="/wheel/libcudnn.so.9"),), trial=trial(CUDNN_OBSERVED)))
    assert observed_loads(given) is given


def test_another_major_is_another_library() -> None:
    for held in ("/opt/libcudnn.so.8", "/opt/libcudnn.so.90", "/opt/libcudnn_ops.so.9"):
        given = snapshot(Framework(name="torch", loads=(load(),), trial=trial(held)))
        assert observed_loads(given) is given


def test_a_plugin_is_loaded_by_its_framework_and_others_are_not() -> None:
    jax = Framework(name="jax", trial=trial(CUDNN_OBSERVED))
    plugin = Framework(name="jax-cuda12-plugin", extends="jax", loads=(load(),))
    found = observed_loads(snapshot(jax, plugin, Framework(name="torch", loads=(load(),))))
    assert loads_of(found, "jax-cuda12-plugin")[0].path == CUDNN_OBSERVED
    assert loads_of(found, "torch")[0].path is None


def test_without_trials_nothing_changes() -> None:
    given = snapshot(Framework(name="torch", loads=(load(),)))
    assert observed_loads(given) is given
    assert observed_loads(Snapshot()) == Snapshot()
