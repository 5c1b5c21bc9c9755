"""A file with the key of a service account of Google, which opens nothing."""

import json
import tempfile
from functools import cache
from pathlib import Path

from gateway_sessions.testing.fakes.token_issuer import FakeIssuer


@cache
def google_key_file() -> Path:
    """Return the file, which is made anew in each process: no key stands in the repository."""
    issuer = FakeIssuer("bot@project.iam.gserviceaccount.com")
    key = {
        "client_email": issuer.issuer,
        "private_key": issuer.private_pem(),
        "private_key_id": issuer.key_id,
    }
    file = Path(tempfile.mkdtemp()) / "key.json"
    file.write_text(json.dumps(key))
    return file
