"""The probe ``example_thing``, on constructed trees."""

from tests.probes.conftest import BuildRoot, RunProbe


def test_the_fact_is_read_with_its_source(run_probe: RunProbe, build_root: BuildRoot) -> None:
    root = build_root(None, {"/proc/sys/kernel/osrelease": "6.1.0-18-amd64\n"})
    snapshot, done = run_probe("example_thing", {"root": root})
    assert done["status"] == "ok"
    assert snapshot.platform is not None
    assert snapshot.platform.kernel_release == "6.1.0-18-amd64"
    assert snapshot.platform.source_of("kernel_release") == "file /proc/sys/kernel/osrelease"


def test_nothing_is_claimed_without_the_file(run_probe: RunProbe, build_root: BuildRoot) -> None:
    snapshot, done = run_probe("example_thing", {"root": build_root()})
    assert done["status"] == "absent"
    assert snapshot.platform is None
