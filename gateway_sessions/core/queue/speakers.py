"""Names by which a model knows the people who write, with pseudonyms where names are missing or hidden."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from gateway_sessions.core.display_text import visible_text
from gateway_sessions.core.identity.keys import NO_ALIASES, Isolation, canonical_participant
from gateway_sessions.core.identity.pseudonyms import Pseudonyms, can_hide_ids
from gateway_sessions.core.queue.inbound import InboundMessage, ReplyTo


@dataclass(frozen=True, slots=True, kw_only=True)
class Speakers:
    """Gives names to the people who write, by the rules of a store."""

    pseudonyms: Pseudonyms
    flags: Isolation
    redact: bool = False
    """Whether names are hidden wherever a platform does not need true ids."""

    def named(
        self, message: InboundMessage, session_key: str, aliases: Mapping[str, str] = NO_ALIASES
    ) -> InboundMessage:
        """Return the message with pseudonyms for its speaker and the person it answers, where needed."""
        source = message.source
        hidden = self.redact and can_hide_ids(source.platform)
        if not hidden and self.flags.separates_people(source):
            return message
        person = (
            source.participant_id or source.user_name if hidden else canonical_participant(source, aliases)
        )
        if person and (hidden or not visible_text(source.user_name or "")):
            message = replace(message, speaker=self._pseudonym(message, session_key, person, hidden=hidden))
        if message.reply_to is not None:
            answered = self._answered(message.reply_to, message, session_key, hidden=hidden)
            message = replace(message, reply_to=answered)
        return message

    def _answered(
        self, reply_to: ReplyTo, message: InboundMessage, session_key: str, *, hidden: bool
    ) -> ReplyTo:
        author = reply_to.author_id or reply_to.author_name
        if reply_to.own or not author or not (hidden or not visible_text(reply_to.author_name or "")):
            return reply_to
        name = self._pseudonym(message, session_key, author, hidden=hidden)
        return replace(reply_to, author_name=name)

    def _pseudonym(self, message: InboundMessage, session_key: str, person: str, *, hidden: bool) -> str:
        if hidden:  # the pseudonym that prompts show as well
            return self.pseudonyms.user(message.source.platform, person)
        return self.pseudonyms.speaker(session_key, person)
