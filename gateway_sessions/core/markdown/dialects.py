"""The markup of each platform, as its documentation describes it, and its limits.

A limit whose unit a platform does not state is counted in UTF-16, in which no text is shorter.
"""

from __future__ import annotations

import html
import re
from dataclasses import replace
from typing import Final

from gateway_sessions.core.markdown.dialect import NO_MARK, MarkupDialect, TableStyle, TextMark
from gateway_sessions.core.markdown.document import CodeBlock
from gateway_sessions.core.text_length import LengthUnit

ZERO_WIDTH: Final = "\u200b"
"""A blank that nobody sees; it keeps what stands beside it from being markup or a mention."""

_ADDRESS: Final = re.compile(r"\(?https?://\S+", re.IGNORECASE)
_SAFE_LINK: Final = re.compile(r"(?:https?://|mailto:|tel:)\S+", re.IGNORECASE)
"""The addresses that may stand behind a text; others, as `tg://user?id=…`, do more than lead somewhere."""
_LANGUAGE: Final = re.compile(r"[\w+#.-]{1,20}", re.ASCII)
_EVERYBODY: Final = re.compile(r"@(?=everyone|here)")
_EVERYBODY_ON_MATTERMOST: Final = re.compile(r"@(?=(?:all|channel|here)\b)", re.IGNORECASE)
_CONTROL_ON_GOOGLE_CHAT: Final = re.compile(r"<(?=users/|[a-z][a-z0-9+.-]*:)", re.IGNORECASE)
_MENTION_ON_GOOGLE_CHAT: Final = re.compile(r"<(?=users/)", re.IGNORECASE)
_MARKDOWN_MARKS: Final = re.compile(r"[\\*_~`|\[\]<&]|!$|^#+$")
_DISCORD_MARKS: Final = re.compile(r"[\\*_~`|\[<]")
_BEGINNING: Final = re.compile(r"(\d{1,9})[.)]$|[#>+=-]")
_ACCIDENTAL: Final = re.compile(r"(?<!\w)([*_~`])(?=[^\s*_~`])")


def _address_in(word: str) -> bool:
    return _ADDRESS.match(word) is not None


def _with_escaped_beginning(word: str, *, begins_line: bool) -> str:
    """Return a word that begins a line so that it begins no heading, quote or list."""
    if not begins_line or (found := _BEGINNING.match(word)) is None:
        return word
    at = found.end(1) if found[1] else 0
    return f"{word[:at]}\\{word[at:]}"


def _code_mark(text: str) -> TextMark:
    """Return the backticks for code where backticks within it end it."""
    return NO_MARK if "`" in text or not text.strip() else TextMark("`", "`")


def _any_code_mark(text: str) -> TextMark:
    """Return as many backticks as no row of them within the code has."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    blank = " " if text.startswith("`") or text.endswith("`") else ""
    return TextMark("`" * (longest + 1) + blank, blank + "`" * (longest + 1)) if text.strip() else NO_MARK


def _fence(block: CodeBlock) -> TextMark:
    return TextMark(f"```{_language_of(block)}\n", "\n```")


def _language_of(block: CodeBlock) -> str:
    return block.language if _LANGUAGE.fullmatch(block.language) else ""


def _any_fence(block: CodeBlock) -> TextMark:
    """Return as many backticks as no line of the code begins with."""
    longest = max(map(len, re.findall("`+", block.text)), default=0)
    fence = "`" * max(longest + 1, 3)
    return TextMark(f"{fence}{_language_of(block)}\n", f"\n{fence}")


_BARE_FENCE: Final = TextMark("```\n", "\n```", flush=True)


def _without_fences(line: str) -> str:
    return line.replace("```", f"`{ZERO_WIDTH}`{ZERO_WIDTH}`")


# HTML


def _escape_html(word: str, _begins_line: bool) -> str:  # noqa: FBT001 -- the form of all escapes
    return html.escape(word, quote=False)


def _html_link(href: str) -> TextMark:
    return TextMark(f'<a href="{html.escape(href)}">', "</a>") if _SAFE_LINK.fullmatch(href) else NO_MARK


def _html_code_block(block: CodeBlock) -> TextMark:
    language = _language_of(block)
    opening = f'<pre><code class="language-{html.escape(language)}">' if language else "<pre><code>"
    return TextMark(opening, "</code></pre>", flush=True)


def _telegram_code_block(block: CodeBlock) -> TextMark:
    return _html_code_block(block) if _language_of(block) else TextMark("<pre>", "</pre>", flush=True)


def _html_list(first: int | None) -> TextMark:
    if first is None:
        return TextMark("<ul>", "</ul>")
    return TextMark("<ol>" if first == 1 else f'<ol start="{first}">', "</ol>")


TELEGRAM: Final = MarkupDialect(
    name="telegram",
    limit=4096,
    unit=LengthUnit.UTF16,
    counts_markup=False,
    most_marks=100,
    escape=_escape_html,
    escape_code=lambda line: html.escape(line, quote=False),
    strong=TextMark("<b>", "</b>"),
    emphasis=TextMark("<i>", "</i>"),
    strike=TextMark("<s>", "</s>"),
    code=lambda text: TextMark("<code>", "</code>") if text.strip() else NO_MARK,
    link=_html_link,
    headings=(TextMark("<b>", "</b>"),),
    code_block=_telegram_code_block,
    quote=TextMark("<blockquote>", "</blockquote>"),
    nested_quotes=False,
)
"""The HTML of Telegram's Bot API; the limit holds for what people see."""

MATRIX: Final = MarkupDialect(
    name="matrix",
    limit=20_000,
    unit=LengthUnit.BYTES,
    escape=_escape_html,
    escape_code=lambda line: html.escape(line, quote=False),
    strong=TextMark("<strong>", "</strong>"),
    emphasis=TextMark("<em>", "</em>"),
    strike=TextMark("<del>", "</del>"),
    code=lambda text: TextMark("<code>", "</code>") if text.strip() else NO_MARK,
    link=_html_link,
    headings=tuple(TextMark(f"<h{level}>", f"</h{level}>") for level in range(1, 7)),
    code_block=_html_code_block,
    quote=TextMark("<blockquote>", "</blockquote>"),
    line_break="<br>",
    paragraph=TextMark("<p>", "</p>"),
    between_blocks="",
    list_of=_html_list,
    item=TextMark("<li>", "</li>"),
    box_is_bullet=False,
    divider="<hr>",
    table=TableStyle.HTML,
)
"""The HTML of `org.matrix.custom.html`; an event of 64 KiB also holds the plain text and who sent it."""

# Marks that stand around words


def _escape_accidents(word: str) -> str:
    """Return a word in which nothing is a mark where a platform has no escapes."""
    return word if _address_in(word) else _ACCIDENTAL.sub(rf"\1{ZERO_WIDTH}", word)


def _escape_slack(word: str, _begins_line: bool) -> str:  # noqa: FBT001 -- the form of all escapes
    return html.escape(_escape_accidents(word), quote=False)


def _slack_link(href: str) -> TextMark:
    return _bracketed_link(href.replace("&", "&amp;"))


def _bracketed_link(href: str) -> TextMark:
    """Return the mark of a link whose address stands before its text, in one pair of brackets."""
    if not _SAFE_LINK.fullmatch(href):
        return NO_MARK
    address = href.replace("|", "%7C").replace(">", "%3E").replace("<", "%3C")
    return TextMark(f"<{address}|", ">", within_words=True)


SLACK: Final = MarkupDialect(
    name="slack",
    limit=4000,
    unit=LengthUnit.UTF16,
    escape=_escape_slack,
    escape_code=lambda line: html.escape(_without_fences(line), quote=False),
    strong=TextMark("*", "*"),
    emphasis=TextMark("_", "_"),
    strike=TextMark("~", "~"),
    code=_code_mark,
    link=_slack_link,
    headings=(TextMark("*", "*"),),
    code_block=lambda _: _BARE_FENCE,
    nested_quotes=False,
    marks_within_words=False,
)
"""Slack's mrkdwn; Slack cuts longer texts off, or hides their end."""

WHATSAPP: Final = MarkupDialect(
    name="whatsapp",
    limit=4096,
    unit=LengthUnit.UTF16,
    escape=lambda word, _: _escape_accidents(word),
    escape_code=_without_fences,
    strong=TextMark("*", "*"),
    emphasis=TextMark("_", "_"),
    strike=TextMark("~", "~"),
    code=_code_mark,
    headings=(TextMark("*", "*"),),
    code_block=lambda _: _BARE_FENCE,
    nested_quotes=False,
    marks_within_words=False,
    bullets=("- ", "• ", "◦ "),
    table_width=32,
)
"""WhatsApp knows no links behind a text: their addresses stand beside it."""


def _escape_google_chat(word: str, _begins_line: bool) -> str:  # noqa: FBT001 -- the form of all escapes
    return _CONTROL_ON_GOOGLE_CHAT.sub(f"<{ZERO_WIDTH}", _escape_accidents(word))


def _escape_code_on_google_chat(line: str) -> str:
    """Return a line of code that mentions nobody, whether Google looks for mentions in code or not."""
    return _MENTION_ON_GOOGLE_CHAT.sub(f"<{ZERO_WIDTH}", _without_fences(line))


GOOGLE_CHAT: Final = replace(
    WHATSAPP,
    name="google_chat",
    escape=_escape_google_chat,
    escape_code=_escape_code_on_google_chat,
    link=_bracketed_link,
    table_width=48,
)
"""The markup of Google Chat's own syntax, which each message must ask for: new apps have Markdown instead."""

# Markdown


def _escape_discord(word: str, begins_line: bool) -> str:  # noqa: FBT001 -- the form of all escapes
    if _address_in(word):
        return word
    escaped = _DISCORD_MARKS.sub(r"\\\g<0>", _EVERYBODY.sub(f"@{ZERO_WIDTH}", word))
    return _with_escaped_beginning(escaped, begins_line=begins_line)


def _escape_markdown(word: str, begins_line: bool) -> str:  # noqa: FBT001 -- the form of all escapes
    if _address_in(word):
        return word
    return _with_escaped_beginning(_MARKDOWN_MARKS.sub(r"\\\g<0>", word), begins_line=begins_line)


def _markdown_link(href: str) -> TextMark:
    if not _SAFE_LINK.fullmatch(href):
        return NO_MARK
    address = href.replace("<", "%3C").replace(">", "%3E")
    if not _is_balanced(address):
        address = address.replace("(", "%28").replace(")", "%29")
    return TextMark("[", f"]({address})")


def _is_balanced(address: str) -> bool:
    """Return whether each bracket is closed, so that the last one of a link is not taken for one of them."""
    without = re.sub(r"\([^()]*\)", "", address)
    return "(" not in without and ")" not in without


DISCORD: Final = MarkupDialect(
    name="discord",
    limit=2000,
    unit=LengthUnit.UTF16,
    escape=_escape_discord,
    escape_code=_without_fences,
    strong=TextMark("**", "**"),
    emphasis=TextMark("*", "*"),
    strike=TextMark("~~", "~~"),
    code=_any_code_mark,
    link=_markdown_link,
    headings=(TextMark("# "), TextMark("## "), TextMark("### "), TextMark("**", "**")),
    code_block=_fence,
    nested_quotes=False,
    bullets=("- ",),
    box_is_bullet=False,
)

NESTED_BULLETS: Final = ("- ", "* ", "+ ")
"""Different by depth: three of one kind on one line are a divider in Markdown."""

COMMONMARK: Final = MarkupDialect(
    name="commonmark",
    limit=12_000,
    unit=LengthUnit.UTF16,
    escape=_escape_markdown,
    escape_code=lambda line: line,
    strong=TextMark("**", "**"),
    emphasis=TextMark("*", "*"),
    strike=TextMark("~~", "~~"),
    code=_any_code_mark,
    link=_markdown_link,
    headings=tuple(TextMark("#" * level + " ") for level in range(1, 7)),
    code_block=_any_fence,
    bullets=NESTED_BULLETS,
    box_is_bullet=False,
    line_break="  \n",
    divider="***",
    table=TableStyle.PIPES,
)
"""Markdown itself, in one spelling: for platforms that take it, such as Slack's block for it."""

TEAMS: Final = replace(
    COMMONMARK,
    name="teams",
    limit=20_000,
    unit=LengthUnit.BYTES,
    headings=COMMONMARK.headings[:3],
    escape_code=_without_fences,
    table=TableStyle.ALIGNED,
)
"""The Markdown of Teams, which has no tables; a message of 28 KB also holds who it is from and for."""


def _escape_mattermost(word: str, begins_line: bool) -> str:  # noqa: FBT001 -- the form of all escapes
    """Return a word as it is, which calls nobody by calling everybody."""
    return _escape_markdown(_EVERYBODY_ON_MATTERMOST.sub(f"@{ZERO_WIDTH}", word), begins_line)


MATTERMOST: Final = replace(
    COMMONMARK,
    name="mattermost",
    limit=16_383,
    unit=LengthUnit.CHARACTERS,
    escape=_escape_mattermost,
)
"""Markdown with tables; a server may be set up for a lower limit. A mention of everybody calls nobody."""

PLAIN: Final = MarkupDialect(
    name="plain",
    limit=1_000_000,
    unit=LengthUnit.CHARACTERS,
    escape=lambda word, _: word,
    escape_code=lambda line: line,
    headings=(NO_MARK,),
)
"""Text without markup, as a short message on a phone has it."""
