"""Links in docstrings of the configuration: written for docs/reference, and shown in api/ as well."""

from __future__ import annotations

import re
from typing import Any

import griffe

BESIDE = re.compile(r"\]\(([\w-]+\.md)")


class LinksFromTheReference(griffe.Extension):
    """Lets a link to a page beside docs/reference/config.md lead to that page from a page about the code."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the links in the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = BESIDE.sub(r"](../reference/\1", obj.docstring.value)
