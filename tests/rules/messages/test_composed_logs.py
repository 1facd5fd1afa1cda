"""Which line of a log is the cause: the specific one, whatever follows from it and whatever stands around it."""

from envcheck.importers import read_text
from tests.every import every
from tests.rules.machines import cause, open_fails
from tests.rules.messages.logs import COMPOSED, CONSEQUENCES, HEALTHY, NOISE

WRAPPED = ("  {}", "[rank0]: {}", "(EngineCore_0 pid=4711) {}", "> {}", "{}   ", "\x1b[31m{}\x1b[0m")
"""How terminals, launchers and quoting change a line."""


@every(COMPOSED)
def test_the_specific_line_is_the_cause(name: str) -> None:
    log = COMPOSED[name]
    assert cause(read_text("\n".join(log.lines))) == log.cause


@every(COMPOSED)
def test_harmless_lines_around_it_change_nothing(name: str) -> None:
    log = COMPOSED[name]
    text = "\n".join((*NOISE, *(each for line in log.lines for each in (line, NOISE[len(line) % len(NOISE)])), *NOISE))
    assert cause(read_text(text)) == log.cause


@every([(name, wrapped) for name in COMPOSED for wrapped in WRAPPED])
def test_how_lines_are_wrapped_changes_nothing(name: str, wrapped: str) -> None:
    log = COMPOSED[name]
    assert cause(read_text("\n".join(wrapped.format(line) for line in log.lines))) == log.cause


@every(COMPOSED)
def test_the_log_after_the_same_log_changes_nothing(name: str) -> None:
    """A job that is tried again prints its failure again."""
    log = COMPOSED[name]
    assert cause(read_text("\n".join(log.lines * 3))) == log.cause


def test_harmless_lines_alone_fail_nothing() -> None:
    assert open_fails(read_text("\n".join(NOISE))) == []
    for line in NOISE:
        assert open_fails(read_text(f"torch 2.5.1+cu124\n{line}")) == []


@every([(name, direction) for name in CONSEQUENCES for direction in (1, -1)])
def test_the_cause_outranks_its_consequence_in_either_order(name: str, direction: int) -> None:
    pair = CONSEQUENCES[name]
    assert cause(read_text("\n".join(pair.lines[::direction]))) == pair.cause


@every(HEALTHY)
def test_a_healthy_log_fails_nothing(name: str) -> None:
    assert open_fails(read_text("\n".join(HEALTHY[name].lines))) == []
