"""Addresses are shown with host and path, and without any secret."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_sessions.core.display_text import mask_url_secrets


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://api.example/v1", "https://api.example/v1"),
        ("http://127.0.0.1:9/x?token=geheim", "http://127.0.0.1:9/x?***"),
        ("http://user:geheim@host:80/v1/chat?key=geheim#frag", "http://***@host:80/v1/chat?***"),
        ("http://geheim@host/v1", "http://***@host/v1"),
        ("http://user:ge/heim@host/v1", "http://***"),
        ("http://user:ge?heim@host/v1", "http://***"),
        ("http://user:ge#heim@host/v1", "http://***"),
        ("http://host/v1?mail=me@example", "http://***"),
        ("http://[::1]:80/x", "http://[::1]:80/x"),
        ("http://host/x#geheim", "http://host/x#***"),
        (
            "https://hooks.example/services/T00000000/B0/aB3dE5gH7jK9mN1pQ3sT5",
            "https://hooks.example/services/T00000000/B0/***",
        ),
        ("https://api.example/bot123456:geheim/send", "https://api.example/***/send"),
        ("host=db password=geheim user=me", "host=db password=*** user=me"),
        ("see http://a:geheim@b/ and https://c/?d", "see http://***@b/ and https://c/?***"),
        ("sqlite:///store.db?password=geheim", "sqlite:///store.db?***"),
        ("Europe/Berlin", "Europe/Berlin"),
        ("http://", "http://"),
    ],
)
def test_what_is_shown_of_an_address(text: str, shown: str):
    assert mask_url_secrets(text) == shown


secrets = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=6).map("QQ{}QQ".format)
FORMS = (
    "https://u:{}@h/p",
    "https://{}@h/p",
    "https://h/p?t={}",
    "https://h/p?a=1&t={}#x",
    "https://u:{}@h:1/p?q={}",
)


@given(secret=secrets, form=st.sampled_from(FORMS))
def test_no_password_and_no_option_is_shown(secret: str, form: str):
    assert "QQ" not in mask_url_secrets(form.replace("{}", secret))
