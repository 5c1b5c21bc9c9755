"""Short ways to read the text of a configuration, and the problems of a bad one."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gateway_sessions.config import Config, parse_config
from gateway_sessions.errors import ConfigError, ConfigProblem


def parse(text: str, environ: Mapping[str, str] | None = None) -> Config:
    return parse_config(text, origin="config.yaml", environ=environ or {})


def problems_of(text: str, environ: Mapping[str, str] | None = None) -> tuple[ConfigProblem, ...]:
    with pytest.raises(ConfigError) as caught:
        parse(text, environ)
    return caught.value.problems
