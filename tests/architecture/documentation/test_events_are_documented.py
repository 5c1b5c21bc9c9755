"""Every kind of event is on the page, in the order of the code, and something in the code tells of it."""

import ast

from gateway_sessions.runtime.observability.event_stream import EventKind
from tests.architecture.sources import dotted_name, modules
from tests.integration.gateway.documented_events import documented_facts


def kinds_told() -> set[str]:
    """The members of `EventKind` that the package names anywhere."""
    return {
        name.removeprefix("EventKind.")
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute) and (name := dotted_name(node)).startswith("EventKind.")
    }


def test_the_page_lists_exactly_the_kinds_there_are():
    assert [*documented_facts()] == [kind.value for kind in EventKind]


def test_something_tells_of_every_kind():
    assert kinds_told() == {kind.name for kind in EventKind}
