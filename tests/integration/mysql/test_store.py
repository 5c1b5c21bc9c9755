"""A store on a MySQL or MariaDB server."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gateway_sessions.config import Provider
from tests.integration.servers.store_on_server import StoreOnServer
from tests.mysql import open_connection


class TestStore(StoreOnServer):
    provider, package, extra = Provider.MYSQL, "asyncmy", "mysql"
    wrong = (
        "mysql://me:hunter2@127.0.0.1:1/x",
        "mariadb://me:hunter2@[/x",
        "mysql://me:hunter2@127.0.0.1/x?ssl-mode=hunter2",
    )
    two_of_the_same = ("a:x@h/db", "b:y@h/db?ssl-mode=REQUIRED")
    others = ("h/other", "h2/db", "/db?unix-socket=/a", "/db?unix-socket=/b")

    @asynccontextmanager
    async def with_password(self, address: str) -> AsyncIterator[str]:
        user = f"gateway_{secrets.token_hex(4)}"
        async with open_connection(address) as admin:
            await admin.run_texts(f"CREATE USER {user} IDENTIFIED BY 'hunter2'; GRANT ALL ON *.* TO {user}")
            try:
                yield address.replace("root@", f"{user}:hunter2@")
            finally:
                await admin.run_texts(f"DROP USER {user}")
