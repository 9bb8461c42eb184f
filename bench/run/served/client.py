"""Requests to a server, by the standard library's HTTP client: JSON, and streams of events with the time of each.

A stream is only collected while it runs, and read when it is over: on a CPU whoever reads beside the server takes its
time. It knows nothing about what an event means.
"""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from pti_loop.engine import EngineError

MOST_BYTES = 64 << 20
"""Of one answer; a server that says more has gone wrong."""
SHOWN = 80
"""Letters of a strange answer that an error shows."""


class ServerFault(EngineError):
    """What a server did that no arm of a contrast may do, as a sentence without its subject."""


@dataclass
class Stream:
    """The bytes of one streamed answer, and when each piece of them came."""

    sent_ns: int
    pieces: list[tuple[int, bytes]] = field(default_factory=list[tuple[int, bytes]])
    finish_ns: int = 0
    whole: bool = False
    """Whether the server ended it as HTTP ends an answer."""


class Client:
    """One address. `patience` is how many seconds a server may say nothing; no request is sent twice."""

    def __init__(self, url: str, patience: float, clock: Callable[[], int] = time.perf_counter_ns) -> None:
        """Raises ValueError where the address is none."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"'{url}' is no address as http://HOST:PORT")
        self.url, self.patience, self._clock = url.rstrip("/"), patience, clock
        self._https, self._host, self._path = parts.scheme == "https", parts.hostname, parts.path.rstrip("/")
        self._port = parts.port or (443 if self._https else 80)

    def json(self, path: str, body: Any = None, patience: float = 0) -> Any:
        """What the server answers to a request, GET without a body. Raises `ServerFault`."""
        connection, answer = self._ask(path, body, patience or self.patience)
        try:
            with _told(patience or self.patience):
                content = answer.read(MOST_BYTES)
        finally:
            connection.close()
        if answer.status != http.client.OK:
            raise ServerFault(f"answers {path} with HTTP {answer.status}: {_shown(_message(content))}")
        try:
            return json.loads(content)
        except ValueError as error:
            raise ServerFault(f"answers {path} with what is no JSON: {_shown(content)}") from error

    def stream(self, path: str, body: Any) -> Stream:
        """A streamed answer, whole or as far as it came. Raises `ServerFault` where none begins, or it never ends."""
        stream = Stream(self._clock())
        connection, answer = self._ask(path, body, self.patience)
        try:
            if answer.status != http.client.OK:
                with _told(self.patience):
                    content = answer.read(MOST_BYTES)
                raise ServerFault(f"answers {path} with HTTP {answer.status}: {_shown(_message(content))}")
            self._collect(answer, stream)
        finally:
            connection.close()
        stream.finish_ns = self._clock()
        return stream

    def _collect(self, answer: http.client.HTTPResponse, stream: Stream) -> None:
        size, clock, pieces, heard = 0, self._clock, stream.pieces, time.monotonic()
        while True:
            try:
                piece = answer.read1(1 << 16)
            except TimeoutError as error:
                raise ServerFault(_silent(self.patience, stream)) from error
            except (OSError, http.client.HTTPException):  # what came before it tells how far the answer got
                return
            if not piece:
                stream.whole = answer.isclosed() or answer.length in (None, 0)
                return
            pieces.append((clock(), piece))
            if b"data:" in piece:
                heard = time.monotonic()
            elif time.monotonic() - heard > self.patience:  # bytes that keep a connection open are no answer
                raise ServerFault(_silent(self.patience, stream))
            size += len(piece)
            if size > MOST_BYTES:
                raise ServerFault(f"has sent {MOST_BYTES >> 20} MiB and goes on")

    def _ask(self, path: str, body: Any, patience: float) -> tuple[http.client.HTTPConnection,
                                                                   http.client.HTTPResponse]:  # fmt: skip
        kind = http.client.HTTPSConnection if self._https else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=patience)
        content = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Connection": "close"} if content else {"Connection": "close"}
        try:
            with _told(patience):
                connection.connect()
                connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connection.request("POST" if content else "GET", self._path + path, content, headers)
                return connection, connection.getresponse()
        except ServerFault:
            connection.close()
            raise


class _told:
    """Whatever goes wrong on the way is one sentence."""

    def __init__(self, patience: float) -> None:
        self._patience = patience

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, TimeoutError):
            raise ServerFault(f"said nothing for {self._patience:g} s") from error
        if isinstance(error, ConnectionRefusedError):
            raise ServerFault("does not answer: the connection is refused") from error
        if isinstance(error, socket.gaierror):
            raise ServerFault(f"cannot be found ({error.strerror})") from error
        if isinstance(error, http.client.HTTPException) and not isinstance(error, http.client.RemoteDisconnected):
            raise ServerFault(f"answers with what is no HTTP ({type(error).__name__}: {_shown(str(error))})") from error
        if isinstance(error, OSError):
            why = error.strerror or type(error).__name__
            raise ServerFault(f"closes the connection without an answer ({why})") from error


def events(stream: Stream) -> Iterator[tuple[int, bytes]]:
    """The data of each event of a stream, in the order that they came, with the time of the piece that ended it.

    Comments and other fields are no data. Raises `ServerFault` for lines that are none of an event stream.
    """
    rest, data = b"", list[bytes]()
    for when, piece in stream.pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            line = line.rstrip(b"\r")
            if line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
            elif not line and data:
                yield when, b"\n".join(data)
                data = []
            elif line and not line.startswith((b":", b"event:", b"id:", b"retry:")):
                raise ServerFault(f"streams what is no event: {_shown(line)}")
    if data or rest.strip():
        raise ServerFault(f"ends its stream in the middle of an event: {_shown(rest or data[-1])}")


def _silent(patience: float, stream: Stream) -> str:
    return f"said nothing for {patience:g} s, {len(stream.pieces)} pieces into its answer"


def _message(content: bytes) -> bytes | str:
    """What an error says of itself, where it says so in the usual form."""
    try:
        told = json.loads(content)
        error = told.get("error", told)
        return str(error.get("message", error) if isinstance(error, dict) else error)
    except (ValueError, AttributeError):
        return content


def _shown(text: bytes | str) -> str:
    """The beginning of a strange text, in letters that can be shown."""
    text = text.decode(errors="replace") if isinstance(text, bytes) else text
    found = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return f"'{found[:SHOWN]}'" if found else "nothing"
