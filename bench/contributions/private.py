"""What tells whose machine a record is from, and the text without it.

Users and hosts are known by name on the machine that packs; home folders, addresses and hardware serials by their form,
wherever they come from. Folders go too: what a file is called is enough. It knows nothing about cells.
"""

from __future__ import annotations

import getpass
import os
import platform
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

USER, HOST, HOME, ADDRESS, SERIAL = "(user)", "(host)", "~", "(address)", "(serial)"
_SHORTEST = 3
_NOBODY = {
    "root", "user", "users", "ubuntu", "debian", "fedora", "centos", "arch", "admin", "administrator",
    "runner", "docker", "podman", "vagrant", "jovyan", "ec2-user", "azureuser", "opc", "app", "node",
    "builder", "build", "nobody", "nonroot", "default", "guest", "test", "coder", "vscode", "worker", "work",
    "home", "host", "localhost", "localdomain", "local", "lan", "box", "machine", "server", "laptop",
    "desktop", "workstation", "computer", "linux", "container", "gpu", "cpu", "cuda", "hip", "amd", "intel",
    "nvidia", "epyc", "xeon", "h100", "h200", "a100", "mi50",
}  # fmt: skip
"""Names that many have: they tell nobody apart."""
_HOME = re.compile(
    r"(?:(?:/var|/export|/mnt|/data)?/(?:home|Users)/|[A-Za-z]:\\{1,2}Users\\{1,2})"
    r"([^/\\\s'\"`,;:)(\]\[<>|]+)"
)
_ROOT = re.compile(r"(?<![\w~./-])/root(?![\w-])")
_MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_IPV4 = re.compile(rf"(?<![\w.])(?:{_OCTET}\.){{3}}{_OCTET}(?![\w.]*\d)(?! [A-Z] )")
"""llama-server begins a line with such a number, its time, and the level's letter."""
_OWN_IPV4 = ("127.", "0.0.0.0")
_MAC = re.compile(r"(?<![0-9A-Fa-f:])(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}(?![0-9A-Fa-f:])")
_SERIAL = re.compile(r"\b(?:GPU|MIG)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_FOLDERS = re.compile(r"(?<![\w~./:\\-])(?:~|\.{1,2})?/(?:[^/\s'\"`,;:)(\]\[<>|=]+/)+(?=[^/\s])")
"""All of an absolute path but its last part."""
_URL = re.compile(r"https?://(?:[^/\s@]*@)?(\[[0-9a-fA-F:]+\]|[^/\s:]+)")
_OWN_HOSTS = ("localhost", "[::1]", "0.0.0.0")


@dataclass(frozen=True)
class Private:
    """Names of users and hosts, and home folders."""

    users: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()
    homes: tuple[str, ...] = ()

    def with_users(self, names: Iterable[str]) -> Private:
        """The same with further users."""
        return Private(self.users | _names(names), self.hosts, self.homes)

    def scrubbed(self, text: str) -> str:
        """The text without what tells who and where. The same text where nothing does."""
        for home in self.homes:
            text = re.sub(re.escape(home) + r"(?![\w.-])", HOME, text)
        text = _ROOT.sub(HOME, _HOME.sub(HOME, text))
        text = _FOLDERS.sub("", _MAIL.sub(ADDRESS, text))
        text = _IPV4.sub(lambda found: found[0] if found[0].startswith(_OWN_IPV4) else ADDRESS, text)
        text = _SERIAL.sub(SERIAL, _MAC.sub(ADDRESS, text))
        for words, stand_in in ((self._users, USER), (self._hosts, HOST)):
            text = words.sub(stand_in, text) if words else text
        return text

    def named(self, text: str) -> str:
        """The first name, home folder or address in a text; empty where there is none. Other folders are no name."""
        for home in self.homes:
            if found := re.search(re.escape(home) + r"(?![\w.-])", text):
                return found[0]
        for pattern in (_HOME, _ROOT, _MAIL, _MAC, _SERIAL, self._users, self._hosts):
            if pattern and (found := pattern.search(text)):
                return found[0]
        numbers = (found[0] for found in _IPV4.finditer(text) if not found[0].startswith(_OWN_IPV4))
        return next(numbers, "")

    @cached_property
    def _users(self) -> re.Pattern[str] | None:
        return _pattern(self.users)

    @cached_property
    def _hosts(self) -> re.Pattern[str] | None:
        return _pattern(self.hosts)


def _pattern(words: frozenset[str]) -> re.Pattern[str] | None:
    """A name as a word of its own: an underscore parts words, as in `alice_notes`."""
    told = "|".join(sorted(map(re.escape, words), key=lambda word: (-len(word), word)))
    return re.compile(rf"(?<![A-Za-z0-9])(?:{told})(?![A-Za-z0-9])", re.IGNORECASE) if told else None


def _names(words: Iterable[str]) -> frozenset[str]:
    found = {word.strip() for word in words}
    return frozenset(word for word in found if len(word) >= _SHORTEST and word.lower() not in _NOBODY)


def users_in(text: str) -> set[str]:
    """Whose home folders a text names."""
    return {found[1] for found in _HOME.finditer(text)}


def foreign_server(text: str) -> str:
    """The first server in a text that is not this machine itself; empty where there is none."""
    hosts = (found[1] for found in _URL.finditer(text))
    return next((host for host in hosts if host not in _OWN_HOSTS and not host.startswith("127.")), "")


def private_here() -> Private:
    """What tells who uses this machine, and what it is called."""
    users = [os.environ.get(name, "") for name in ("USER", "LOGNAME", "USERNAME", "SUDO_USER")]
    homes = [os.environ.get("HOME", ""), os.environ.get("USERPROFILE", "")]
    with suppress(Exception):  # a number without an entry has neither name nor home
        import pwd

        entry = pwd.getpwuid(os.getuid())
        users += [entry.pw_name, entry.pw_gecos.split(",")[0]]
        homes.append(entry.pw_dir)
    with suppress(Exception):
        users.append(getpass.getuser())
    hosts = [platform.node(), os.environ.get("HOSTNAME", ""), *_read_hosts()]
    hosts += [host.partition(".")[0] for host in hosts]
    kept = sorted({home.rstrip("/") for home in homes if home.count("/") > 1 or "\\" in home}, key=len, reverse=True)
    return Private(_names([*users, *(Path(home).name for home in kept)]), _names(hosts), tuple(kept))


def _read_hosts(etc: Path = Path("/etc")) -> list[str]:
    try:
        return (etc / "hostname").read_text().split()
    except OSError:
        return []
