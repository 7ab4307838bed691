"""Compiled artifacts on disk: machine code that the host will run, so each is proved to be ours before it is mapped.

An artifact lies in ``{fingerprint}-{digest}.{tag}.cwasm``. The tag is a hash of the key and the artifact, or a MAC when
the host passes a secret. It is checked, and the artifact mapped, through one open descriptor, so that nothing can be
put in its place in between. What is wrong or stale is unlinked and compiled again. wasmtime maps the file for as long
as the module lives: files are never written in place nor truncated, only renamed over and unlinked.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import logging
import os
import re
import secrets
import stat
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

import wasmtime

from .errors import SandboxError
from .limits import MIB

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ArtifactCache", "default_directory"]

_log = logging.getLogger(__name__)

_KEY = re.compile(r"[0-9a-f]{16}-[0-9a-f]{64}")
_ARTIFACT_NAME = re.compile(r"([0-9a-f]{16}-[0-9a-f]{64})\.([0-9a-f]{64})\.cwasm")
_TEMPORARY_NAME = re.compile(r"[0-9a-f]{32}\.tmp")

_LARGEST_ARTIFACT_BYTES = 1024 * MIB
_ENTRIES_READ = 100_000
"""Directory entries looked at; a directory with more is not ours to search."""
_TEMPORARY_SECONDS = 3_600
"""An unfinished file older than this was left by a process that died."""
_CHUNK_BYTES = 1 * MIB

# Windows has none of these; there the directory is trusted as the user's own.
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)
_BINARY = getattr(os, "O_BINARY", 0)
_BY_DESCRIPTOR = os.open in os.supports_dir_fd and os.rename in os.supports_dir_fd and os.scandir in os.supports_fd


def default_directory() -> Path:
    """Where artifacts go when the host names no directory: the user's own cache.

    Raises:
        SandboxError: The user has no home directory.
    """
    try:
        return _user_cache() / "hookcell" / "artifacts"
    except RuntimeError as error:
        raise SandboxError(f"{error}; give ArtifactCache a directory, or do without a cache") from error


def _user_cache() -> Path:
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local) if local else Path.home() / "AppData" / "Local"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    # The specification of XDG_CACHE_HOME has relative paths ignored.
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return named if named.is_absolute() else Path.home() / ".cache"


class ArtifactCache:
    """A bounded directory of artifacts, shared safely by threads and by processes of one user.

    Args:
        directory: Where; made with mode 0700 if it is not there. None: `default_directory`.
        max_bytes: The most that all artifacts take together; the least recently used go first.
        max_files: The most artifacts.
        mac_key: A secret of at least 16 bytes. With it an artifact is accepted only if it was stored under the same
            secret, so that writing to the directory is not enough to run code in the host. Without it the tag proves
            that the file is whole, and the directory's mode has to prove the rest.

    Raises:
        SandboxError: The directory is not a directory of ours alone, or cannot be used.
        ValueError: A bound or a key that is too small.
    """

    def __init__(
        self,
        directory: Path | None = None,
        *,
        max_bytes: int = 1024 * MIB,
        max_files: int = 4_096,
        mac_key: bytes | None = None,
    ) -> None:
        if max_bytes < 1 or max_files < 1:
            raise ValueError(f"max_bytes is {max_bytes:_} and max_files {max_files:_}; give 1 or more, or no cache")
        if mac_key is not None and len(mac_key) < 16:
            raise ValueError(f"mac_key has {len(mac_key)} bytes; give at least 16 random ones")
        self.directory = default_directory() if directory is None else Path(directory).absolute()
        self.max_bytes = max_bytes
        self.max_files = max_files
        self._mac_key = mac_key
        self._lock = threading.RLock()  # a signal handler or a destructor may load a module too
        self._fd = _open_directory(self.directory)
        # Held as long as the cache: a directory that is moved or replaced later is not followed.
        weakref.finalize(self, _close_descriptor, self._fd)

    def load(self, engine: wasmtime.Engine, key: str) -> wasmtime.Module | None:
        """The module stored under a key, or None; what is there and not right is unlinked.

        Args:
            engine: Whose settings the key's fingerprint names.
            key: ``{fingerprint}-{digest}``, lowercase hex.
        """
        _checked(key)
        try:
            names = [name for name in self._names() if name.startswith(f"{key}.")]
        except OSError as error:
            _log.warning("artifact directory %s cannot be read: %s", self.directory, error)
            return None
        for name in names:
            tag = name[len(key) + 1 : -len(".cwasm")]
            module = self._load_one(engine, name, key, tag)
            if module is not None:
                return module
            self._unlink(name)
        return None

    def store(self, key: str, artifact: bytes) -> bool:
        """Keep an artifact, then evict. False when it was not kept: too large, or the disk would not take it."""
        _checked(key)
        if len(artifact) > min(self.max_bytes, _LARGEST_ARTIFACT_BYTES):
            return False
        tag = self._tag(key)
        tag.update(artifact)
        name = f"{key}.{tag.hexdigest()}.cwasm"
        temporary = f"{secrets.token_hex(16)}.tmp"
        try:
            self._write(temporary, artifact)
            os.replace(self._at(temporary), self._at(name), src_dir_fd=self._fd, dst_dir_fd=self._fd)
        except OSError as error:
            self._unlink(temporary)
            _log.warning("compiled code was not kept in %s: %s", self.directory, error)
            return False
        except BaseException:
            self._unlink(temporary)
            raise
        with contextlib.suppress(OSError):
            self._evict(keep=name)
        return True

    def _load_one(self, engine: wasmtime.Engine, name: str, key: str, tag: str) -> wasmtime.Module | None:
        """The module in a file that proved to be ours; None when it did not."""
        flags = os.O_RDONLY | _NOFOLLOW | _CLOEXEC | _NONBLOCK | _BINARY
        try:
            fd = os.open(self._at(name), flags, dir_fd=self._fd)
        except OSError as error:
            # A symbolic link (ELOOP), or gone since the directory was read.
            _log.info("artifact %s does not open: %s", name, error)
            return None
        try:
            why = _not_ours(os.fstat(fd)) or self._mismatch(fd, key, tag)
            if why is not None:
                _log.warning("artifact %s is not loaded and is compiled again: it %s", name, why)
                return None
            module = _map(engine, fd)
            # The time of last use, for eviction.
            with contextlib.suppress(OSError):
                os.utime(fd if os.utime in os.supports_fd else self._at(name))
        except (OSError, wasmtime.WasmtimeError) as error:
            _log.info("artifact %s is stale and is compiled again: %s", name, error)
            return None
        else:
            return module
        finally:
            os.close(fd)

    def _mismatch(self, fd: int, key: str, tag: str) -> str | None:
        found = self._tag(key)
        while chunk := os.read(fd, _CHUNK_BYTES):
            found.update(chunk)
        # In constant time: what the MAC of a forged file would be is nobody's business.
        return None if hmac.compare_digest(found.hexdigest(), tag) else "does not match its tag"

    def _tag(self, key: str) -> _Hash:
        """A running hash or MAC that has taken the key, so that an artifact does not pass under another's name."""
        tag = hashlib.sha256() if self._mac_key is None else hmac.new(self._mac_key, digestmod="sha256")
        tag.update(f"hookcell artifact {key}\n".encode())
        return tag

    def _write(self, name: str, artifact: bytes) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW | _CLOEXEC | _BINARY
        fd = os.open(self._at(name), flags, 0o600, dir_fd=self._fd)
        with os.fdopen(fd, "wb") as file:
            file.write(artifact)
            file.flush()
            # A name that survives a power cut must not stand over bytes that did not.
            os.fsync(file.fileno())

    def _evict(self, *, keep: str) -> None:
        """Unlink the least recently used artifacts beyond the bounds, and what dead processes left unfinished."""
        with self._lock:
            found: list[tuple[float, int, str]] = []
            for name in self._names(temporary=True):
                try:
                    status = os.stat(self._at(name), dir_fd=self._fd, follow_symlinks=False)
                except OSError:
                    continue
                if _TEMPORARY_NAME.fullmatch(name) is None:
                    found.append((status.st_mtime, status.st_size, name))
                elif status.st_mtime < time.time() - _TEMPORARY_SECONDS:
                    self._unlink(name)
            found.sort(key=lambda entry: (entry[2] == keep, entry[0]))
            total, count = sum(size for _, size, _ in found), len(found)
            for _, size, name in found:
                if total <= self.max_bytes and count <= self.max_files:
                    break
                self._unlink(name)
                total, count = total - size, count - 1

    def _names(self, *, temporary: bool = False) -> Iterator[str]:
        """Names in the directory that are ours, by their form."""
        # A descriptor of its own: threads that read through one share its place in the directory, and each would see
        # only what the others left.
        own = None if self._fd is None else os.open(".", os.O_RDONLY | os.O_DIRECTORY | _CLOEXEC, dir_fd=self._fd)
        try:
            with os.scandir(self.directory if own is None else own) as entries:
                for read, entry in enumerate(entries):
                    if read >= _ENTRIES_READ:
                        return
                    if _ARTIFACT_NAME.fullmatch(entry.name) or (temporary and _TEMPORARY_NAME.fullmatch(entry.name)):
                        yield entry.name
        finally:
            _close_descriptor(own)

    def _unlink(self, name: str) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._at(name), dir_fd=self._fd)

    def _at(self, name: str) -> str:
        return name if self._fd is not None else str(self.directory / name)


if TYPE_CHECKING:
    from typing import Protocol

    class _Hash(Protocol):
        def update(self, data: bytes, /) -> None: ...
        def hexdigest(self) -> str: ...


def _checked(key: str) -> None:
    # The key becomes a file name.
    if _KEY.fullmatch(key) is None:
        raise ValueError(f"{key!r} is no artifact key; give the fingerprint and the sha256 digest, hex")


def _map(engine: wasmtime.Engine, fd: int) -> wasmtime.Module:
    """The module behind a descriptor whose contents were verified."""
    # On Linux this opens the very file that was verified, whatever its name stands for by now.
    path = f"/proc/self/fd/{fd}"
    if sys.platform == "linux" and os.path.exists(path):  # noqa: PTH110 a Path would say no more
        return wasmtime.Module.deserialize_file(engine, path)
    os.lseek(fd, 0, os.SEEK_SET)
    with os.fdopen(fd, "rb", closefd=False) as file:
        return wasmtime.Module.deserialize(engine, file.read(_LARGEST_ARTIFACT_BYTES))


def _not_ours(status: os.stat_result) -> str | None:
    """Why a file is not one that only we can have written; None when it is."""
    if not stat.S_ISREG(status.st_mode):
        return "is not a regular file"
    if status.st_size > _LARGEST_ARTIFACT_BYTES:
        return f"has {status.st_size:_} bytes"
    if sys.platform == "win32":
        return None
    if status.st_uid != os.geteuid():
        return f"belongs to user {status.st_uid}"
    if status.st_mode & 0o022:
        return f"may be written by others (mode {stat.S_IMODE(status.st_mode):04o})"
    return None


def _open_directory(directory: Path) -> int | None:
    """A descriptor of the cache directory, made if it is missing; None where the platform has no such calls.

    Raises:
        SandboxError: It is a symbolic link or no directory, belongs to another user, or lets others in.
    """
    advice = "give ArtifactCache a directory of your own, or do without a cache"
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _BY_DESCRIPTOR:
            return None
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | _NOFOLLOW | _CLOEXEC)
    except OSError as error:
        raise SandboxError(f"artifact directory {directory} cannot be used ({error.strerror}); {advice}") from error
    try:
        status = os.fstat(fd)
        if status.st_uid != os.geteuid():
            raise SandboxError(
                f"artifact directory {directory} belongs to user {status.st_uid}, not to {os.geteuid()}, who runs "
                f"this; {advice}"
            )
        mode = stat.S_IMODE(status.st_mode)
        if mode & 0o077:
            raise SandboxError(
                f"artifact directory {directory} has mode {mode:04o}, so others could put code there; "
                f"`chmod 700 {directory}`, or {advice}"
            )
        if mode & 0o700 != 0o700 or not os.access(directory, os.W_OK):
            raise SandboxError(f"artifact directory {directory} (mode {mode:04o}) cannot be written; {advice}")
    except BaseException:
        os.close(fd)
        raise
    return fd


def _close_descriptor(fd: int | None) -> None:
    if fd is not None:
        os.close(fd)
