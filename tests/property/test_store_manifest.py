"""Manifests: whole or as differences, they come back as they were."""

from __future__ import annotations

import json
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.core import codec
from jumar.core.codec import decode
from jumar.core.marks import origin
from jumar.errors import StoreDamagedError
from jumar.loop.snapshots import manifest as module
from jumar.loop.snapshots.manifest import MAX_DEPTH, Manifest, ManifestFile, compose
from jumar.model.records import ArtifactDetail

NAMES = st.text(st.characters(exclude_characters="/\0", exclude_categories=[]), min_size=1, max_size=4)
DETAILS = st.builds(
    lambda kind, content, mode, size: ArtifactDetail(
        path="",
        kind=kind,
        content_hash=None if kind == "special" else content,
        mode=mode,
        size=size,
        target=content if kind == "symlink" else None,
        skipped="FIFO" if kind == "special" else None,
    ),
    st.sampled_from(["file", "symlink", "special"]),
    st.sampled_from(["aa", "bb", "\udcff"]),
    st.sampled_from([0o644, 0o755, 0o4755, 0]),
    st.integers(0, 2**40),
)
TREES = st.dictionaries(NAMES, DETAILS, max_size=12)


def manifest_of(tree: dict[str, ArtifactDetail]) -> Manifest:
    named = {path: ArtifactDetail(**{**_fields(detail), "path": path}) for path, detail in sorted(tree.items())}
    return Manifest(MappingProxyType(named))


def _fields(detail: ArtifactDetail) -> dict[str, object]:
    return {name: getattr(detail, name) for name in ArtifactDetail.__dataclass_fields__}


def from_disk(data: bytes) -> ManifestFile:
    return ManifestFile.from_json(decode(data, "manifest.json"))


@given(trees=st.lists(TREES, min_size=1, max_size=8))
def test_a_chain_of_differences_comes_back_as_the_whole(trees: list[dict[str, ArtifactDetail]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "DELTA_FROM", 0)
        patch.setattr(module, "MAX_DEPTH", 3)
        stored: list[bytes] = []
        kept: list[Manifest] = []
        for number, tree in enumerate(trees):
            taken = manifest_of(tree)
            manifest, file = taken.against(number - 1, kept[-1]) if kept else taken.whole()
            assert manifest.depth <= 3
            stored.append(file.encode())
            kept.append(manifest)
        for number in range(len(trees)):
            for known in ({}, {0: kept[0]}, {number: kept[number]}):
                found = compose(number, lambda n: from_disk(stored[n]), known.get)
                assert found == kept[number]
                assert list(found.entries) == sorted(found.entries)


@given(tree=TREES, piece=st.integers(1, 5))
def test_a_file_comes_back_as_it_was_in_however_many_pieces_it_is_written(tree: dict[str, ArtifactDetail], piece: int) -> None:
    _, file = manifest_of(tree).whole()
    for each in (file, ManifestFile(7, 2, file.changed, tuple(tree))):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(codec, "_PIECE", piece)
            data = each.encode("here")
        assert data == each.encode("here")
        assert from_disk(data) == each
        assert codec.broken_seal(json.loads(data)) is None
        assert origin(data, "here") == "ours"


def large(count: int, changed: int = 0) -> Manifest:
    return manifest_of({f"{n:05}": ArtifactDetail(path="", content_hash="new" if n < changed else "old") for n in range(count)})


@pytest.mark.parametrize(
    ("count", "changed", "depth", "base"),
    [
        (256, 0, 0, None),  # small: always whole
        (257, 0, 0, 6),
        (257, 128, 0, 6),
        (257, 129, 0, None),  # more than half: the whole is smaller
        (257, 1, MAX_DEPTH - 1, 6),
        (257, 1, MAX_DEPTH, None),
    ],
)
def test_a_difference_is_written_only_where_it_pays(count: int, changed: int, depth: int, base: int | None) -> None:
    before = Manifest(large(count).entries, 5 if depth else None, depth)
    manifest, file = large(count, changed).against(6, before)
    assert (manifest.base, file.base, manifest.depth) == (base, base, 0 if base is None else depth + 1)
    assert len(file.changed) == (count if base is None else changed)


def test_what_was_removed_is_named() -> None:
    manifest, file = large(300).against(6, large(310))
    assert file.removed == tuple(f"{n:05}" for n in range(300, 310))
    assert (file.changed, manifest.entries) == ((), large(300).entries)


def test_bases_without_end_are_damage() -> None:
    with pytest.raises(StoreDamagedError, match="refers to bases without end"):
        compose(1, lambda n: ManifestFile(n + 1, 1, (), ()), lambda _: None)
    with pytest.raises(StoreDamagedError, match="refers to bases without end"):
        compose(1, lambda n: ManifestFile(3 - n, 1, (), ()), lambda _: None)
