"""Texts in other languages: system messages name what their English originals name, and people state facts."""

# ruff: noqa: E501, RUF001  what programs print in other languages

import re
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.accuracy import judge
from envcheck.importers import read_text
from envcheck.importers.formats.error_lines import is_error
from envcheck.importers.paste import LINE_LIMIT, WHOLE, Paste, printable
from envcheck.importers.prose.languages import in_english
from envcheck.importers.prose.mentions import mentions_in
from envcheck.knowledge.error_lines import named_by
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.tables.messages import TranslationRow
from envcheck.model.snapshot import Driver, Listing
from envcheck.rules.engine.cause import primary
from tests.documents import texts
from tests.every import cases_of, every, every_tabled
from tests.importers.test_hostile_text import PROCESSOR_TIME

DATA = Path(__file__).with_name("data")
ROWS = load_matrix().translations

LINES = {name: line for name, _, line in texts((DATA / "translated.txt").read_text(encoding="utf-8"))}
"""A line with the message of each row: what programs print around it."""
WORDS = {
    "Command '{1}' not found, but can be installed with:": ("nvidia-smi",),
    "Command '{1}' not found, did you mean:": ("nvidia-smi",),
    "Unable to locate package {1}": ("nvidia-driver-575",),
    "Package '{1}' has no installation candidate": ("nvidia-driver-575",),
    "but {1} is to be installed": ("535.60-0ubuntu1",),
    "but {1} is installed": ("535.60-0ubuntu1",),
    "trying to overwrite '{1}', which is also in package {2} {3}": (
        "/usr/lib/x86_64-linux-gnu/libcuda.so", "libcuda1", "470.57-1",
    ),
    "dependency problems prevent configuration of {1}:": ("nvidia-driver-535",),
    "error processing package {1} (--{2}):": ("nvidia-dkms-535", "configure"),
    "unrecognized command-line option '{1}'": ("-ftrivial-auto-var-init=zero",),
    "cannot find -l{1}": ("cudart",),
    "] Error {1}": ("1",),
    "'{1}' is not recognized as an internal or external command": ("nvcc",),
    "The term '{1}' is not recognized as the name of a cmdlet": ("nvidia-smi",),
}  # fmt: skip
"""What stands in the place of ``{1}``, ``{2}``, …"""
UNNAMED = {
    "Segmentation fault", "Input/output error",
    "failed to map segment from shared object",
    "The following packages have unmet dependencies:", "Unable to correct problems, you have held broken packages",
    "Unable to locate package {1}", "Package '{1}' has no installation candidate",
    "dependency problems - leaving unconfigured",
}  # fmt: skip
"""Whose message names no problem by itself: it says that something failed, which other lines and facts explain."""


def line_with(row: TranslationRow, message: str) -> str:
    """The line that has a message of the row, in whatever language it is."""
    for number, word in enumerate(WORDS.get(row.english, ()), 1):
        message = message.replace(f"{{{number}}}", word)
    return LINES[row.english].replace("{}", message)


def translated() -> Iterator[tuple[str, str]]:
    """Each phrase in its line, and the line in English."""
    for row in ROWS:
        english = line_with(row, row.english)
        yield from ((line_with(row, said), english) for texts in row.said.values() for said in texts)


def english_of(line: str) -> str:
    return in_english([line]).get(0, line)


def problem(line: str) -> str | None:
    named = named_by(line)
    return named.problem if named else None


def cause_in(text: str) -> str | None:
    found = primary(judge(text)[1])
    return found.rule if found else None


# --- the rows -----------------------------------------------------------------------------------------------------
def test_each_row_has_a_line_here() -> None:
    assert {row.english for row in ROWS} == set(LINES)
    assert {row.english for row in ROWS if "{1}" in row.english} == set(WORDS)


@every(ROWS)
def test_a_message_matters_in_english(row: TranslationRow) -> None:
    assert (problem(line_with(row, row.english)) is None) == (row.english in UNNAMED)


@every(ROWS)
def test_both_texts_have_the_same_placeholders(row: TranslationRow) -> None:
    wanted = sorted(re.findall(r"\{.*?\}", row.english))
    assert [
        said for texts in row.said.values() for said in texts if sorted(re.findall(r"\{.*?\}", said)) != wanted
    ] == []


def test_a_phrase_is_written_as_a_cleaned_text_has_it() -> None:
    said = [said for row in ROWS for texts in row.said.values() for said in texts]
    assert [text for text in said if printable(text) != text.strip()] == []


def test_a_phrase_means_one_thing() -> None:
    meaning: dict[str, set[str]] = {}
    for row in ROWS:
        for said in (said for known in row.said.values() for said in known):
            meaning.setdefault(said, set()).add(row.english)
    assert {said: rows for said, rows in meaning.items() if len(rows) > 1} == {}


@every(translated)
def test_a_translated_line_is_read_as_the_english_one(line: str, english: str) -> None:
    assert english_of(line) == english
    assert problem(english_of(line)) == problem(english)
    assert is_error(english_of(line)) == is_error(english)


# --- as they are pasted -------------------------------------------------------------------------------------------
@every(
    ("cuda-library-missing", "ImportError: libcudart.so.11.0: Kann die Shared-Object-Datei nicht öffnen: Datei oder Verzeichnis nicht gefunden"),
    ("driver-not-installed", "root@gpu01:~# nvidia-smi\nbash: nvidia-smi：未找到命令"),
    ("driver-not-installed", "$ nvidia-smi\nbash: nvidia-smi : commande introuvable"),
    ("driver-not-installed", "$ nvidia-smi\n找不到命令 “nvidia-smi”，但可以通过以下软件包安装它：\nsudo apt install nvidia-utils-470"),
    ("driver-not-installed", 'PS C:\\> nvidia-smi\nnvidia-smi : 无法将"nvidia-smi"项识别为 cmdlet、函数、脚本文件或可运行程序的名称。'),
    ("driver-not-installed", "C:\\>nvidia-smi\nnvidia-smi 不是内部或外部命令，也不是可运行的程序\n或批处理文件。"),
    ("toolkit-missing", "编译时提示nvcc不是内部或外部命令"),
    ("toolkit-missing", 'C:\\>nvcc -V\nDer Befehl "nvcc" ist entweder falsch geschrieben oder\nkonnte nicht gefunden werden.'),
    ("toolkit-missing", "a.cu:1:10: 致命错误：cuda_runtime.h：没有那个文件或目录\n编译中断。"),
    ("toolkit-missing", "a.cu(1): fatal error C1083: include ファイルを開けません。'cuda_runtime.h':No such file or directory"),
    ("library-not-found", "    from torch._C import *\nImportError: DLL load failed: Le module spécifié est introuvable."),
    ("extension-built-for-other-torch", "ImportError: DLL load failed while importing flash_attn_2_cuda: 找不到指定的程序。"),
    ("driver-packages-conflict", "Die folgenden Pakete haben unerfüllte Abhängigkeiten:\n nvidia-driver-535 : Hängt ab von: nvidia-dkms-535 (>= 535.54.03) soll aber nicht installiert werden\nE: Probleme können nicht korrigiert werden, Sie haben zurückgehaltene defekte Pakete."),
    ("driver-packages-conflict", " libnvidia-gl-535 : Зависит: libnvidia-common-535 (= 535.54) но 535.60 будет установлен"),
    ("cpu-lacks-instructions", "$ python -c 'import tensorflow'\n非法指令 （核心已转储）"),
    ("secure-boot-blocks-module", "modprobe: ERROR: could not insert 'nvidia': La clé a été rejetée par le service"),
    ("library-not-found", "/usr/bin/ld: -lcudart が見つかりません: そのようなファイルやディレクトリはありません\ncollect2: error: ld returned 1 exit status"),
)  # fmt: skip
def test_the_cause_of_a_text(cause: str, text: str) -> None:
    assert cause_in(text) == cause


@every(
    "显卡正常，nvidia-smi 没有那个文件或目录 的问题已经解决", "PyTorch 2.5.1 mit CUDA 12.4 auf einer RTX 3090, alles läuft ohne Fehler.",
    "デフォルト: エラーなし", "default: 3, fout: geen",
)  # fmt: skip
def test_prose_raises_no_alarm(text: str) -> None:
    assert cause_in(f"RTX 3090, driver 550.54.15, PyTorch 2.5.1+cu124\n{text}") is None


def test_a_report_shows_the_line_as_it_was_written() -> None:
    line = "ImportError: libcudart.so.11.0: Kann die Shared-Object-Datei nicht öffnen: Datei oder Verzeichnis nicht gefunden"
    (error,) = read_text(line).observed_errors
    assert error.text == "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory"
    assert error.as_written == line
    found = primary(judge(line)[1])
    assert found is not None
    assert [each.value for each in found.evidence] == [line]


def test_a_line_in_english_is_not_repeated() -> None:
    (error,) = read_text("ImportError: libcudart.so.11.0: cannot open shared object file").observed_errors
    assert error.as_written == ""


def test_a_word_that_only_contains_a_phrase_stays() -> None:
    assert english_of("Oude-Bestand map bestaat niet") == "Oude-Bestand map bestaat niet"
    assert english_of("xBestand of map bestaat niet") == "xBestand of map bestaat niet"


def test_words_of_scripts_without_blanks_stay_apart() -> None:
    assert english_of("打开libcuda.so失败:没有那个文件或目录") == "打开libcuda.so失败: No such file or directory"
    assert english_of("nvcc致命错误") == "nvcc致命错误"


# --- hostile ------------------------------------------------------------------------------------------------------
@every(
    "\n".join([f"{quote * 3_900} は、内部コマンドまたは外部コマンド"[:LINE_LIMIT] for quote in "'\"“«" for _ in range(40)]),
    "\n".join(["a" * 3_900 + " 패키지를 찾을 수 없습니다"] * 130),
    "\n".join([("Paket " + "x" * 200) * 19 + " kann nicht gefunden"] * 130),
    "\n".join(["正试图覆盖" * 700 + "，它同时被包含于软件包"] * 130), "\n".join([line for line, _ in translated()] * 2)[: 1 << 19],
    "\n".join([" ".join(line for line, _ in translated())[:LINE_LIMIT]] * 130),
    "\n".join(f"{number} 错误：没有那个文件或目录 cuda" for number in range(100_000)),
)  # fmt: skip
def test_many_phrases_take_little_time(text: str) -> None:
    started = time.process_time()
    Paste.of(text)
    assert time.process_time() - started < PROCESSOR_TIME / 2


def test_of_a_long_text_the_chosen_lines_are_in_english() -> None:
    filling = "\n".join(f"step {number} of training" for number in range(2 * WHOLE))
    snapshot = read_text(f"{filling}\nbash: nvidia-smi: 未找到命令\n{filling}\n段错误 (核心已转储)\n")
    assert [error.text for error in snapshot.observed_errors] == [
        "bash: nvidia-smi: command not found",
        "Segmentation fault (core dumped)",
    ]


# --- Facts that people state in other languages, and sentences that state none about this machine -------------------


def gpus_in(text: str) -> list[str]:
    return [gpu.name or "" for gpu in (read_text(f"torch 2.5.1\n{text}").gpus or Listing()).items]


def test_every_word_has_an_example() -> None:
    drivers, systems = cases_of(test_a_driver), [text for _, text in cases_of(test_the_operating_system)]
    examples = {
        "driver": drivers, "version": drivers + cases_of(test_a_version), "system": systems,
        "graphics-card": cases_of(test_a_graphics_card_by_its_number), "answers": cases_of(test_what_pytorch_answers),
        "own": cases_of(test_a_question_about_what_is_here), "another": cases_of(test_what_is_not_here),
        "wanted": cases_of(test_a_version_that_is_asked_for),
    }  # fmt: skip
    unused = [
        (row.means, of, word)
        for row in load_matrix().words
        for of, words in row.said.items()
        for word in words
        if not any(re.search(word, text, re.IGNORECASE) for text in examples[row.means])
    ]
    assert unused == []


@every_tabled
def test_a_driver(text: str) -> None:
    assert (read_text(f"torch 2.5.1\n{text}").driver or Driver()).release == "470.82.01"


@every_tabled
def test_the_branch_of_a_driver(text: str) -> None:
    assert [mention.version for mention in mentions_in(text).mentions if mention.component == "driver"] == ["470"]


@every_tabled
def test_a_version(text: str) -> None:
    assert [(mention.component, mention.version) for mention in mentions_in(text).mentions] == [("torch", "2.5.1")]


@every_tabled
def test_a_graphics_card_by_its_number(text: str) -> None:
    assert gpus_in(text) == ["RTX 4070"]


@every_tabled
def test_the_operating_system(system: str, text: str) -> None:
    platform = read_text(f"torch 2.5.1\n{text}").platform
    assert platform is not None
    assert system in (platform.os, platform.distribution_version)


@every_tabled
def test_what_pytorch_answers(text: str) -> None:
    listing = read_text(f"torch 2.5.1\ntorch.cuda.is_available(){'' if text[0] > '一' else ' '}{text}").environments
    assert listing is not None
    assert [each.gpu_available for found in listing.items for each in (found.frameworks or Listing()).items] == [False]


@every_tabled
def test_what_is_not_here(text: str) -> None:
    assert gpus_in(text) == []


@every_tabled
def test_a_question_about_what_is_here(text: str) -> None:
    assert gpus_in(text) == ["RTX 5090"]


@every_tabled
def test_a_version_that_is_asked_for(text: str) -> None:
    assert list(mentions_in(text).mentions) == []


def test_a_statement_before_a_question() -> None:
    assert [
        mention.version for mention in mentions_in("我的显卡是 RTX 3090，装的是 PyTorch 2.5.1，为什么用不了？").mentions
    ] == ["2.5.1"]


def test_memory_is_no_graphics_card() -> None:
    assert gpus_in("显卡 3080MB 显存被占用") == []
