"""Runs a program on a fake Discord: `python -m … API GATEWAY PROGRAM`."""

from __future__ import annotations

import runpy
import sys

from gateway_sessions.testing.fakes.discord.discord_py import discord_py_pointed_at

if __name__ == "__main__":
    with discord_py_pointed_at(*sys.argv[1:3]):
        runpy.run_path(sys.argv[3], run_name="__main__")
