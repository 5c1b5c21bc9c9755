"""Words that the glossary has retired: no module, class, function, argument or variable is named by one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from tests.architecture.sources import modules

RETIRED = {
    "abreast": "concurrently, side by side",
    "asking": "what is asked: a query, a request",
    "catching": "a search in progress",
    "crew": "a task group",
    "desk": "the execution of a turn, the context of a command",
    "errand": "a call",
    "glance": "an overview",
    "insistence": "a retry",
    "mail": "signals",
    "offering": "a declaration",
    "overseer": "a watchdog",
    "owning": "an owner",
    "saying": "with_text, output",
    "seat": "a client of a store",
    "seats": "clients of a store",
    "telling": "notices, units",
    "verb": "a transaction",
    "verbs": "transactions",
}
"""The word, and what to write in its place."""

WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
GLOSSARY = Path(__file__).parents[2] / "docs" / "reference" / "glossary.md"


def names_in(tree: ast.Module) -> Iterator[str]:
    """Yield each name that a module gives to something."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.arg(arg=name) | ast.alias(asname=str(name)):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case _:
                pass


def retired_words_of(name: str) -> set[str]:
    return {word.lower() for word in WORDS.findall(name)} & RETIRED.keys()


def test_no_name_in_the_package_is_a_retired_word():
    found = {
        f"{module.name}: {name}"
        for module in modules()
        for name in {*names_in(module.tree), *PurePosixPath(module.name).with_suffix("").parts}
        if retired_words_of(name)
    }
    assert found == set()


def test_the_glossary_explains_no_retired_word():
    entries = re.findall(r"^\| ([a-z ,]+) \|", GLOSSARY.read_text("utf-8"), re.MULTILINE)
    assert [entry for entry in entries if retired_words_of(entry)] == []


def test_a_retired_word_is_noticed_wherever_it_stands_in_a_name():
    assert retired_words_of("TurnDesk") == retired_words_of("open_desk") == {"desk"}
    assert retired_words_of("seat") == {"seat"}
    assert retired_words_of("verbose") == retired_words_of("desktop") == set()
