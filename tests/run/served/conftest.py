"""The small server, in a thread of a test or as a program of its own."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("small_server.py")


@pytest.fixture(scope="session")
def program() -> str:
    """The small server as a command."""
    return str(PROGRAM)


@pytest.fixture
def small() -> Iterator:
    """Starts small servers in threads; returns the address of each."""
    found = importlib.util.spec_from_file_location("small_server", PROGRAM)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    servers = []

    def start(*words: str) -> str:
        kind = type("Own", (module.Small,), {"given": module.options([*words, "--nap", "0"]), "seen": set()})
        server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()
