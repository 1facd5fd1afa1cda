"""List the error lines of ``matrix/errors.toml`` for whose problem no remedy says more than the rule's general one.

python scripts/remedies.py [RULE …]: each line with its rule; without names, the number of such lines of each rule.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from envcheck.importers import read_text
from envcheck.knowledge.load import load_matrix
from envcheck.rules.api import Facts
from envcheck.rules.fixes.remedies import remedy_of
from tests.rules.messages.examples import examples


def main(names: list[str]) -> None:
    open_lines = defaultdict(list)
    for problem, line, _ in examples():
        if remedy_of(problem, (), Facts(read_text(line), load_matrix())) is None:
            open_lines[problem].append(line)
    for problem, lines in sorted(open_lines.items(), key=lambda item: -len(item[1])):
        if not names:
            print(f"{len(lines):4} {problem}")
        elif problem in names:
            print("\n".join(f"{problem}: {line}" for line in lines))


if __name__ == "__main__":
    main(sys.argv[1:])
