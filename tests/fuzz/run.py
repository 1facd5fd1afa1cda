"""Coverage-guided fuzzing: ``python -m tests.fuzz.run [SECONDS [TARGET…]]``; needs atheris, the extra 'lab'.

The seconds (default: ENVCHECK_FUZZ_SECONDS, else 3600) are shared out among the targets, each in its own process.
An input that breaks a target is kept in ``tests/fuzz/corpus/TARGET``; the gate runs it from then on.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"


def one(target: str, arguments: list[str]) -> None:
    """Fuzz ``target`` in this process, which ends with it."""
    import atheris  # noqa: PLC0415  only the lab has it

    with atheris.instrument_imports(include=["envcheck", "probes"]):
        from tests.fuzz.targets import TARGETS  # noqa: PLC0415  to be instrumented
    atheris.Setup([sys.argv[0], *arguments], TARGETS[target])
    atheris.Fuzz()


def share(seconds: int, names: list[str]) -> int:
    """Fuzz one target after the other, say how many inputs each took, and return how many broke."""
    from tests.fuzz.targets import TARGETS, seeds  # noqa: PLC0415  ``one`` imports it under instruments

    chosen = names or list(TARGETS)
    broken = 0
    for target in chosen:
        (CORPUS / target).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="envcheck-fuzz-") as scratch:
            for number, seed in enumerate(seeds(target)):
                (Path(scratch) / str(number)).write_bytes(seed)
            limits = [
                f"-max_total_time={seconds // len(chosen)}", "-timeout=20", "-rss_limit_mb=3000", "-max_len=262144",
            ]  # fmt: skip
            ends = ["-print_final_stats=1", f"-artifact_prefix={CORPUS / target}/"]
            command = [sys.executable, "-m", "tests.fuzz.run", "--one", target, *limits, *ends, scratch]
            ended = subprocess.run(command, capture_output=True, check=False)
        told = ended.stderr.decode(errors="replace") + ended.stdout.decode(errors="replace")
        executed = re.search(r"number_of_executed_units: (\d+)", told)
        print(
            f"{target}: {executed[1] if executed else 'no'} inputs, {'broke' if ended.returncode else 'held'}",
            flush=True,
        )
        if ended.returncode:
            broken += 1
            print(told[-3000:], flush=True)
    return broken


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2], sys.argv[3:])
    else:
        given = sys.argv[1:] or [os.environ.get("ENVCHECK_FUZZ_SECONDS", "3600")]
        sys.exit(min(share(int(given[0]), given[1:]), 1))
