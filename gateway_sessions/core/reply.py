"""What an agent answers: the message that people get, and the row that the transcript gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final

import msgspec

from gateway_sessions.core.field_types import check_each
from gateway_sessions.core.inbound import Attachment
from gateway_sessions.core.messages import Content, Message, Role, message_of
from gateway_sessions.core.outbound import OutboundMessage, TextFormat
from gateway_sessions.core.plain_values import plain_text
from gateway_sessions.core.storable import check_choice
from gateway_sessions.errors import InvalidInputError

NOTHING: Final = "[Nothing was said.]"
"""What a model is told it answered, where it kept silent: not that the turn was cut off."""

_ASSISTANT: Final = str(Role.ASSISTANT)
_OWN: Final = frozenset({"role", "content", "finish_reason", "reasoning"})


@dataclass(frozen=True, slots=True)
class Reply:
    """What an agent says, and what is kept of how it came to say it."""

    text: str = ""
    _: KW_ONLY
    attachments: tuple[Attachment, ...] = ()
    format: TextFormat = TextFormat.PLAIN
    silent: bool = False
    """Nothing of it is sent; the transcript keeps it all the same."""
    recorded: bool = False
    """The agent has appended the row that says this; the turn adds none."""
    finish_reason: str | None = None
    reasoning: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further members of its row, as a message has them (`api_content`, `reasoning_details`, any other)."""

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers exist
            problem = f"the text of a reply must be a str, not {type(self.text).__name__}"
            raise InvalidInputError(problem)
        object.__setattr__(self, "text", plain_text(self.text))
        object.__setattr__(self, "attachments", tuple(self.attachments))
        if self.attachments:
            check_each("the attachments of a reply", self.attachments, Attachment)
        if not isinstance(self.format, TextFormat):  # pyright: ignore[reportUnnecessaryIsInstance]  # the same
            object.__setattr__(self, "format", check_choice("format", self.format, TextFormat))
        if own := _OWN & self.extra.keys():
            problem = f"extra must leave {', '.join(sorted(own))} to the reply itself"
            raise InvalidInputError(problem)

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing at all."""
        return not self.text.strip() and not self.attachments

    @property
    def message(self) -> OutboundMessage | None:
        """What is sent of it; None if nothing is."""
        if self.silent or self.is_empty:
            return None
        return OutboundMessage(text=self.text, attachments=self.attachments, format=self.format)

    @property
    def row(self) -> Message | None:
        """The row of the transcript that says it; None if the agent has appended that itself."""
        if self.recorded:
            return None
        if not self.extra and not self.is_empty:
            return Message(
                _ASSISTANT, self._content(), finish_reason=self.finish_reason, reasoning=self.reasoning
            )
        return message_of(
            {
                **({"api_content": NOTHING} if self.is_empty else {}),
                **self.extra,
                "role": Role.ASSISTANT,
                "content": self._content(),
                "finish_reason": self.finish_reason,
                "reasoning": self.reasoning,
            }
        )

    def _content(self) -> Content:
        if not self.attachments:
            return self.text
        said = [{"type": "text", "text": self.text}] if self.text else []
        return [*said, *({"type": "attachment", **msgspec.to_builtins(one)} for one in self.attachments)]
