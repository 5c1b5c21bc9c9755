"""A number on WhatsApp as a configuration names it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway_sessions.config.kinds import AdapterConfig
from gateway_sessions.errors import ConfigError
from gateway_sessions.integrations.registry import make_adapters
from gateway_sessions.integrations.whatsapp import WhatsApp

NEEDED = {"phone_number_id": 1065403, "access_token": "t", "app_secret": "s", "verify_token": "v"}


def test_a_number_is_made_from_its_four_values(tmp_path: Path):
    wanted = AdapterConfig(platform="whatsapp", name="shop", settings={**NEEDED, "port": 0, "host": "::1"})
    ((adapter, _),) = make_adapters([wanted], tmp_path)
    assert isinstance(adapter, WhatsApp)
    assert (adapter.name, adapter.path) == ("shop", "/whatsapp/shop")
    ((plain, _),) = make_adapters(
        [AdapterConfig(platform="whatsapp", name="", settings={**NEEDED, "path": "/hooks/wa"})], tmp_path
    )
    assert isinstance(plain, WhatsApp)
    assert plain.path == "/hooks/wa"


@pytest.mark.parametrize("missing", NEEDED)
def test_a_value_that_is_missing_is_one_sentence(missing: str):
    given = {name: value for name, value in NEEDED.items() if name != missing}
    with pytest.raises(ConfigError, match=f"needs {missing}: write"):
        make_adapters([AdapterConfig(platform="whatsapp", name="", settings=given)])


def test_a_number_in_place_of_its_id_is_told():
    with pytest.raises(ConfigError, match="must be the id of a number"):
        make_adapters(
            [AdapterConfig(platform="whatsapp", name="", settings={**NEEDED, "phone_number_id": "+1 555"})]
        )
