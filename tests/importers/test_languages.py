"""Facts that people state in other languages, and sentences that state none about this machine."""

# ruff: noqa: E501, RUF001  what people write in other languages

from __future__ import annotations

import re

from envcheck.compat.load import load_matrix
from envcheck.importers import read_text
from envcheck.importers.prose.mentions import mentions_in
from envcheck.snapshot import Driver, Listing
from tests.every import every

DRIVERS = [
    "驱动版本：470.82.01", "显卡驱动是470.82.01", "驱动程序版本号为470.82.01", "驅動程式版本: 470.82.01", "顯示卡驅動為470.82.01",
    "ドライバーのバージョン: 470.82.01", "ドライバは470.82.01", "드라이버 버전: 470.82.01", "드라이버의 버전은 470.82.01", "드라이버는 470.82.01",
    "Treiberversion 470.82.01", "Grafiktreiber: 470.82.01", "Version du pilote : 470.82.01", "Versión del controlador: 470.82.01",
    "Драйвер 470.82.01", "Версия драйвера: 470.82.01", "драйвер версии 470.82.01",
]  # fmt: skip
BRANCHES = ["驱动版本是470", "ドライバ 470", "Treiber: 470", "драйвер 470"]
TORCH = [
    "PyTorch 版本:2.5.1", "pytorch版本号是2.5.1", "torch的版本为2.5.1", "torch版本號:2.5.1", "PyTorch バージョン:2.5.1", "torchのバージョンは2.5.1",
    "PyTorch 버전: 2.5.1", "PyTorch-Version: 2.5.1", "torch versión 2.5.1", "torch versão 2.5.1", "torch версии 2.5.1", "PyTorch версия: 2.5.1",
]  # fmt: skip
CARDS = [
    "显卡 4070", "显卡是4070", "显卡型号：4070", "显示卡 4070", "4070的显卡", "两张4070", "单卡4070", "顯示卡4070", "顯卡為4070", "GPU4070", "グラフィックボードは4070",
    "グラフィックスカード 4070", "グラボは4070", "그래픽카드 4070", "그래픽 카드는 4070", "Grafikkarte 4070", "carte graphique 4070", "carte vidéo 4070",
    "tarjeta gráfica 4070", "tarjeta de video 4070", "placa de vídeo 4070", "placa gráfica 4070", "видеокарта 4070", "Видеокарта: 4070",
]  # fmt: skip
SYSTEMS = [
    ("windows", "系统：Windows 11"), ("windows", "系统win10"), ("windows", "系统环境：windows10"), ("windows", "環境: Windows 10"), ("windows", "平台：Windows 10"),
    ("windows", "作業系統：Windows 10"), ("windows", "系統是Windows 11"), ("windows", "Система: Windows 10"), ("windows", "Mein System ist Windows 11"),
    ("windows", "Sistema: Windows 11"), ("22.04", "操作系统：Ubuntu 22.04"), ("22.04", "我的系统是ubuntu22.04"), ("22.04", "环境：Ubuntu 22.04，RTX 3090，驱动470.82.01"),
    ("22.04", "システム：Ubuntu 22.04"), ("22.04", "環境はUbuntu22.04"), ("22.04", "운영체제: Ubuntu 22.04"), ("22.04", "시스템: Ubuntu 22.04"),
    ("22.04", "Betriebssystem: Ubuntu 22.04"), ("22.04", "Mi sistema operativo es Ubuntu 22.04"), ("22.04", "Sistema operacional: Ubuntu 22.04"),
    ("22.04", "Système d'exploitation : Ubuntu 22.04"), ("22.04", "Операционная система: Ubuntu 22.04"), ("22.04", "ОС: Ubuntu 22.04"), ("22.04", "OS: ubuntu22.04"),
]  # fmt: skip
ANSWERS = [
    "返回 False", "返回False怎么办", "返回的是False", "输出为False", "为False", "的结果是False", "显示False", "打印False", "一直是False", "总是False", "始终返回False",
    "仍然是False", "依然是False", "还是False", "只会返回False", "会返回False", "總是 False", "還是False", "回傳 False", "傳回False", "的結果為False", "輸出False",
    "顯示False", "會回傳False", "が False を返します", "は False です", "も常に False", "가 False를 반환", "는 False", "은 False", "이 False", "liefert False",
    "gibt False zurück", "ergibt False", "ist False", "zeigt False", "renvoie False", "retourne False", "donne False", "est False", "affiche False",
    "devuelve False", "da False", "es False", "muestra False", "retorna False", "dá False", "é False", "mostra False", "возвращает False", "выдаёт False",
    "показывает False",
]  # fmt: skip
NOT_HERE = [
    "如果用 RTX 5090 的话，要装 PyTorch 2.5.1", "假如换成 RTX 5090 会更快", "要是有 RTX 5090 就好了", "我想买 RTX 5090 来跑这个项目", "打算用 RTX 5090 跑这个项目",
    "准备换 RTX 5090 了，请多指教", "计划使用 RTX 5090 来训练", "建议使用 RTX 5090 来训练", "推荐使用 RTX 5090 来训练", "别人用 RTX 5090 没有问题", "朋友的 RTX 5090 没有问题",
    "同事的 RTX 5090 没有问题", "另外一台 RTX 5090 没有问题", "其他机器是 RTX 5090 没有问题", "以前用的是 RTX 5090", "之前用的是 RTX 5090", "这个版本支持 RTX 5090",
    "这个版本可以用 RTX 5090 吗", "請問支援 RTX 5090 嗎", "假如換成 RTX 5090 會更快", "要是有 RTX 5090 就好了", "想買 RTX 5090", "計劃使用 RTX 5090", "建議使用 RTX 5090",
    "推薦使用 RTX 5090", "別人的 RTX 5090 沒有問題", "其他電腦的 RTX 5090 沒有問題", "这个项目能用 RTX 5090 吗？", "もし RTX 5090 を使う場合", "推奨は RTX 5090 です", "以前は RTX 5090 でした",
    "別のPCの RTX 5090 では動きます", "他のPCの RTX 5090 では動きます", "友人の RTX 5090 では動きます", "만약 RTX 5090을 쓰면", "RTX 5090을 추천합니다", "RTX 5090을 권장합니다",
    "이전에 RTX 5090을 썼습니다", "다른 PC의 RTX 5090에서는 됩니다", "Wenn ich eine RTX 5090 nehme, läuft es dann", "Falls jemand eine RTX 5090 hat, bitte melden",
    "Das würde auf einer RTX 5090 besser laufen", "Es könnte auf einer RTX 5090 laufen", "Es sollte auf einer RTX 5090 laufen", "Früher hatte ich eine RTX 5090 im Rechner",
    "Vorher lief es auf einer RTX 5090 ohne Probleme", "Ich will bald eine RTX 5090 kaufen", "Empfohlen wird dafür eine RTX 5090", "Auf einem anderen Rechner mit RTX 5090 läuft es",
    "Se recomienda una RTX 5090 para esto", "Está recomendada una RTX 5090 para esto", "Quiero comprar una RTX 5090 para esto", "Antes tenía una RTX 5090 en este equipo",
    "En otro PC con una RTX 5090 funciona", "La carte recommandée est une RTX 5090", "Je veux acheter une RTX 5090 pour ce projet", "Avant, j'avais une RTX 5090 ici",
    "Sur un autre PC avec une RTX 5090 tout marche", "A placa recomendada é uma RTX 5090", "Quero comprar uma RTX 5090 para isso", "Antes eu tinha uma RTX 5090 neste PC",
    "Em outro PC com uma RTX 5090 funciona", "Если взять RTX 5090, будет быстрее", "Раньше у меня была RTX 5090", "Рекомендуется видеокарта RTX 5090", "Собираюсь купить RTX 5090",
    "Хочу RTX 5090 для этого проекта", "На другом компьютере с RTX 5090 работает",
]  # fmt: skip
OWN = [
    "我的 RTX 5090 为什么不能用？", "本机 RTX 5090 为什么不能用？", "Warum wird meine RTX 5090 nicht erkannt?", "¿Por qué no funciona mi RTX 5090?", "Pourquoi ma RTX 5090 ne marche pas ?",
    "Pourquoi mon GPU RTX 5090 ne marche pas ?", "私の RTX 5090 はなぜ使えませんか？", "Por que minha RTX 5090 não funciona?", "Por que meu GPU RTX 5090 não funciona?",
    "Почему моя RTX 5090 не работает?", "у меня RTX 5090, почему не работает?",
]  # fmt: skip
WANTED = [
    "这个项目需要 PyTorch 2.5.1", "要求 PyTorch 2.5.1", "至少 PyTorch 2.5.1", "最低 PyTorch 2.5.1", "版本低于 PyTorch 2.5.1", "版本高于 PyTorch 2.5.1", "我把它升级到 PyTorch 2.5.1",
    "卸载了 PyTorch 2.5.1", "升級到 PyTorch 2.5.1", "版本低於 PyTorch 2.5.1", "版本高於 PyTorch 2.5.1", "解除安裝 PyTorch 2.5.1", "Das Projekt benötigt PyTorch 2.5.1",
    "Das Projekt braucht PyTorch 2.5.1", "mindestens PyTorch 2.5.1", "Das Projekt erfordert PyTorch 2.5.1", "El proyecto requiere PyTorch 2.5.1", "El proyecto necesita PyTorch 2.5.1",
    "al menos PyTorch 2.5.1", "Le projet nécessite PyTorch 2.5.1", "Le projet requiert PyTorch 2.5.1", "au moins PyTorch 2.5.1", "O projeto requer PyTorch 2.5.1",
    "O projeto precisa de PyTorch 2.5.1", "pelo menos PyTorch 2.5.1", "Проект требует PyTorch 2.5.1", "нужен PyTorch 2.5.1",
]  # fmt: skip
EXAMPLES = {
    "driver": DRIVERS,
    "version": DRIVERS + TORCH,
    "graphics-card": CARDS,
    "system": [text for _, text in SYSTEMS],
    "answers": ANSWERS,
    "own": OWN,
    "another": NOT_HERE,
    "wanted": WANTED,
}


def gpus_in(text: str) -> list[str]:
    return [gpu.name or "" for gpu in (read_text(f"torch 2.5.1\n{text}").gpus or Listing()).items]


def test_every_word_has_an_example() -> None:
    unused = [
        (row.means, of, word)
        for row in load_matrix().words
        for of, words in row.said.items()
        for word in words
        if not any(re.search(word, text, re.IGNORECASE) for text in EXAMPLES[row.means])
    ]
    assert unused == []


@every(DRIVERS)
def test_a_driver(text: str) -> None:
    assert (read_text(f"torch 2.5.1\n{text}").driver or Driver()).release == "470.82.01"


@every(BRANCHES)
def test_the_branch_of_a_driver(text: str) -> None:
    assert [mention.version for mention in mentions_in(text).mentions if mention.component == "driver"] == ["470"]


@every(TORCH)
def test_a_version(text: str) -> None:
    assert [(mention.component, mention.version) for mention in mentions_in(text).mentions] == [("torch", "2.5.1")]


@every(CARDS)
def test_a_graphics_card_by_its_number(text: str) -> None:
    assert gpus_in(text) == ["RTX 4070"]


@every(SYSTEMS)
def test_the_operating_system(system: str, text: str) -> None:
    platform = read_text(f"torch 2.5.1\n{text}").platform
    assert platform is not None
    assert system in (platform.os, platform.distribution_version)


@every(ANSWERS)
def test_what_pytorch_answers(text: str) -> None:
    listing = read_text(f"torch 2.5.1\ntorch.cuda.is_available(){'' if text[0] > '一' else ' '}{text}").environments
    assert listing is not None
    assert [each.gpu_available for found in listing.items for each in (found.frameworks or Listing()).items] == [False]


@every(NOT_HERE)
def test_what_is_not_here(text: str) -> None:
    assert gpus_in(text) == []


@every(OWN)
def test_a_question_about_what_is_here(text: str) -> None:
    assert gpus_in(text) == ["RTX 5090"]


@every(WANTED)
def test_a_version_that_is_asked_for(text: str) -> None:
    assert list(mentions_in(text).mentions) == []


def test_a_statement_before_a_question() -> None:
    assert [
        mention.version for mention in mentions_in("我的显卡是 RTX 3090，装的是 PyTorch 2.5.1，为什么用不了？").mentions
    ] == ["2.5.1"]


def test_memory_is_no_graphics_card() -> None:
    assert gpus_in("显卡 3080MB 显存被占用") == []
