"""The objects of WhatsApp's webhooks, as far as they are read; what else Meta sends is passed over."""

from __future__ import annotations

from typing import Any

import msgspec


class WaProfile(msgspec.Struct):
    """How a person is shown."""

    name: str | None = None
    username: str | None = None


class WaContact(msgspec.Struct):
    """A person who writes."""

    wa_id: str | None = None
    """The phone number, in digits; people with a user name may hide it."""
    user_id: str | None = None
    """The id of the person for this business, which stays when the number changes or hides."""
    profile: WaProfile = msgspec.field(default_factory=WaProfile)


class WaText(msgspec.Struct):
    """A text."""

    body: str


class WaMedia(msgspec.Struct):
    """A file: a photo, a video, a voice message, a document, a sticker."""

    id: str
    mime_type: str | None = None
    caption: str | None = None
    filename: str | None = None
    voice: bool = False


class WaPlace(msgspec.Struct):
    """A place on the map."""

    latitude: float
    longitude: float
    name: str | None = None
    address: str | None = None


class WaChoice(msgspec.Struct):
    """A button or a row that a person has chosen."""

    id: str
    title: str = ""


class WaForm(msgspec.Struct):
    """The answers of a form."""

    response_json: str = ""
    body: str = ""


class WaInteractive(msgspec.Struct):
    """A choice among what was offered."""

    type: str
    button_reply: WaChoice | None = None
    list_reply: WaChoice | None = None
    nfm_reply: WaForm | None = None


class WaTemplateButton(msgspec.Struct):
    """The pressed button of a template."""

    text: str = ""
    payload: str = ""


class WaCardName(msgspec.Struct):
    """The name on a card."""

    formatted_name: str = ""


class WaCardPhone(msgspec.Struct):
    """A number on a card."""

    phone: str = ""


class WaCard(msgspec.Struct):
    """A contact that a person sends."""

    name: WaCardName = msgspec.field(default_factory=WaCardName)
    phones: list[WaCardPhone] = []


class WaContext(msgspec.Struct):
    """The message that is answered."""

    id: str | None = None
    sender: str | None = msgspec.field(default=None, name="from")


class WaMessage(msgspec.Struct):
    """A message."""

    id: str
    type: str
    timestamp: str
    sender: str | None = msgspec.field(default=None, name="from")
    from_user_id: str | None = None
    group_id: str | None = None
    text: WaText | None = None
    image: WaMedia | None = None
    video: WaMedia | None = None
    audio: WaMedia | None = None
    document: WaMedia | None = None
    sticker: WaMedia | None = None
    location: WaPlace | None = None
    contacts: list[WaCard] | None = None
    interactive: WaInteractive | None = None
    button: WaTemplateButton | None = None
    context: WaContext | None = None


class WaProblem(msgspec.Struct):
    """An error, in an answer or in a report."""

    code: int = 0
    title: str = ""
    message: str = ""
    error_data: dict[str, Any] | None = None


class WaStatus(msgspec.Struct):
    """A report on a message that was sent."""

    id: str
    status: str
    timestamp: str | None = None
    recipient_id: str | None = None
    recipient_user_id: str | None = None
    biz_opaque_callback_data: str | None = None
    errors: list[WaProblem] = []


class WaMetadata(msgspec.Struct):
    """The number of the business."""

    phone_number_id: str
    display_phone_number: str = ""
