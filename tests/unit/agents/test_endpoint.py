"""An endpoint is checked once, at the edge, and keeps its key to itself."""

from datetime import timedelta

import pytest

from gateway_sessions import InvalidInputError
from gateway_sessions.agents import Endpoint
from gateway_sessions.config import ModelConfig

LOCAL = "http://127.0.0.1:11434/v1"


def test_the_environment_names_it():
    environ = {
        "OPENAI_MODEL": " large ",
        "OPENAI_BASE_URL": LOCAL,
        "OPENAI_API_KEY": "sk-1\n",
        "OPENAI_INSTRUCTIONS": "Be kind.",
    }
    assert Endpoint.from_environment(environ) == Endpoint(
        model="large", base_url=LOCAL, api_key="sk-1", instructions="Be kind."
    )


def test_what_is_given_counts_more_than_the_environment():
    environ = {"OPENAI_MODEL": "large", "OPENAI_API_KEY": "sk-1"}
    one = Endpoint.from_environment(environ, model="small", history_limit=20)
    assert (one.model, one.base_url, one.history_limit) == ("small", "https://api.openai.com/v1", 20)


def test_a_configuration_counts_more_than_the_environment():
    environ = {"OPENAI_MODEL": "large", "OPENAI_API_KEY": "sk-1", "OPENAI_INSTRUCTIONS": "Be kind."}
    config = ModelConfig(
        name="small",
        base_url=LOCAL,
        instructions="",
        history_limit=7,
        connect=timedelta(seconds=1),
        silence=timedelta(minutes=1),
    )
    assert Endpoint.from_config(config, environ) == Endpoint(
        model="small",
        base_url=LOCAL,
        api_key="sk-1",
        history_limit=7,
        connect_seconds=1,
        silence_seconds=60,
    )


def test_without_anything_said_a_configuration_is_what_an_endpoint_is_by_default():
    environ = {"OPENAI_MODEL": "large", "OPENAI_API_KEY": "sk-1"}
    assert Endpoint.from_config(ModelConfig(), environ) == Endpoint(model="large", api_key="sk-1")


def test_a_configuration_does_not_show_its_key():
    assert "sk-1" not in repr(ModelConfig(api_key="sk-1"))


@pytest.mark.parametrize("base_url", [LOCAL, f"{LOCAL}/"])
def test_it_is_asked_below_its_address(base_url: str):
    one = Endpoint(model="m", base_url=base_url)
    assert (one.url, one.host) == (f"{LOCAL}/chat/completions", "127.0.0.1:11434")


@pytest.mark.parametrize(
    ("address", "meant"),
    [(None, True), ("", True), (LOCAL, True), (f"{LOCAL}/", True), ("http://x/v1", False)],
)
def test_whose_address_it_is(address: str | None, *, meant: bool):
    assert Endpoint(model="m", base_url=LOCAL).is_meant_by(address) == meant


def test_its_key_is_not_shown():
    assert "sk-1" not in repr(Endpoint(model="m", api_key="sk-1"))


@pytest.mark.parametrize(
    ("members", "says"),
    [
        (
            {"model": ""},
            "model is missing; it is OPENAI_MODEL in the environment, model.name in a configuration",
        ),
        ({"model": "a\nb"}, "OPENAI_MODEL"),
        ({"model": "x" * 257}, "OPENAI_MODEL"),
        ({"base_url": "https://api.openai.com/v1"}, "OPENAI_API_KEY"),
        ({"base_url": "https://api.openai.com/v1/"}, "api.openai.com wants one"),
        ({"api_key": "sk-1\nx"}, "has characters that no key has"),
        ({"api_key": "sk-é"}, "OPENAI_API_KEY"),
        (
            {"further": {"temperature": 1, "model": "x", "stream": False}},
            "further: model, stream cannot be set",
        ),
    ],
)
def test_what_cannot_be_is_said_with_the_name_of_its_variable(members: dict, says: str):
    with pytest.raises(InvalidInputError, match=says):
        Endpoint(**{"model": "m", "base_url": LOCAL, **members})


@pytest.mark.parametrize(
    "base_url",
    [
        "127.0.0.1:11434",
        "ftp://host/v1",
        "http:///v1",
        "http://host:port/v1",
        "http://host:0/v1",
        "http://name:sk-1@host/v1",
        "http://sk-1@host/v1",
        "http://host/v1?key=sk-1",
        "http://host/v1#sk-1",
        "http://host/ v1",
        "http://host/v1\x00",
        "http://[::1/v1",
        "sk-1",
    ],
)
def test_an_address_has_no_secret_in_it_and_none_is_shown(base_url: str):
    with pytest.raises(InvalidInputError, match="OPENAI_BASE_URL") as caught:
        Endpoint(model="m", base_url=base_url)
    assert "sk-1" not in str(caught.value)
