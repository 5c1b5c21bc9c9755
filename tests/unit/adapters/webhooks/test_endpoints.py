"""Paths of webhooks, and what is refused before an endpoint is asked."""

from __future__ import annotations

import subprocess
import sys

from gateway_sessions.adapters.webhooks import Request, Response
from gateway_sessions.adapters.webhooks.endpoints import EndpointTable


class Small:
    path = "/small"
    max_body = 4

    async def answer(self, request: Request) -> Response:
        return Response(200, request.body)


class Large(Small):
    path = "/large"
    max_body = 400


async def test_each_path_has_its_own_limit():
    table = EndpointTable([Small(), Large()])
    assert (table.paths, table.max_body) == (("/small", "/large"), 400)
    for path, status in (("/small", 413), ("/large/", 200), ("/else", 404), ("/", 404)):
        assert (await table.answer(Request("POST", f"{path}?x=1", {}, b"12345"))).status == status


def test_a_missing_extra_is_one_sentence():
    program = (
        "import sys; sys.modules['httpx2'] = None\n"
        "import gateway_sessions.adapters.webhooks\n"
        "import gateway_sessions.integrations.whatsapp"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    last = ended.stderr.strip().splitlines()[-1]
    assert last.endswith("platforms that call webhooks need httpx2: pip install 'gateway-sessions[webhooks]'")
