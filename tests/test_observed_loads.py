"""What a process held stands in for what the search over files did not find."""

from __future__ import annotations

from envcheck.enrich.loads import SOURCE, observed_loads
from envcheck.snapshot import Environment, Framework, Listing, Load, Loaded, Snapshot, Trial

CUDNN = "/opt/cudnn/libcudnn.so.9.1.0"


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
    (found,) = loads_of(observed_loads(snapshot(Framework(name="torch", loads=(load(),), trial=trial(CUDNN)))))
    assert (found.path, found.version, found.unfound) == (CUDNN, "9.1.0", ())
    assert found.source_of("path") == SOURCE


def test_what_was_predicted_stays() -> None:
    given = snapshot(Framework(name="torch", loads=(load(path="/wheel/libcudnn.so.9"),), trial=trial(CUDNN)))
    assert observed_loads(given) is given


def test_another_major_is_another_library() -> None:
    for held in ("/opt/libcudnn.so.8", "/opt/libcudnn.so.90", "/opt/libcudnn_ops.so.9"):
        given = snapshot(Framework(name="torch", loads=(load(),), trial=trial(held)))
        assert observed_loads(given) is given


def test_a_plugin_is_loaded_by_its_framework_and_others_are_not() -> None:
    jax = Framework(name="jax", trial=trial(CUDNN))
    plugin = Framework(name="jax-cuda12-plugin", extends="jax", loads=(load(),))
    other = Framework(name="torch", loads=(load(),))
    found = observed_loads(snapshot(jax, plugin, other))
    assert loads_of(found, "jax-cuda12-plugin")[0].path == CUDNN
    assert loads_of(found, "torch")[0].path is None


def test_without_trials_nothing_changes() -> None:
    given = snapshot(Framework(name="torch", loads=(load(),)))
    assert observed_loads(given) is given
    assert observed_loads(Snapshot()) == Snapshot()
