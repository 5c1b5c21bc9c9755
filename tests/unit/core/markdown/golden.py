"""Texts in Markdown, and files of what each platform is sent for them.

`python -m tests.unit.core.markdown.golden` writes these files; look at each difference before you keep it.
"""

from __future__ import annotations

from pathlib import Path

from gateway_sessions.core.markdown import dialects
from gateway_sessions.core.markdown.dialect import MarkupDialect
from gateway_sessions.core.markdown.rendering import render_markdown

FOLDER = Path(__file__).parents[3] / "data" / "markdown"
DIALECTS = {
    name.lower(): value for name, value in sorted(vars(dialects).items()) if isinstance(value, MarkupDialect)
}
TEXTS = sorted(path.stem for path in FOLDER.glob("*.md"))
BETWEEN = "\n════\n"


def rendered(text: str, dialect: MarkupDialect) -> str:
    """Return the messages of a text of the corpus, one behind the other."""
    parts = render_markdown((FOLDER / f"{text}.md").read_text("utf-8"), dialect)
    return BETWEEN.join(part.markup for part in parts) + "\n"


def golden_file(text: str, dialect: str) -> Path:
    return FOLDER / dialect / f"{text}.txt"


if __name__ == "__main__":
    for name, dialect in DIALECTS.items():
        for text in TEXTS:
            golden_file(text, name).parent.mkdir(exist_ok=True)
            golden_file(text, name).write_text(rendered(text, dialect), "utf-8")
