"""`FakeGoogleChat`: a REST API on loopback, with people, Google's rules, and faults on request."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, Final

import jwt

from gateway_sessions.testing.fakes.faults import RefusedCall
from gateway_sessions.testing.fakes.google_chat.formatted_text import ShownText, read_chat_syntax
from gateway_sessions.testing.fakes.http_server import FakeRequest, FakeResponse
from gateway_sessions.testing.fakes.mattermost.formatted_text import read_post_text
from gateway_sessions.testing.fakes.platform_server import BotMessage
from gateway_sessions.testing.fakes.token_issuer import FakeIssuer
from gateway_sessions.testing.fakes.webhook_platform import FakeWebhookPlatform, WebhookDelivery

CHAT: Final = "chat@system.gserviceaccount.com"
LONGEST_TEXT: Final = 4096
LARGEST: Final = 32_000
MARKDOWN: Final = "MARKUP_SYNTAX_MARKDOWN"
CHAT_SYNTAX: Final = "MARKUP_SYNTAX_CHAT"
TOKEN_LIFE: Final = timedelta(hours=1)
OWN_ID: Final = re.compile(r"client-[a-z0-9-]{1,56}")


class GoogleRefusalError(Exception):
    """Google refuses a call."""

    def __init__(self, code: int, status: str, message: str) -> None:
        told = {"error": {"code": code, "message": message, "status": status}}
        self.response: FakeResponse = FakeResponse.of_json(told, status=code)
        super().__init__(message)


class FakeGoogleChat(FakeWebhookPlatform):
    """A fake of Google Chat with one app."""

    # Google promises no further delivery; tests need one, to see that none is doubled.
    retry_schedule: ClassVar[Sequence[float]] = (10, 30)

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.audience: str = "https://bots.example/google_chat"
        self.issuer: FakeIssuer = FakeIssuer("https://accounts.google.com")
        self.account: FakeIssuer = FakeIssuer("bot@project.iam.gserviceaccount.com")
        self.claims: dict[str, Any] = {}
        """The claims that a test changes in the tokens of events; None leaves one out."""
        self.messages: dict[str, dict[str, Any]] = {}
        """What the app has said, by the names of the messages."""
        self.media: dict[str, bytes] = {}
        self.markup_syntax: str = MARKDOWN
        """The syntax of texts that ask for none; Google gives new apps Markdown."""
        self.commands: dict[str, int] = {}
        """The slash commands that the app has in the console, with their ids."""
        self.removed: set[str] = set()
        """The spaces from which the app was removed."""
        self._tokens: dict[str, datetime] = {}
        self._spaces: dict[str, dict[str, Any]] = {}
        self._people: dict[str, str] = {}
        self._count = 0

    @property
    def key(self) -> dict[str, str]:
        """The key of the app's service account, as Google gives it."""
        return {
            "type": "service_account",
            "client_email": self.account.issuer,
            "private_key": self.account.private_pem(),
            "private_key_id": self.account.key_id,
            "token_uri": f"{self.url}/token",
        }

    # People

    def person(self, name: str) -> dict[str, Any]:
        """Return a person as events name them."""
        number = self._people.setdefault(name, f"users/{1000 + len(self._people)}")
        return {"name": number, "displayName": name, "type": "HUMAN"}

    def space(self, person: str = "", *, room: str | None = None) -> dict[str, Any]:
        """Return the conversation with a person, or a space of that name."""
        known = room or f"dm of {person}"
        name = f"spaces/{'R' if room else 'D'}{known.encode().hex()}"
        kind = (
            {"type": "ROOM", "spaceType": "SPACE", "displayName": room}
            if room
            else {"type": "DM", "spaceType": "DIRECT_MESSAGE"}
        )
        return self._spaces.setdefault(name, {"name": name, **kind})

    def says(
        self, person: str, text: str, *, room: str | None = None, thread: str | None = None, **members: Any
    ) -> WebhookDelivery:
        """Let a person write, in private or, with a mention, in a space; *thread* is a thread's name."""
        space = self.space(person, room=room)
        number = self._next()
        message = {
            "name": f"{space['name']}/messages/{number}.{number}",
            "sender": self.person(person),
            "createTime": self._now(),
            "text": f"@Helper {text}" if room else text,
            "argumentText": f" {text}" if room else text,
            "thread": {"name": thread or f"{space['name']}/threads/{number}"},
            **members,
        }
        return self.happens(person, "MESSAGE", room=room, message=message)

    def commands_with(
        self, person: str, command: str, *, room: str | None = None, thread: str | None = None
    ) -> WebhookDelivery:
        """Let a person use a slash command that the console knows: `/name` and what stands behind it."""
        name, _, arguments = command.partition(" ")
        number = str(self.commands[name])
        used = {"type": "INVOKE", "commandName": name, "commandId": number}
        annotation = {"type": "SLASH_COMMAND", "startIndex": 0, "length": len(name), "slashCommand": used}
        found = {"slashCommand": {"commandId": number}, "annotations": [annotation]}
        return self.says(
            person, command, room=room, thread=thread, argumentText=f" {arguments}".rstrip(), **found
        )

    def chooses(self, person: str, number: int, *, room: str | None = None) -> WebhookDelivery:
        """Let a person choose a quick command from the menu, which has an id and no message."""
        chosen = {"appCommandId": number, "appCommandType": "QUICK_COMMAND"}
        return self.happens(person, "APP_COMMAND", room=room, appCommandMetadata=chosen)

    def removes_bot(self, person: str, *, room: str | None = None) -> WebhookDelivery:
        """Let a person remove the app from a space, or from their conversation with it."""
        self.removed.add(self.space(person, room=room)["name"])
        return self.happens(person, "REMOVED_FROM_SPACE", room=room)

    def happens(self, person: str, kind: str, *, room: str | None = None, **members: Any) -> WebhookDelivery:
        """Let something happen between a person and the app."""
        event = {
            "type": kind,
            "eventTime": self._now(),
            "space": self.space(person, room=room),
            "user": self.person(person),
            **members,
        }
        return self.deliver(event)

    def sends(self, person: str, name: str, content: bytes, media_type: str) -> WebhookDelivery:
        """Let a person send a file."""
        resource = f"media-{self._next()}=="
        self.media[resource] = content
        file = {
            "contentName": name,
            "contentType": media_type,
            "attachmentDataRef": {"resourceName": resource},
        }
        return self.says(person, "", attachment=[file])

    def presses(self, person: str, label: str) -> WebhookDelivery:
        """Let a person press the button of that label, on the last message that has one."""
        for name, message in reversed(list(self.messages.items())):
            for button in _buttons_of(message):
                if button["text"] == label and name.startswith(self.space(person)["name"]):
                    action = button["onClick"]["action"]
                    pressed = {"actionMethodName": action["function"], "parameters": action["parameters"]}
                    return self.happens(
                        person, "CARD_CLICKED", action=pressed, message={**message, "name": name}
                    )
        problem = f"{person} sees no button {label!r}"
        raise AssertionError(problem)

    # What people see

    def texts(self, person: str = "", *, room: str | None = None, thread: str | None = None) -> list[str]:
        """Return what the app has said to a person, in a space or in one of its threads."""
        space = self.space(person, room=room)["name"]
        return [
            _shown_words(message)
            for name, message in list(self.messages.items())
            if name.startswith(f"{space}/") and thread in (None, message["thread"]["name"])
        ]

    def reads(self, person: str = "", *, room: str | None = None) -> list[ShownText]:
        """Return the texts of a conversation as people read them, each in the syntax that it asks for."""
        space = self.space(person, room=room)["name"]
        names = {number: name for name, number in self._people.items()}
        return [
            ShownText(read_post_text(message.get("text", "")).text)
            if message.get("markupSyntax", self.markup_syntax) == MARKDOWN
            else read_chat_syntax(message.get("text", ""), names)
            for name, message in self.messages.items()
            if name.startswith(f"{space}/")
        ]

    def bot_messages(self) -> Iterator[BotMessage]:
        """Yield all messages of the app that people see, wherever they stand."""
        spaces = {
            space["name"]: f"#{space['displayName']}"
            for space in list(self._spaces.values())
            if "displayName" in space
        }
        names = {self.space(person)["name"]: person for person in list(self._people)}
        for name, message in list(self.messages.items()):
            space = name.partition("/messages/")[0]
            yield BotMessage(spaces.get(space) or names[space], name, _shown_words(message))

    def adapter_settings(self, folder: Path) -> dict[str, str]:
        """Return the keys of a configuration; the key of the service account is written into *folder*."""
        file = folder / "service_account.json"
        file.touch(mode=0o600)
        file.write_text(json.dumps(self.key), "utf-8")
        account = {"audience": self.audience, "key_file": str(file)}
        return {**account, "api_url": self.url, "keys_url": self.url}

    def withdraw_tokens(self) -> None:
        """Let all access tokens end."""
        self._tokens.clear()

    # The webhook

    def sign(self, delivery: WebhookDelivery, url: str) -> Mapping[str, str]:
        """Return the token for an event."""
        now = int(self.clock.now().timestamp())
        claims = {"aud": self.audience, "email": CHAT, "email_verified": True, "iat": now, "exp": now + 3600}
        return {"authorization": f"Bearer {self.issuer.sign({**claims, **self.claims})}"}

    # The API

    def method_of(self, request: FakeRequest) -> str:
        """Return the name of a call."""
        if request.path.endswith("/messages"):
            return "create"
        if request.method == "PATCH":
            return "update"
        if "/media/" in request.path:
            return "media"
        return {"/token": "token", "/v1/spaces": "spaces"}.get(request.path, "keys")

    def limited(self, retry_after: float) -> FakeResponse:
        """Return the answer that asks for a pause."""
        refusal = GoogleRefusalError(429, "RESOURCE_EXHAUSTED", "Quota exceeded").response
        return FakeResponse(429, refusal.body, {**refusal.headers, "retry-after": f"{retry_after:g}"})

    def refused(self, refusal: RefusedCall) -> FakeResponse:
        """Return the answer that refuses."""
        return GoogleRefusalError(refusal.status, "REFUSED", refusal.problem).response

    async def api(self, method: str, request: FakeRequest, parameters: Mapping[str, Any]) -> FakeResponse:
        """Answer a call of the REST API, of the token endpoint or for keys."""
        try:
            if method == "token":
                return self._give_token(parameters)
            if method == "keys":
                return FakeResponse.of_json(self.issuer.key_set())
            self._check_token(request)
            return self._outcome(method, request, parameters)
        except GoogleRefusalError as refusal:
            return refusal.response

    def _give_token(self, form: Mapping[str, Any]) -> FakeResponse:
        key = self.account.public_pem()
        try:
            claims = jwt.decode(form["assertion"], key, algorithms=["RS256"], audience=f"{self.url}/token")
        except jwt.PyJWTError:
            told = {"error": "invalid_grant", "error_description": "Invalid JWT Signature."}
            return FakeResponse.of_json(told, status=400)
        assert claims["iss"] == self.account.issuer
        assert claims["scope"] == "https://www.googleapis.com/auth/chat.bot"
        token = f"ya29.{self._next()}"
        self._tokens[token] = self.clock.now() + TOKEN_LIFE
        return FakeResponse.of_json({"access_token": token, "expires_in": 3599, "token_type": "Bearer"})

    def _check_token(self, request: FakeRequest) -> None:
        ends = self._tokens.get(request.headers.get("authorization", "").removeprefix("Bearer "))
        if ends is None or self.clock.now() >= ends:
            raise GoogleRefusalError(
                401, "UNAUTHENTICATED", "Request had invalid authentication credentials."
            )

    def _outcome(self, method: str, request: FakeRequest, given: Mapping[str, Any]) -> FakeResponse:
        match method:
            case "spaces":
                return FakeResponse.of_json({"spaces": []})
            case "media":
                content = self.media.get(request.path.rpartition("/v1/media/")[2])
                if content is None:
                    raise GoogleRefusalError(404, "NOT_FOUND", "Media not found.")
                return FakeResponse(200, content, {"content-type": "application/octet-stream"})
            case "update":
                return self._update(request.path.removeprefix("/v1/"), request.query["updateMask"], given)
            case _:
                return self._create(request, given)

    def _create(self, request: FakeRequest, given: Mapping[str, Any]) -> FakeResponse:
        space, own_id = (
            request.path.split("/messages")[0].removeprefix("/v1/"),
            request.query.get("messageId", ""),
        )
        if space not in self._spaces:
            raise GoogleRefusalError(404, "NOT_FOUND", "Space not found.")
        if space in self.removed:
            raise GoogleRefusalError(403, "PERMISSION_DENIED", "The app is not a member of the space.")
        if own_id and not OWN_ID.fullmatch(own_id):
            raise GoogleRefusalError(400, "INVALID_ARGUMENT", "Invalid message ID.")
        name = f"{space}/messages/{own_id or self._next()}"
        if name in self.messages:
            raise GoogleRefusalError(409, "ALREADY_EXISTS", "A message with that ID exists.")
        body = json.loads(request.body)
        _check_body(body)
        thread = body.get("thread") or {"name": f"{space}/threads/{self._next()}"}
        self.messages[name] = {**body, "thread": thread}
        return FakeResponse.of_json({"name": name, "thread": thread})

    def _update(self, name: str, mask: str, given: Mapping[str, Any]) -> FakeResponse:
        if unknown := set(mask.split(",")) - {"text", "attachment", "cardsV2", "accessoryWidgets"}:
            problem = f"Unsupported update mask path: {sorted(unknown)[0]}"
            raise GoogleRefusalError(400, "INVALID_ARGUMENT", problem)
        if name not in self.messages:
            raise GoogleRefusalError(404, "NOT_FOUND", "Message not found.")
        body = {key: value for key, value in given.items() if key != "updateMask"}
        _check_body(body)
        self.messages[name] = {**body, "thread": self.messages[name]["thread"]}
        return FakeResponse.of_json({"name": name})

    def _next(self) -> int:
        self._count += 1
        return self._count

    def _now(self) -> str:
        now = self.clock.now() + timedelta(microseconds=self._next())
        return f"{now:%Y-%m-%dT%H:%M:%S.%fZ}"


def _check_body(body: Mapping[str, Any]) -> None:
    text = str(body.get("text", ""))
    if not text.strip() and not body.get("cardsV2"):
        raise GoogleRefusalError(400, "INVALID_ARGUMENT", "Message cannot be empty.")
    if body.get("markupSyntax", MARKDOWN) not in (MARKDOWN, CHAT_SYNTAX):
        raise GoogleRefusalError(400, "INVALID_ARGUMENT", "Invalid value at 'message.markup_syntax'.")
    if len(text.encode("utf-16-le")) // 2 > LONGEST_TEXT or len(json.dumps(body).encode()) > 2 * LARGEST:
        raise GoogleRefusalError(400, "INVALID_ARGUMENT", "Message is too long.")


def _widgets_of(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    cards: list[dict[str, Any]] = message.get("cardsV2") or []
    return [widget for card in cards for section in card["card"]["sections"] for widget in section["widgets"]]


def _buttons_of(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [button for one in _widgets_of(message) for button in one.get("buttonList", {}).get("buttons", [])]


def _shown_words(message: Mapping[str, Any]) -> str:
    words = [str(message.get("text", ""))]
    words += [one["image"]["imageUrl"] for one in _widgets_of(message) if "image" in one]
    words += [f"[{button['text']}]" for button in _buttons_of(message)]
    return "\n".join(filter(None, words))
