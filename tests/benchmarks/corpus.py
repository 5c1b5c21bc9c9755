"""What is said in the benchmarks of the memory: always the same texts, and what is looked for in them.

Words follow Zipf's law, as people's words do; every twentieth message is Chinese. Nothing of ours is imported
here: the peer says the same.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

COMMON, MID, RARE, PHRASE = "common word", "mid word", "rare word", "phrase"
TWO_WORDS, CHINESE = "two words", "Chinese, 2 characters"
SUBSTRING, INSIDE = "substring", "part of a word"
FIRST, STEP = 1_704_067_200, 20  # seconds: when the first message was sent, and how long each took
SESSION: Final = 250
"""Messages."""
MOST_COMPARED: Final = 1_000
"""So many of the newest messages that the scan finds are compared with an answer."""
COMPARED: Final = 3
"""So many questions of each kind."""

_WORDS, _HANZI, _EACH = 50_000, 2_000, 25
_DRAWN: Final = 1 << 20
_CHINESE_EVERY: Final = 20
_LETTERS: Final = ("bcdfghklmnprstvwz", "aeiou")
_COMMA: Final = "\uff0c"
_QUESTIONS: Final = "questions.json"


class Question(NamedTuple):
    """What is looked for, and the newest messages that have it; None: nobody has looked at every text."""

    text: str
    newest: list[int] | None


class _Language:
    """The words there are, the most common first, and those that were put into few messages."""

    def __init__(self) -> None:
        choice = random.Random(11)
        syllables = ["".join(pair) for pair in itertools.product(*_LETTERS)]
        words: dict[str, None] = {}
        while len(words) < _WORDS:
            length = 1 + (len(words) > 60) + (choice.random() < 0.5)
            words["".join(choice.choices(syllables, k=length)) + choice.choice("nrstl")] = None
        hanzi: dict[str, None] = {}
        while len(hanzi) < _HANZI:
            hanzi["".join(chr(0x4E00 + choice.randrange(3_000)) for _ in range(2))] = None
        self.words, self.hanzi = list(words), list(hanzi)
        self.rare = [f"{self.words[900 + number]}q{number}" for number in range(_EACH)]
        self.phrases = [" ".join(choice.sample(self.words[300:600], 3)) for _ in range(_EACH)]


def said(count: int) -> list[str]:
    """The texts of so many messages, about 200 characters each."""
    language, choice = _Language(), random.Random(7)
    drawn, drawn_hanzi = _by_frequency(language.words), _by_frequency(language.hanzi)
    planted = _planted(language, count, choice)
    texts: list[str] = []
    for number in range(count):
        if number % _CHINESE_EVERY == 0:
            parts = choice.choices(drawn_hanzi, k=choice.randrange(26, 52))
            parts[7::8] = [_COMMA] * len(parts[7::8])
            texts.append("".join([*parts, "。"]))
            continue
        parts = choice.choices(drawn, k=choice.randrange(18, 50))
        parts[9::10] = [f"{word}." for word in parts[9::10]]
        parts[5:5] = planted.get(number, ())
        texts.append(" ".join(parts).capitalize())
    return texts


def questions(texts: list[str]) -> dict[str, list[Question]]:
    """What is looked for, of each kind the same number; the answers to some, from a look at every text."""
    language = _Language()
    each = range(_EACH)
    asked = {
        COMMON: [language.words[6 + number] for number in each],
        MID: [language.words[250 + 10 * number] for number in each],
        RARE: language.rare,
        PHRASE: [f'"{phrase}"' for phrase in language.phrases],
        TWO_WORDS: [f"{language.words[20 + number]} {language.words[300 + 7 * number]}" for number in each],
        CHINESE: [language.hanzi[5 + number] for number in each],
        SUBSTRING: [phrase[1:-1] for phrase in language.phrases],
        INSIDE: [word[1:-1] for word in language.rare],
    }
    plain = [f" {text.lower().replace('.', '')} " for text in texts]
    return {
        kind: [
            Question(text, _newest(plain, _parts(kind, text)) if number < COMPARED else None)
            for number, text in enumerate(some)
        ]
        for kind, some in asked.items()
    }


def write_questions(folder: str, asked: dict[str, list[Question]]) -> None:
    """Leave the questions and their answers beside a store that holds the texts."""
    Path(folder, _QUESTIONS).write_text(json.dumps(asked), encoding="utf-8")


def read_questions(folder: str) -> dict[str, list[Question]]:
    """What was left there."""
    found = json.loads(Path(folder, _QUESTIONS).read_text(encoding="utf-8"))
    return {kind: [Question(*one) for one in some] for kind, some in found.items()}


def sent_at(number: int) -> int:
    """When a message was sent, in seconds."""
    return FIRST + STEP * number


def number_of(seconds: float) -> int:
    """Which message was sent then."""
    return round((seconds - FIRST) / STEP)


def role_of(number: int) -> str:
    """Who said it."""
    return "assistant" if number % 2 else "user"


def sessions(texts: list[str]) -> Iterator[tuple[str, range]]:
    """The sessions that hold the texts, and which of them each one holds."""
    for first in range(0, len(texts), SESSION):
        yield f"session_{first // SESSION}", range(first, min(first + SESSION, len(texts)))


def transcript(count: int) -> list[dict[str, Any]]:
    """A valid conversation of so many messages: in ten of them, one calls a tool and one is its result."""
    messages: list[dict[str, Any]] = []
    for number, text in enumerate(said(count)):
        message: dict[str, Any] = {"role": role_of(number), "content": text}
        if number % 10 == 1:
            arguments = json.dumps({"command": text[:40], "timeout": 30})
            function = {"name": "terminal", "arguments": arguments}
            message["tool_calls"] = [{"id": f"call_{number}", "type": "function", "function": function}]
        elif number % 10 == 2:
            message |= {"role": "tool", "tool_call_id": f"call_{number - 1}", "tool_name": "terminal"}
        messages.append(message)
    return messages


def bytes_each(folder: str, messages: int) -> float:
    """What the files of a store take of the disk, for each message in it."""
    files = (path for path in Path(folder).rglob("*") if path.is_file() and path.name != _QUESTIONS)
    return sum(path.stat().st_size for path in files) / messages


def _by_frequency(words: list[str]) -> list[str]:
    """A list from which each word is drawn as often as its rank demands."""
    weights = [1 / rank**1.07 for rank in range(1, len(words) + 1)]
    return random.Random(13).choices(words, weights, k=_DRAWN)


def _planted(language: _Language, count: int, choice: random.Random) -> dict[int, list[str]]:
    """What is put into which messages: a rare word into few, a phrase into some more."""
    planted: dict[int, list[str]] = {}
    for some, times in ((language.rare, 5 + count // 50_000), (language.phrases, 5 + count // 10_000)):
        for one in some:
            for number in choice.sample(range(count), times):
                planted.setdefault(number, []).append(one)
    return planted


def _parts(kind: str, text: str) -> list[str]:
    """What a text has to hold: words between spaces, or characters anywhere."""
    if kind in {CHINESE, SUBSTRING, INSIDE}:
        return [text]
    return [f" {text.strip(chr(34))} "] if kind == PHRASE else [f" {word} " for word in text.split()]


def _newest(plain: list[str], parts: list[str]) -> list[int]:
    first, *others = parts
    found = [number for number, text in enumerate(plain) if first in text]
    found = [number for number in found if all(part in plain[number] for part in others)]
    return found[: -MOST_COMPARED - 1 : -1]
