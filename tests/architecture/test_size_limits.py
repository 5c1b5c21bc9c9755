"""Size limits. Raising one is a commit of its own, with its reason."""

import ast

from tests.architecture.sources import FUNCTIONS, modules

MODULE_LINES = 600
GENERATED = {"blocking/_generated_database.py", "blocking/_generated_store.py"}  # nobody edits them
FUNCTION_LINES = 40


def lines_without_docstring(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert function.end_lineno is not None
    length = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function, clean=False) is not None:
        docstring = function.body[0]
        assert docstring.end_lineno is not None
        length -= docstring.end_lineno - docstring.lineno + 1
    return length


def test_no_module_is_longer_than_six_hundred_lines():
    lengths = {
        module.name: len(module.text.splitlines()) for module in modules() if module.name not in GENERATED
    }
    assert {name: length for name, length in lengths.items() if length > MODULE_LINES} == {}


def test_no_function_is_longer_than_forty_lines_without_its_docstring():
    lengths = {
        f"{module.name}:{node.lineno} {node.name}": lines_without_docstring(node)
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, FUNCTIONS)
    }
    assert {name: length for name, length in lengths.items() if length > FUNCTION_LINES} == {}
