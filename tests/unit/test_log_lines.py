"""Warnings are seen before a program has set logging up, and nothing is written twice afterwards."""

import logging
import sys

import pytest

from gateway_sessions.log_lines import LogLines, UnconfiguredLogging, without_log_lines

BUG = ZeroDivisionError("a bug of an agent")


def unconfigured(name: str) -> logging.Logger:
    """A logger like the package's in a program that has set nothing up.

    It is made within the test, because pytest listens to all loggers that there are when a test begins.
    """
    logger = logging.getLogger(f"a_program_without_logging_{name}")
    logger.propagate = False
    logger.addHandler(UnconfiguredLogging())
    return logger


def test_a_bug_is_written_to_stderr_with_its_facts_and_where_it_came_from(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logger = unconfigured("bug")
    try:
        raise BUG
    except ZeroDivisionError:
        logger.exception("a turn failed", extra={"action": "turn_failed", "seq": 7})
    said = capsys.readouterr().err
    assert said.startswith("ERROR turn_failed: a turn failed seq=7\nTraceback")
    assert said.endswith("ZeroDivisionError: a bug of an agent\n")


def test_what_is_merely_worth_knowing_is_not_written(capsys: pytest.CaptureFixture[str]) -> None:
    logger = unconfigured("info")
    logger.setLevel(logging.DEBUG)
    logger.info("a message came")
    assert capsys.readouterr().err == ""


def test_a_handler_of_the_program_gets_it_instead(capsys: pytest.CaptureFixture[str]) -> None:
    logger = unconfigured("handler")
    with without_log_lines(logger):
        logger.warning("heard elsewhere")
        assert capsys.readouterr().err == ""
    logger.warning("heard by nobody else")
    assert capsys.readouterr().err == f"WARNING {logger.name}: heard by nobody else\n"


def test_a_handler_further_down_gets_it_instead(capsys: pytest.CaptureFixture[str]) -> None:
    logger = unconfigured("further_up")
    child = logger.getChild("turns")
    with without_log_lines(child):
        child.warning("heard elsewhere")
        assert capsys.readouterr().err == ""
    child.warning("heard by nobody else")
    assert capsys.readouterr().err == f"WARNING {child.name}: heard by nobody else\n"


def test_a_program_without_stderr_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    logger = unconfigured("no_stderr")
    monkeypatch.setattr(sys, "stderr", None)
    logger.warning("nobody can read it")


def test_a_closed_stderr_stops_nobody(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    logger = unconfigured("closed")
    closed = (tmp_path_factory.mktemp("closed") / "stderr").open("w")
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    monkeypatch.setattr(logging, "raiseExceptions", False)
    logger.warning("nobody can read it")


def test_a_fact_cannot_steer_a_terminal_or_begin_a_line_of_its_own() -> None:
    record = logging.makeLogRecord({"levelname": "WARNING", "msg": "said", "problem": "a\x1b[2Jb\rc"})
    assert "\x1b" not in LogLines().format(record)
    assert "\r" not in LogLines().format(record)
