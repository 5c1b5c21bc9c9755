"""Markdown in the markup of each platform, against the files of a corpus; and what one look cannot tell."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway_sessions.core.markdown import dialects
from gateway_sessions.core.markdown.rendering import render_markdown
from tests.unit.core.markdown import golden


@pytest.mark.parametrize("text", golden.TEXTS)
@pytest.mark.parametrize("dialect", golden.DIALECTS)
def test_the_corpus_looks_as_its_files_say(text: str, dialect: str):
    expected = golden.golden_file(text, dialect).read_text("utf-8")
    assert golden.rendered(text, golden.DIALECTS[dialect]) == expected


def test_every_file_of_the_corpus_is_compared():
    files = {(path.parent.name, path.stem) for path in golden.FOLDER.glob("*/*.txt")}
    assert files == {(dialect, text) for dialect in golden.DIALECTS for text in golden.TEXTS}


@pytest.mark.parametrize("text", ["", " \n\t", "<br>", "#", "> ", "[](https://example.org)"])
def test_what_shows_nothing_is_no_message(text: str):
    assert render_markdown(text, dialects.TELEGRAM) == ()


def test_a_code_block_that_is_cut_is_closed_and_opened_again():
    code = "\n".join(f"line {number}" for number in range(30))
    first, second, *_ = render_markdown(f"Look:\n\n```python\n{code}\n```", dialects.DISCORD, limit=100)
    assert first.markup.startswith("Look:\n\n```python\nline 0\n")
    assert first.markup.endswith("\n```")
    assert second.markup.startswith("```python\nline ")
    assert first.plain.startswith("Look:\n\nline 0\n")


def test_marks_around_a_cut_are_closed_and_opened_again():
    parts = render_markdown("**" + "bold words " * 20 + "end**", dialects.TELEGRAM, limit=64)
    assert len(parts) > 3
    assert all(part.markup == f"<b>{part.plain}</b>" for part in parts)


def test_a_quote_that_is_cut_goes_on_as_a_quote():
    parts = render_markdown("> " + "quoted words " * 20, dialects.DISCORD, limit=80)
    assert all(part.markup.startswith("> quoted words") for part in parts)


def test_an_item_that_is_cut_goes_on_indented_and_without_a_bullet():
    first, second, *_ = render_markdown("- " + "words of an item " * 20, dialects.DISCORD, limit=80)
    assert first.markup.startswith("- words")
    assert second.markup.startswith("  an item words")


def test_a_cut_prefers_the_end_of_a_paragraph_in_the_second_half():
    text = "first " * 8 + "\n\n" + "second " * 8
    first, second = render_markdown(text, dialects.TELEGRAM, limit=80)
    assert (first.plain, second.plain) == (("first " * 8).strip(), ("second " * 8).strip())


def test_a_message_has_no_more_marks_than_the_platform_shows():
    parts = render_markdown("**b** " * 250, dialects.TELEGRAM)
    assert [part.markup.count("<b>") for part in parts] == [100, 100, 50]


def test_a_link_that_is_longer_than_a_message_is_shown_as_text():
    address = "https://example.org/" + "a" * 3000
    parts = render_markdown(f"[text]({address})", dialects.DISCORD)
    assert "".join(part.plain for part in parts).replace(" ", "") == f"text({address})"
    assert all(len(part.markup) <= 2000 for part in parts)


def test_a_limit_holds_in_the_platform_s_unit():
    text = "\U0001f600" * 3000
    assert [len(part.markup) for part in render_markdown(text, dialects.TELEGRAM)] == [2048, 952]
    assert [len(part.markup) for part in render_markdown(text, dialects.TEAMS, limit=4000)] == [1000] * 3


def test_escapes_count_only_where_the_platform_counts_them():
    counted = replace(dialects.TELEGRAM, counts_markup=True)
    assert len(render_markdown("&" * 4000, dialects.TELEGRAM)) == 1
    assert len(render_markdown("&" * 4000, counted)) == len("&amp;")


@pytest.mark.parametrize("opening", ["> " * 500, "- " * 300, "*" * 3000, "[" * 3000, "**a *b " * 500])
def test_what_is_nested_too_deeply_is_shown_as_text(opening: str):
    assert render_markdown(opening + "end", dialects.TELEGRAM)[-1].plain.endswith("end")


def test_a_long_text_is_rendered_in_time_that_grows_with_its_length():
    text = "**Word** with [link](https://example.org) and `code`, " * 4000
    assert len(render_markdown(text, dialects.DISCORD)) > 100


def test_a_link_keeps_its_address_within_a_word_where_marks_are_letters():
    (part,) = render_markdown("see-[docs](https://example.org)s and a**b**c", dialects.SLACK)
    assert part.markup == "see-<https://example.org|docs>s and abc"
