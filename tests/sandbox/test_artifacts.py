"""The artifact cache: nothing is loaded that is not proved to be ours, and it stays within its bounds."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest
import wasmtime

from hookcell_sandbox.artifacts import ArtifactCache, default_directory
from hookcell_sandbox.errors import SandboxError
from hookcell_sandbox.settings import EngineSettings, config, fingerprint

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX modes and owners")

KEY = f"{fingerprint(EngineSettings())}-{'a' * 64}"
OTHER_KEY = f"{fingerprint(EngineSettings())}-{'b' * 64}"
SECRET = b"a secret of the host"


@pytest.fixture(scope="module")
def engine() -> wasmtime.Engine:
    return wasmtime.Engine(config(EngineSettings()))


def compiled(engine: wasmtime.Engine, answer: int = 42) -> bytes:
    wat = f'(module (func (export "answer") (result i32) (i32.const {answer})))'
    return bytes(wasmtime.Module(engine, bytes(wasmtime.wat2wasm(wat))).serialize())


@pytest.fixture(scope="module")
def artifact(engine: wasmtime.Engine) -> bytes:
    return compiled(engine)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "artifacts"


def answer(engine: wasmtime.Engine, module: wasmtime.Module | None) -> int:
    assert module is not None
    store = wasmtime.Store(engine)
    store.set_fuel(1_000)
    entry = wasmtime.Instance(store, module, []).exports(store)["answer"]
    assert isinstance(entry, wasmtime.Func)
    return entry(store)


def names(directory: Path) -> list[str]:
    return sorted(entry.name for entry in directory.iterdir())


@pytest.mark.parametrize("mac_key", [None, SECRET])
def test_what_was_stored_is_loaded_also_by_another_cache(
    engine: wasmtime.Engine, artifact: bytes, directory: Path, mac_key: bytes | None
) -> None:
    cache = ArtifactCache(directory, mac_key=mac_key)
    assert cache.load(engine, KEY) is None
    assert cache.store(KEY, artifact)
    assert answer(engine, cache.load(engine, KEY)) == 42
    assert answer(engine, ArtifactCache(directory, mac_key=mac_key).load(engine, KEY)) == 42
    assert cache.load(engine, OTHER_KEY) is None


def test_the_directory_and_the_files_are_the_owners_alone(artifact: bytes, directory: Path) -> None:
    ArtifactCache(directory).store(KEY, artifact)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    (name,) = names(directory)
    assert stat.S_IMODE((directory / name).stat().st_mode) == 0o600


def flip_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def lengthen(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


def link_elsewhere(path: Path) -> None:
    elsewhere = path.parent.parent / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def open_to_the_group(path: Path) -> None:
    path.chmod(0o620)


def open_to_all(path: Path) -> None:
    path.chmod(0o602)


def become_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def become_a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def take_the_name_of_another(path: Path) -> None:
    # The artifact of one module under the name of another, with a tag that fits the bytes.
    path.rename(path.with_name(path.name.replace("a" * 64, "b" * 64)))


@pytest.mark.parametrize("mac_key", [None, SECRET], ids=["hash", "mac"])
@pytest.mark.parametrize(
    "poison",
    [
        flip_a_byte,
        cut_short,
        empty,
        lengthen,
        link_elsewhere,
        open_to_the_group,
        open_to_all,
        become_a_pipe,
        become_a_directory,
        take_the_name_of_another,
    ],
)
def test_a_poisoned_file_is_never_loaded_and_makes_room(
    engine: wasmtime.Engine, artifact: bytes, directory: Path, poison: object, mac_key: bytes | None
) -> None:
    assert callable(poison)
    cache = ArtifactCache(directory, mac_key=mac_key)
    cache.store(KEY, artifact)
    (name,) = names(directory)
    poison(directory / name)
    key = OTHER_KEY if poison is take_the_name_of_another else KEY
    assert cache.load(engine, key) is None
    if poison is not become_a_directory:
        assert names(directory) == []
        assert cache.store(key, artifact)
        assert answer(engine, cache.load(engine, key)) == 42


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_a_file_of_another_user_is_never_loaded(engine: wasmtime.Engine, artifact: bytes, directory: Path) -> None:
    cache = ArtifactCache(directory)
    cache.store(KEY, artifact)
    (name,) = names(directory)
    os.chown(directory / name, 12_345, -1)
    assert cache.load(engine, KEY) is None
    assert names(directory) == []


@pytest.mark.parametrize("forgers_key", [None, b"a secret of somebody else"])
def test_with_a_key_a_file_stored_without_it_is_never_loaded(
    engine: wasmtime.Engine, artifact: bytes, directory: Path, forgers_key: bytes | None
) -> None:
    ArtifactCache(directory, mac_key=forgers_key).store(KEY, artifact)
    assert ArtifactCache(directory, mac_key=SECRET).load(engine, KEY) is None
    assert names(directory) == []


def test_a_good_file_beside_a_bad_one_of_the_same_key_is_found(
    engine: wasmtime.Engine, artifact: bytes, directory: Path
) -> None:
    cache = ArtifactCache(directory)
    cache.store(KEY, artifact)
    (good,) = names(directory)
    for first in "0f":
        (directory / f"{KEY}.{first * 64}.cwasm").write_bytes(b"\x7fELF")
    assert answer(engine, cache.load(engine, KEY)) == 42
    assert good in names(directory)


def test_whole_bytes_that_are_no_artifact_of_this_engine_are_stale(engine: wasmtime.Engine, directory: Path) -> None:
    cache = ArtifactCache(directory)
    others = wasmtime.Config()
    others.epoch_interruption = True
    for stale in (b"not an artifact", compiled(wasmtime.Engine(others))):
        assert cache.store(KEY, stale)
        assert cache.load(engine, KEY) is None
        assert names(directory) == []


def test_the_file_that_was_verified_is_the_one_that_is_mapped(
    engine: wasmtime.Engine, artifact: bytes, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = ArtifactCache(directory)
    cache.store(KEY, artifact)
    (name,) = names(directory)
    evil = directory.parent / "evil"
    evil.write_bytes(compiled(engine, answer=666))
    verified = ArtifactCache._mismatch

    def swap_after_the_check(self: ArtifactCache, fd: int, key: str, tag: str) -> str | None:
        verdict = verified(self, fd, key, tag)
        evil.replace(directory / name)
        return verdict

    monkeypatch.setattr(ArtifactCache, "_mismatch", swap_after_the_check)
    assert answer(engine, cache.load(engine, KEY)) == 42


def test_a_module_outlives_the_file_it_was_mapped_from(
    engine: wasmtime.Engine, artifact: bytes, directory: Path
) -> None:
    cache = ArtifactCache(directory)
    cache.store(KEY, artifact)
    module = cache.load(engine, KEY)
    (name,) = names(directory)
    (directory / name).unlink()
    assert answer(engine, module) == 42


def test_the_least_recently_used_goes_first_and_by_unlinking(
    engine: wasmtime.Engine, artifact: bytes, directory: Path
) -> None:
    cache = ArtifactCache(directory, max_bytes=3 * len(artifact))
    keys = [f"{KEY[:17]}{digit * 64}" for digit in "0123"]
    for age, key in enumerate(keys[:3]):
        cache.store(key, artifact)
        (path,) = directory.glob(f"{key}.*")
        os.utime(path, (time.time() - 100 + age,) * 2)
    # Three fit exactly. The oldest is used again, so the second oldest is what a fourth pushes out.
    assert len(names(directory)) == 3
    kept = cache.load(engine, keys[0])
    (second,) = directory.glob(f"{keys[1]}.*")
    with second.open("rb") as held:
        assert cache.store(keys[3], artifact)
        assert len(held.read()) == len(artifact), "evicted by truncation"
    assert [bool(list(directory.glob(f"{key}.*"))) for key in keys] == [True, False, True, True]
    assert answer(engine, kept) == 42


def test_the_count_is_bounded_too(artifact: bytes, directory: Path) -> None:
    cache = ArtifactCache(directory, max_files=2)
    for digit in "01":
        cache.store(f"{KEY[:17]}{digit * 64}", artifact)
    assert len(names(directory)) == 2
    cache.store(f"{KEY[:17]}{'2' * 64}", artifact)
    assert len(names(directory)) == 2
    assert list(directory.glob(f"{KEY[:17]}2*"))


def test_an_artifact_over_the_bound_is_not_kept(artifact: bytes, directory: Path) -> None:
    assert not ArtifactCache(directory, max_bytes=len(artifact) - 1).store(KEY, artifact)
    assert names(directory) == []
    assert ArtifactCache(directory, max_bytes=len(artifact)).store(KEY, artifact)


def test_what_a_dead_process_left_is_swept_and_strangers_are_let_be(artifact: bytes, directory: Path) -> None:
    cache = ArtifactCache(directory)
    for name, age in ((f"{'0' * 32}.tmp", 7_200), (f"{'1' * 32}.tmp", 0), ("notes.txt", 7_200)):
        (directory / name).write_bytes(b"")
        os.utime(directory / name, (time.time() - age,) * 2)
    cache.store(KEY, artifact)
    assert [name for name in names(directory) if not name.endswith(".cwasm")] == [f"{'1' * 32}.tmp", "notes.txt"]


def test_a_disk_that_takes_nothing_is_no_error(
    engine: wasmtime.Engine, artifact: bytes, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = ArtifactCache(directory)

    def full(_fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert not cache.store(KEY, artifact)
    assert names(directory) == []
    assert cache.load(engine, KEY) is None


def test_a_directory_that_went_away_is_no_error(engine: wasmtime.Engine, artifact: bytes, directory: Path) -> None:
    cache = ArtifactCache(directory)
    directory.rmdir()
    assert cache.load(engine, KEY) is None
    assert not cache.store(KEY, artifact)


@pytest.mark.parametrize("mode", [0o701, 0o710, 0o720, 0o755, 0o777])
def test_a_directory_that_lets_others_in_is_refused_and_says_what_to_do(directory: Path, mode: int) -> None:
    directory.mkdir(parents=True)
    directory.chmod(mode)
    with pytest.raises(SandboxError, match=f"mode 0{mode:o}.*chmod 700 .*do without a cache"):
        ArtifactCache(directory)
    directory.chmod(0o700)
    ArtifactCache(directory)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give directories away")
def test_a_directory_of_another_user_is_refused(directory: Path) -> None:
    directory.mkdir(mode=0o700, parents=True)
    os.chown(directory, 12_345, -1)
    with pytest.raises(SandboxError, match=r"belongs to user 12345.*directory of your own"):
        ArtifactCache(directory)


def test_a_link_a_file_and_a_place_that_cannot_be_made_are_refused(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(real)
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path / "link", tmp_path / "file", tmp_path / "file" / "under"):
        with pytest.raises(SandboxError, match=r"cannot be used .*directory of your own"):
            ArtifactCache(path)


def test_a_directory_that_cannot_be_written_is_refused(directory: Path) -> None:
    directory.mkdir(mode=0o500, parents=True)
    with pytest.raises(SandboxError, match="cannot be written"):
        ArtifactCache(directory)


@pytest.mark.parametrize("key", ["", "../x", KEY + "\n", KEY.upper(), KEY[:-1], KEY + "a", f"{KEY[:17]}{'/' * 64}"])
def test_a_key_that_is_no_key_never_becomes_a_name(engine: wasmtime.Engine, directory: Path, key: str) -> None:
    cache = ArtifactCache(directory)
    with pytest.raises(ValueError, match="artifact key"):
        cache.load(engine, key)
    with pytest.raises(ValueError, match="artifact key"):
        cache.store(key, b"")


def test_bounds_and_secrets_that_are_too_small_are_refused(directory: Path) -> None:
    for bounds in ({"max_bytes": 0}, {"max_files": 0}):
        with pytest.raises(ValueError, match="give 1 or more"):
            ArtifactCache(directory, **bounds)
    with pytest.raises(ValueError, match="at least 16"):
        ArtifactCache(directory, mac_key=b"x" * 15)
    ArtifactCache(directory, mac_key=b"x" * 16)


def test_threads_that_store_load_and_evict_at_once_get_right_modules_or_none(
    engine: wasmtime.Engine, directory: Path
) -> None:
    artifacts = {f"{KEY[:17]}{n:064x}": compiled(engine, n) for n in range(6)}
    wrong: list[object] = []

    def work(seed: int) -> None:
        cache = ArtifactCache(directory, max_files=3)
        try:
            for turn in range(25):
                n = (seed + turn) % len(artifacts)
                key = list(artifacts)[n]
                cache.store(key, artifacts[key])
                module = cache.load(engine, key)
                if module is not None and answer(engine, module) != n:
                    wrong.append((key, n))
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(names(directory)) <= 3 + len(threads)


@pytest.mark.skipif(sys.platform == "win32", reason="needs directory descriptors")
def test_two_readers_of_the_directory_each_see_all_of_it(artifact: bytes, directory: Path) -> None:
    """Over one descriptor they would share a place in it, and threads that load at once would miss what is there."""
    cache = ArtifactCache(directory)
    for n in range(3):
        cache.store(f"{KEY[:17]}{n:064x}", artifact)
    first, second = cache._names(), cache._names()
    seen = [(next(first), next(second)) for _ in range(3)]
    assert sorted(one for one, _ in seen) == sorted(other for _, other in seen) == names(directory)


def test_the_default_directory_is_the_users_own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    assert default_directory().is_relative_to(tmp_path)
    if sys.platform == "linux":
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
        assert default_directory() == tmp_path / "xdg" / "hookcell" / "artifacts"
        assert ArtifactCache().directory == default_directory()


def test_the_tag_of_a_keyless_cache_is_a_plain_hash_over_key_and_artifact(artifact: bytes, directory: Path) -> None:
    ArtifactCache(directory).store(KEY, artifact)
    tag = hashlib.sha256(f"hookcell artifact {KEY}\n".encode() + artifact).hexdigest()
    assert names(directory) == [f"{KEY}.{tag}.cwasm"]
