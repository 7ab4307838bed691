"""The in-memory storage keeps G3's promises by itself; how the chain uses storage stands in test_rules_storage.py."""

from __future__ import annotations

import threading

import pytest

from hookcell import InMemoryStorage, StorageFull, StorageKey


def _key(hook: str = "h", **other: str) -> StorageKey:
    parts = {"scope": "run", "owner": "r", "tenant": "t", "environment": "e", **other}
    return StorageKey(hook=hook, **parts)  # type: ignore[arg-type]


def test_nothing_stored_is_revision_0() -> None:
    stored = InMemoryStorage().get(_key())
    assert (stored.revision, stored.value) == (0, None)


def test_a_write_counts_only_from_the_revision_that_was_read() -> None:
    """SEMANTICS G3: compare-and-set."""
    storage = InMemoryStorage()
    assert storage.compare_and_set(_key(), 0, b"a")
    assert not storage.compare_and_set(_key(), 0, b"b")
    stored = storage.get(_key())
    assert stored.value == b"a"
    assert storage.compare_and_set(_key(), stored.revision, b"c")
    assert storage.get(_key()).value == b"c"


@pytest.mark.parametrize("part", ["hook", "scope", "owner", "tenant", "environment"])
def test_every_part_of_the_key_keeps_values_apart(part: str) -> None:
    """SEMANTICS G3."""
    storage = InMemoryStorage()
    storage.compare_and_set(_key(), 0, b"a")
    assert storage.get(_key(**{part: "hook" if part == "scope" else "other"})).value is None


def test_a_removed_and_remade_value_never_shows_an_old_revision() -> None:
    """Whoever read the first value must not overwrite the second."""
    storage = InMemoryStorage()
    storage.compare_and_set(_key(), 0, b"a")
    old = storage.get(_key()).revision
    assert storage.compare_and_set(_key(), old, None)
    assert storage.compare_and_set(_key(), 0, b"b")
    assert not storage.compare_and_set(_key(), old, b"c")


def test_the_bound_holds_at_n_and_refuses_n_plus_1() -> None:
    """SEMANTICS G3: bounded in bytes; G6: refused, never truncated."""
    probe = InMemoryStorage()
    probe.compare_and_set(_key(), 0, b"")
    storage = InMemoryStorage(total_bytes=probe.used_bytes + 10)
    with pytest.raises(StorageFull, match="limit"):
        storage.compare_and_set(_key(), 0, b"x" * 11)
    assert storage.get(_key()).value is None
    assert storage.compare_and_set(_key(), 0, b"x" * 10)
    with pytest.raises(StorageFull):
        storage.compare_and_set(_key("another"), 0, b"")


def test_removing_gives_the_room_back() -> None:
    storage = InMemoryStorage()
    storage.compare_and_set(_key(), 0, b"x" * 100)
    storage.compare_and_set(_key(), storage.get(_key()).revision, None)
    assert storage.used_bytes == 0


def test_threads_that_count_together_lose_nothing() -> None:
    """SEMANTICS G3: of several writers at one revision exactly one wins."""
    storage = InMemoryStorage()

    def count() -> None:
        done = 0
        while done < 100:
            stored = storage.get(_key())
            done += storage.compare_and_set(_key(), stored.revision, str(int(stored.value or b"0") + 1).encode())

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert storage.get(_key()).value == b"800"
