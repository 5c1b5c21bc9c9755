"""Asks the peer for session keys, for who shares a session, and for the stored form of a source."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from gateway.config import Platform  # type: ignore[import-not-found]  # only in the peer's environment
from gateway.session import (  # type: ignore[import-not-found]  # only in the peer's environment
    SessionSource,
    build_session_key,
    is_shared_multi_user_session,
)
from gateway.whatsapp_identity import (  # type: ignore[import-not-found]  # only in the peer's environment
    canonical_whatsapp_identifier,
)

Fields = dict[str, Any]

CHAT_TYPES = ("dm", "group", "channel", "thread", "forum")
FLAGS: tuple[Fields, ...] = (
    {},
    {"group_sessions_per_user": False},
    {"thread_sessions_per_user": True},
    {"group_sessions_per_user": False, "thread_sessions_per_user": True},
)
# Platform: chat, person, the person's other id, thread; as each platform really writes them.
IDS = {
    "local": ("cli", "cli", "", ""),
    "telegram": ("-1002285219667", "123456789", "", "17585"),
    "discord": ("1190000000000000001", "80351110224678912", "", "1190000000000000777"),
    "whatsapp_cloud": ("15551234567", "15551234567", "", "wamid.HBgL"),
    "slack": ("C0ABC1DEF", "U0123ABCD", "", "1716239022.123459"),
    "signal": ("+15557654321", "+15557654321", "8f3b2c1d-77aa-4a0e-9d3c-0f1e2d3c4b5a", ""),
    "mattermost": ("4xp9fdt77pncbef59f4k1qe83o", "u8kd3yrx7fbmmgw1jt6gqrbxqo", "", "root1post2id"),
    "matrix": ("!31hneApxJ_1o-63DmFrpeqnkFfWppnzWso1JvH3ogLM", "@alice", "", "$thread_event-id"),
    "homeassistant": ("assist", "person.alice", "", ""),
    "email": ("alice@example.org", "alice@example.org", "", "<msg-1@example.org>"),
    "sms": ("+4915112345678", "+4915112345678", "", ""),
    "dingtalk": ("cidAbCdEf+/==", "manager4220", "", ""),
    "api_server": ("conversation-7", "key_17", "", ""),
    "webhook": ("deploys", "ci", "", "build-9"),
    "msgraph_webhook": ("19_abc@thread.v2", "29f1c3d4-aaaa-bbbb-cccc-1234567890ab", "", "1716239022"),
    "feishu": ("oc_a0553eda9014c201e6969b478895c230", "ou_7d8a6e", "on_94a1ee5551019f18", "omt_d4be107c"),
    "wecom": ("wrOgQhDgAAMYQiS5ol9G7gK9JVAAAA", "zhangsan", "", ""),
    "weixin": ("filehelper", "wxid_abc", "", ""),
    "bluebubbles": ("iMessage;-;+15550001111", "+15550001111", "", ""),
    "qqbot": ("GROUP_OPENID", "MEMBER_OPENID", "", "56789"),
}
WIDELY_USED = 8  # the first ones, with every chat type
UNICODE = (
    "raum-größe",
    "部屋",
    "غرفة",
    "комната",
    "👩‍👩‍👧",
    "e\u0301",
    "İstanbul",
    "\uff21\uff22",
    "a\u00a0b",
)
SLASHED = (
    "spaces/AAAAb1c2",
    "spaces/x/threads/y",
    "a//b",
    "/leading",
    "trailing/",
    "back\\slash",
    ".",
    "a b",
    " a ",
)


def source_of(fields: Fields) -> Any:
    """The peer's record from plain fields."""
    return SessionSource(**{"chat_id": ""} | fields | {"platform": Platform(fields["platform"])})


def key_vector(fields: Fields, flags: Fields) -> Fields:
    vector: Fields = {"source": fields} | ({"flags": flags} if flags else {})
    try:
        return vector | {"key": build_session_key(source_of(fields), **flags)}
    except ValueError as problem:
        return vector | {"error": type(problem).__name__}


def distinct(vectors: Iterable[Fields]) -> list[Fields]:
    return list({json.dumps(one, sort_keys=True): one for one in vectors}.values())


def has_identifier(fields: Fields) -> bool:
    return any(fields.get(name) for name in ("chat_id", "user_id", "user_id_alt", "thread_id"))


def shapes(platform: str, chat_type: str) -> Iterator[Fields]:
    """One origin with everything, then with one or two of its ids taken away."""
    chat, user, alt, thread = IDS[platform]
    whole = {"platform": platform, "chat_type": chat_type, "chat_id": chat, "user_id": user}
    whole |= {"user_id_alt": alt} if alt else {}
    threaded = whole | {"thread_id": thread or "t1"}
    yield whole
    yield threaded
    yield without(whole, "user_id", "user_id_alt")
    yield without(threaded, "chat_id")
    yield without(whole, "chat_id")


def without(fields: Fields, *names: str) -> Fields:
    return {name: value for name, value in fields.items() if name not in names}


def keys() -> list[Fields]:
    """Vectors whose keys ours must equal byte for byte."""
    found = [
        key_vector(shape, {})
        for number, platform in enumerate(IDS)
        for chat_type in (CHAT_TYPES if number < WIDELY_USED else CHAT_TYPES[:2])
        for shape in shapes(platform, chat_type)
    ]
    for platform, chat_type, flags in itertools.product(("telegram", "feishu"), CHAT_TYPES, FLAGS[1:]):
        found += [key_vector(shape, flags) for shape in shapes(platform, chat_type)]
    found += [key_vector(fields, {}) for fields in odd_sources()]
    for profile, chat_type in itertools.product((None, "", "default", "main", "coder", "büro"), CHAT_TYPES):
        shape = next(shapes("discord", chat_type))
        found += [key_vector(shape, {"profile": profile}), key_vector(shape | {"profile": profile}, {})]
    return distinct(found)


def odd_sources() -> Iterator[Fields]:
    """Text in other scripts, slashes and blanks in each place, and fields that do not name a lane."""
    for text, chat_type in itertools.product(UNICODE + SLASHED, ("dm", "group")):
        yield {"platform": "discord", "chat_type": chat_type, "chat_id": text, "user_id": "7"}
        yield {
            "platform": "discord",
            "chat_type": chat_type,
            "chat_id": "c",
            "user_id": text,
            "thread_id": text,
        }
    for chat_type in CHAT_TYPES:
        lane = {"platform": "signal", "chat_type": chat_type, "chat_id": "c1", "user_id": "u1"}
        yield lane | {"chat_id_alt": "alt-chat"}
        yield lane | {"guild_id": "g1", "parent_chat_id": "p1", "message_id": "m1"}
        yield lane | {"chat_name": "Team", "user_name": "Alice", "chat_topic": "all things"}
        yield without(lane, "user_id") | {"user_id_alt": "only-alt"}
        yield without(lane, "chat_id", "user_id") | {"user_id_alt": "only-alt"}
        yield without(lane, "chat_id", "user_id") | {"thread_id": "only-thread"}
        yield lane | {"user_id": "", "thread_id": ""}
    for chat_type in ("supergroup", "private", "DM", "space"):
        yield {
            "platform": "telegram",
            "chat_type": chat_type,
            "chat_id": "c",
            "user_id": "u",
            "thread_id": "t",
        }
    yield {"platform": "telegram", "chat_id": "99"}


WHATSAPP_FORMS = (
    "15551234567@s.whatsapp.net", "15551234567:47@s.whatsapp.net", "+15551234567", "15551234567",
    " 15551234567 ", "999999999999999@lid", "999999999999999:2@lid", "999999999999999",
    "120363012345678901@g.us", "status@broadcast", "15551234567@c.us", "++15551234567", "+1 (555) 123-4567",
)  # fmt: skip
PHONE, LID = "15551234567", "999999999999999"
ALIAS_FILES: tuple[dict[str, Any], ...] = (
    {},
    {f"lid-mapping-{PHONE}.json": LID, f"lid-mapping-{LID}_reverse.json": PHONE},
    {f"lid-mapping-{LID}_reverse.json": f"{PHONE}@s.whatsapp.net"},
    {f"lid-mapping-{PHONE}.json": "77@lid", "lid-mapping-77.json": "5551@lid"},
    {f"lid-mapping-{PHONE}.json": "", f"lid-mapping-{LID}.json": None},
    {f"lid-mapping-{LID}.json": "15550000001", "lid-mapping-15550000001.json": PHONE},
)


def whatsapp_keys(home: Path) -> list[Fields]:
    """The forms in which WhatsApp names people, with and without the bridge's alias files."""
    folder = home / "platforms" / "whatsapp" / "session"
    folder.mkdir(parents=True)
    found = []
    for files in ALIAS_FILES:
        for name, content in files.items():
            (folder / name).write_text(json.dumps(content))
        forms = WHATSAPP_FORMS[:6] if files else WHATSAPP_FORMS
        found += [whatsapp_vector(fields, files) for fields in whatsapp_sources(forms)]
        for name in files:
            (folder / name).unlink()
    return distinct(found)


def whatsapp_sources(forms: Sequence[str]) -> Iterator[Fields]:
    for form in forms:
        yield {"platform": "whatsapp", "chat_type": "dm", "chat_id": form}
        yield {"platform": "whatsapp", "chat_type": "group", "chat_id": "120363@g.us", "user_id": form}
    for form in forms[2:6:3]:
        yield {"platform": "whatsapp", "chat_type": "dm", "user_id": form}
        yield {"platform": "whatsapp", "chat_type": "group", "chat_id": form}
        yield {"platform": "whatsapp", "chat_type": "dm", "chat_id": form, "thread_id": "t1"}
        yield {
            "platform": "whatsapp",
            "chat_type": "group",
            "chat_id": "1@g.us",
            "user_id_alt": form,
            "user_id": "3",
        }


def whatsapp_vector(fields: Fields, files: dict[str, Any]) -> Fields:
    vector = key_vector(fields, {})
    canonical = {}
    for name in ("chat_id", "user_id", "user_id_alt"):
        if value := fields.get(name):
            try:
                canonical[value] = canonical_whatsapp_identifier(value)
            except ValueError:
                canonical[value] = None
    return vector | {"alias_files": files, "canonical": canonical}


def keys_without_identifier() -> list[Fields]:
    """Origins that name nobody and no place."""
    vectors = [
        key_vector({"platform": platform, "chat_type": chat_type}, {})
        for platform, chat_type in itertools.product(
            ("telegram", "discord", "whatsapp", "webhook"), CHAT_TYPES
        )
    ]
    return [one for one in vectors if not has_identifier(one["source"])]


RAW = (
    "a:b",
    ":",
    "a:",
    ":b",
    "50%",
    "%",
    "%3A",
    "%25",
    "a%3Ab",
    "!room:example.org",
    "@alice:example.org",
    "::1",
)


def deliberate_differences() -> list[Fields]:
    """Separators inside parts: the peer joins them raw, so different origins may share a key."""
    found = []
    for text, chat_type in itertools.product(RAW, ("dm", "group", "thread")):
        lane = {"platform": "matrix", "chat_type": chat_type, "user_id": "u1"}
        found.append(lane | {"chat_id": text})
        found.append(lane | {"chat_id": "c1", "thread_id": text})
        found.append(lane | {"chat_id": "c1", "user_id": text})
    found += [fields for pair in collisions() for fields in pair]
    found.append({"platform": "slack", "chat_type": "a:b", "chat_id": "c"})
    vectors = [key_vector(fields, {}) for fields in found]
    vectors += [key_vector(found[0] | {"chat_id": "c"}, {"profile": name}) for name in ("a:b", "50%")]
    return distinct(one for one in vectors if reaches_the_key(one))


def reaches_the_key(vector: Fields) -> bool:
    """Whether the separators stand in a part that the key is made of."""
    source, flags = (
        {name: value.replace(":", "x").replace("%", "x") for name, value in fields.items()}
        for fields in (vector["source"], vector.get("flags", {}))
    )
    return bool(key_vector(source, flags)["key"] != vector["key"])


def collisions() -> Iterator[tuple[Fields, Fields]]:
    """Two origins each that the peer gives one key."""
    lane = {"platform": "slack", "chat_type": "group"}
    yield lane | {"chat_id": "a:b"}, lane | {"chat_id": "a", "thread_id": "b"}
    yield lane | {"chat_id": "C:7"}, lane | {"chat_id": "C", "user_id": "7"}
    yield lane | {"chat_id": "C", "thread_id": "7:8"}, lane | {"chat_id": "C:7", "thread_id": "8"}
    direct = {"platform": "slack", "chat_type": "dm"}
    yield direct | {"chat_id": "D:1"}, direct | {"chat_id": "D", "thread_id": "1"}


def shared() -> list[Fields]:
    """Whether several people share the session, for every combination that could matter."""
    found = []
    for chat_type, thread, flags in itertools.product(CHAT_TYPES, ("", "t1"), FLAGS):
        fields = {"platform": "telegram", "chat_type": chat_type, "chat_id": "c1"}
        fields |= {"thread_id": thread} if thread else {}
        answer = is_shared_multi_user_session(source_of(fields), **flags)
        found.append({"source": fields, "flags": flags, "shared": answer})
    return found


OPTIONAL: Fields = {
    "chat_name": "Team Größe", "user_id": "u1", "user_name": "Alice 👩", "thread_id": "t1", "chat_topic": "",
    "user_id_alt": "alt-u", "chat_id_alt": "alt-c", "guild_id": "g1", "parent_chat_id": "p1",
    "message_id": "m1", "profile": "coder", "is_bot": True, "role_authorized": True,
}  # fmt: skip


def sources() -> list[Fields]:
    """The stored form and the description: nothing set, each field alone, and all of them."""
    choices: list[Fields] = [{}, OPTIONAL, *({name: value} for name, value in OPTIONAL.items())]
    choices += [{"scope_id": "s1"}, {"scope_id": "s1", "guild_id": "g1"}, {"guild_id": ""}]
    choices += [{"auto_thread_created": True, "auto_thread_initial_name": "first words"}]
    choices += [{"user_name": "", "user_id": "u1"}, {"chat_name": "", "user_name": "Bob"}]
    found = []
    for platform, chat_type in (("local", "dm"), *itertools.product(("discord",), CHAT_TYPES)):
        for extra in choices if (platform, chat_type) == ("discord", "dm") else choices[:7]:
            fields = {"platform": platform, "chat_id": "c1", "chat_type": chat_type} | extra
            source = source_of(fields)
            found.append({"source": fields, "dict": source.to_dict(), "description": source.description})
    return distinct(found)


def sources_read() -> list[Fields]:
    """Stored forms, whole and broken, and what reading and writing them again gives."""
    lane = {"platform": "telegram", "chat_id": "c1"}
    stored: list[Fields] = [
        lane, lane | {"chat_id": 99}, lane | {"chat_type": "group"}, lane | {"chat_type": None},
        lane | {"guild_id": "g"}, lane | {"scope_id": "s", "guild_id": "g"},
        lane | {"scope_id": None, "guild_id": "g"},
        lane | {"later_field": {"kept": False}}, lane | {"user_id": 7}, lane | {"is_bot": True},
        lane | {"auto_thread_created": True, "auto_thread_initial_name": "first words"},
        lane | {"platform": "Telegram "}, lane | {"platform": "no such platform"}, without(lane, "platform"),
        without(lane, "chat_id"), lane | {"chat_id": None}, lane | {"platform": 5}, {},
    ]  # fmt: skip
    return [{"stored": one} | read_again(one) for one in stored]


def read_again(stored: Fields) -> Fields:
    try:
        return {"dict": SessionSource.from_dict(stored).to_dict()}
    except (KeyError, TypeError, ValueError) as problem:
        return {"error": type(problem).__name__}
