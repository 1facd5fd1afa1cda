"""Linux distributions: a release stands for its glibc, by which pip chooses among wheels."""

from itertools import product

from envcheck.bundle import folder
from envcheck.importers.formats.operating_system import from_title
from envcheck.knowledge.compiling import read_rows
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.names import SYSTEMS
from envcheck.knowledge.specifier import Version, parse_specifier
from envcheck.knowledge.tables.software import DistributionRow, ReleaseRow
from tests.every import every
from tests.knowledge.asking import assert_does_not_fit, assert_fits, judged, shown, verdict
from tests.thorough import sample

MATRIX = load_matrix()
ROWS = [row for name in sorted(MATRIX.distribution_names) for row in MATRIX.rows_of(name)]
PACKAGES = ("torch==2.8.0", "numpy==2.3.0", "jaxlib==0.7.2", "transformers==4.50.0", "rapids==25.12", "vllm==0.9.0")


def test_questions_can_name_every_distribution_that_has_releases() -> None:
    described = {row["name"] for row in read_rows(folder("matrix") / "systems.toml", "release")}
    assert described
    assert described <= MATRIX.distribution_names


@every(MATRIX.distributions)
def test_the_titles_of_a_distribution_are_its_own(row: DistributionRow) -> None:
    for title in row.titles:
        found = from_title(title.title())
        assert found is not None
        assert found.distribution == row.name


@every(sorted(MATRIX.wheels_of_libraries))
def test_what_tells_the_glibc_of_a_library_has_wheels(name: str) -> None:
    wheels = {MATRIX.wheels_of_libraries[name].format(major) for major in (11, 12, 13)}
    assert any(row.glibc for wheel in wheels for row in MATRIX.wheels_by_name[wheel])


@every(sample(ROWS))
def test_a_distribution_is_asked_as_its_glibc_is(row: ReleaseRow) -> None:
    release, libc = row.versions.removeprefix("=="), row.bundles["glibc"]
    assert row.needs == {"glibc": f"=={libc}"}
    for package in PACKAGES:
        wanted = verdict(f"{package} glibc=={libc}")
        asked = (f"os=={row.name}{release} {package}", f"{row.name}=={release} {package}")
        for question in asked:
            assert verdict(question) in (wanted, "unknown" if wanted == "compatible" else wanted), question
        assert verdict(asked[0]) == wanted, asked[0]


@every(ROWS)
def test_a_distribution_has_no_other_glibc(row: ReleaseRow) -> None:
    release = row.versions.removeprefix("==")
    assert_fits(f"{row.name}=={release} glibc=={row.bundles['glibc']}")
    assert_does_not_fit(f"{row.name}=={release} glibc==2.4")


def test_the_distribution_in_an_image_decides() -> None:
    found = judged("nvcr==nvidia/cuda:11.2.2-base-ubuntu18.04 torch==2.8.0 os==ubuntu24.04")
    assert found.verdict == "incompatible", shown(found)
    assert "it comes with ubuntu 18.04" in found.reasons[0].message


@every(sample([row for row in ROWS if row.toolkits]))
def test_toolkits_that_nvidia_provides_for_a_distribution(row: ReleaseRow) -> None:
    release = row.versions.removeprefix("==")
    for toolkit, known in MATRIX.cuda_rows.items():
        if not known.toolkit:
            continue
        provided = parse_specifier(row.toolkits).cover(Version((toolkit.major, toolkit.minor))) == "all"
        for named in (f"os=={row.name}{release}", f"{row.name}=={release}"):
            found = judged(f"{named} cuda=={toolkit}")
            assert found.verdict == ("compatible" if provided else "unknown"), shown(found)


@every([row for row in MATRIX.rows_of("xgboost") if "glibc" in row.needs])
def test_a_wheel_without_gpu_code_serves_an_old_glibc_where_no_gpu_is_asked(row: ReleaseRow) -> None:
    release = f"xgboost=={row.versions.partition(',')[0].removeprefix('>=')}"
    for old in ("os==centos7", "glibc==2.17"):
        assert_fits(f"{old} {release}")
        assert_does_not_fit(f"{old} {release} gpu==A100")
        assert_does_not_fit(f"{old} {release} cuda=={row.cuda}")
    assert_fits(f"os==rocky8 {release} gpu==A100")


DROPPED = [
    ("8.6.1", ()),
    *[(one, ("ubuntu18.04",)) for one in ("9.0.1", "9.1.0", "9.2.0", "9.3.0")],
    *[(f"10.{minor}.0", ("ubuntu18.04", "rhel7", "centos7")) for minor in range(14)],
    *[
        (one, ("ubuntu18.04", "ubuntu20.04", "rhel7", "centos7"))
        for one in ("10.13.2", "10.14.1", "10.15.1", "11.0.0", "11.4.0")
    ],
]
"""Releases of TensorRT, and the systems that its list of changes had dropped by then."""


@every(DROPPED)
def test_a_system_that_tensorrt_dropped_is_refused(release: str, dropped: tuple[str, ...]) -> None:
    names = ["tensorrt", *(["tensorrt-cu12"] if release.startswith("1") else [])]
    for name, system in product(names, ("ubuntu18.04", "ubuntu20.04", "ubuntu22.04", "rhel7", "centos7", "rhel8")):
        assert (verdict(f"{name}=={release} os=={system}") == "incompatible") == (system in dropped), (name, system)


@every([row for row in MATRIX.releases if MATRIX.distribution_names & row.needs.keys() and row.name not in SYSTEMS])
def test_a_distribution_that_was_dropped_is_not_taken_up_again(row: ReleaseRow) -> None:
    later = [other for other in MATRIX.rows_of(row.name) if min_of(other.versions) > min_of(row.versions)]
    for name in sorted(MATRIX.distribution_names & row.needs.keys()):
        for other in later:
            assert min_of(other.needs.get(name, row.needs[name])) >= min_of(row.needs[name]), (name, other.versions)


def min_of(spec: str) -> tuple[int, ...]:
    return min(bound.numbers for bound in parse_specifier(spec).bounds)
