"""Record the behaviour of today, and print what changed.

python -m tests.golden.rewrite           # ask the same questions and judge the same texts again
python -m tests.golden.rewrite --draw    # draw new questions from the matrix, and take all texts of the tests
"""

import os
import sys

COMMAND = "python -m tests.golden.rewrite"


def main(arguments: list[str]) -> None:
    from envcheck.knowledge.compiling import compile_folder  # noqa: PLC0415 - the test needs the command's name alone
    from scripts.documentation import write_completions, write_man_page  # noqa: PLC0415
    from tests import installed  # noqa: PLC0415
    from tests.golden.causes import CASES  # noqa: PLC0415
    from tests.golden.corpus import CORPUS, differences, write  # noqa: PLC0415
    from tests.golden.recorders import RECORDERS  # noqa: PLC0415
    from tests.golden.reports import ROOT  # noqa: PLC0415

    os.chdir(ROOT)
    installed.renew(compile_folder(ROOT / "matrix"))
    if arguments == ["--draw"]:
        from tests.golden.draw import draw  # noqa: PLC0415 - it reads the texts of all tests

        draw()
    write_man_page()
    write_completions()
    kept, changed = {CORPUS / CASES}, list[str]()
    for record in RECORDERS.values():
        files = record()
        changed.append(differences(files))
        for name, text in files.items():
            write(name, text)
            kept.add(CORPUS / name)
    for file in {file for file in CORPUS.rglob("*") if file.is_file()} - kept:
        file.unlink()
    print("\n".join(filter(None, changed)) or "nothing changed")  # noqa: T201 - the program's answer


if __name__ == "__main__":
    main(sys.argv[1:])
