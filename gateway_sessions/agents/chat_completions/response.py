"""`Answer`: the reply of a model, which comes in events or in one piece, with the tokens that it took.

 Server-sent events are read wherever the network has cut them, even in the end of a line or within a
character. Lines end only where the standard says: models write many characters that other readers take for
line ends.

"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn, Unpack, cast

import msgspec

from gateway_sessions.agents.chat_completions.failures import quote_from
from gateway_sessions.agents.chat_completions.tool_calls import CallCollector, ToolCall
from gateway_sessions.core.checks import is_whole_number
from gateway_sessions.core.storable_text import MAX_WORD
from gateway_sessions.core.usage.usage_events import MAX_COST_USD, MAX_COUNT, UsageFacts
from gateway_sessions.errors import ModelAnswerError

END: Final = "[DONE]"
COST_TOLD: Final = "provider"
MAX_REPLY: Final = 1 << 20
"""The most characters of a reply with its reasoning; a model that writes more has got stuck."""


class Answer:
    """Collects the reply of a model to one request."""

    def __init__(self, endpoint: str, model: str, *, key: str | None = None) -> None:
        self._endpoint = endpoint
        self._key = key
        self._model = model
        self._usage: Mapping[str, Any] = {}
        self._reasoning: list[str] = []
        self._calls = CallCollector()
        self._said = self._size = 0
        self._begun = False
        self.finish_reason: str | None = None
        self.is_over: bool = False
        """True once the endpoint has ended its answer, even if the connection stays open."""

    @property
    def reasoning(self) -> str | None:
        """The reasoning of the model, if it has sent any."""
        return "".join(self._reasoning) or None

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tools that the model wants to use before it goes on."""
        return self._calls.calls

    def add_event(self, data: str | bytes) -> str:
        """Return the text that an event or a whole answer adds; `ModelAnswerError` for anything else."""
        if data == END:
            self.is_over = True
            return ""
        told = self._decode_event(data)
        self._begun = True
        if told.get("error"):
            why = quote_from(told, hiding=self._key) or "it did not say why"
            self._fail(f"has failed: {why}")
        self._remember_model_and_usage(told)
        first = _first_choice(told.get("choices"))
        finished = first.get("finish_reason")
        self.finish_reason = finished if isinstance(finished, str) and finished else self.finish_reason
        said = _as_mapping(first.get("delta") or first.get("message"))
        thought = _as_text(said.get("reasoning_content") or said.get("reasoning"))
        piece = _as_text(said.get("content")) or _as_text(said.get("refusal"))
        self._reasoning.append(thought)
        self._said += len(piece)
        self._size += len(piece) + len(thought) + self._calls.add(said.get("tool_calls"))
        if self._size > MAX_REPLY:
            self._fail(f"does not come to an end: its answer has more than {MAX_REPLY} characters")
        return piece

    @property
    def is_complete(self) -> bool:
        """Return True if the model has sent a text, or calls of tools, and a reason for its end."""
        return self.finish_reason is not None and bool(self._said or self._calls.calls)

    def check_complete(self) -> None:
        """Raise `ModelAnswerError` with what is missing, unless the answer is complete."""
        if not self._begun:
            self._fail("has sent no answer of a model; is its address right?")
        if self.finish_reason is None:
            self._fail("was cut off in the middle of its answer")
        if not self.is_complete:
            self._fail(f"has answered nothing ({self.finish_reason})")

    def usage_facts(self, **facts: Unpack[UsageFacts]) -> UsageFacts:
        """Return these facts with the tokens of request and answer; some endpoints report none."""
        read, written = (
            self._token_detail("prompt", "cached_tokens"),
            self._token_detail("prompt", "cache_write_tokens"),
        )
        facts |= {
            "model": self._model,
            "input_tokens": max(_as_count(self._usage.get("prompt_tokens")) - read - written, 0),
            "output_tokens": _as_count(self._usage.get("completion_tokens")),
            "cache_read_tokens": read,
            "cache_write_tokens": written,
            "reasoning_tokens": self._token_detail("completion", "reasoning_tokens"),
        }
        cost = self._usage.get("cost")
        if isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost <= MAX_COST_USD:
            facts["actual_cost_usd"], facts["cost_source"] = cost, COST_TOLD
        return facts

    def _decode_event(self, data: str | bytes) -> Mapping[str, Any]:
        try:
            told = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeError):
            told = None
        if not isinstance(told, dict):
            self._fail("has sent something that is no answer of a model; is its address right?")
        return cast("Mapping[str, Any]", told)

    def _remember_model_and_usage(self, told: Mapping[str, Any]) -> None:
        model, usage = told.get("model"), told.get("usage")
        if isinstance(model, str) and 0 < len(model) <= MAX_WORD and model.isprintable():
            self._model = model
        if isinstance(usage, dict):
            self._usage = cast("Mapping[str, Any]", usage)

    def _token_detail(self, of: str, name: str) -> int:
        return _as_count(_as_mapping(self._usage.get(f"{of}_tokens_details")).get(name))

    def _fail(self, problem: str) -> NoReturn:
        raise ModelAnswerError(self._endpoint, problem)


def _first_choice(given: object) -> Mapping[str, Any]:
    several = cast("list[object]", given) if isinstance(given, list) else []
    return _as_mapping(several[0]) if several else {}


def _as_mapping(given: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", given) if isinstance(given, dict) else {}


def _as_text(given: object) -> str:
    """Return a text, which some endpoints send as a list of parts."""
    if isinstance(given, list):
        return "".join(_as_text(_as_mapping(one).get("text")) for one in cast("list[object]", given))
    return given if isinstance(given, str) else ""


def _as_count(given: object) -> int:
    return given if is_whole_number(given, 0, MAX_COUNT) else 0


MAX_EVENT: Final = 1 << 20
"""The most characters of an event: as many as a whole reply may have."""

_LINE_END: Final = re.compile("\r\n|\n|\r")


class EventTooLongError(ValueError):
    """An event has more characters than any event of a model."""

    def __init__(self) -> None:
        super().__init__(f"one event has more than {MAX_EVENT} characters")


class EventStream:
    """Turns received bytes into the data of whole events."""

    __slots__ = ("_begun", "_data", "_decoder", "_size")

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._begun = ""
        """The line that is not ended yet."""
        self._data: list[str] = []
        """The lines of the event that is not ended yet."""
        self._size = 0

    def events_in(self, received: bytes) -> Iterator[str]:
        """Yield the data of each event that ends in these bytes."""
        text = self._begun + self._decoder.decode(received)
        # The line feed that belongs to a carriage return may come with the next bytes.
        held = "\r" if text.endswith("\r") else ""
        *lines, self._begun = _LINE_END.split(text[: len(text) - len(held)])
        for line in lines:
            yield from self._read_line(line)
        self._begun += held
        self._check_event_size(len(self._begun))

    def _read_line(self, line: str) -> Iterator[str]:
        if not line:
            if self._data:
                yield "\n".join(self._data)
            self._data, self._size = [], 0
            return
        name, _, value = line.partition(":")
        if name == "data":  # a line without a name is a comment, and no other name means anything here
            self._size += len(value)
            self._check_event_size(0)
            self._data.append(value.removeprefix(" "))

    def _check_event_size(self, more: int) -> None:
        if self._size + more > MAX_EVENT:
            raise EventTooLongError
