"""Groups of items → those that are learned from, those that are tested on, and those that are held out. Pure.

What belongs together (one question, one document) is never divided: two answers to one question share most of what a judge
looks at, and a score learned from the one would seem to be predicted on the other. A text that stands in two groups makes them
one, for the same reason: what was learned from a text knows its copies.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, cast

from jumar.core.text import escape, plural
from jumar.errors import FormatTooNewError, ItemError, StoreDamagedError
from jumar.judging.items.item import Item, items_digest

Part = Literal["learn", "test", "sealed", "open"]

CROSS_FIT_BELOW: Final = 100
"""Below this many groups a test split of its own would be too small to say anything: the open groups are cross-fitted."""

FEWEST_TO_SPLIT: Final = 10
"""Below this many groups there is nothing to be learned on one part that another part could confirm."""

FOLDS: Final = 5
_TEST_SHARE: Final = 1 / 3
_FORMAT: Final = 1


def group_key(item: Item) -> str:
    """Return the name of an item's group; an item without one is a group by itself, and never one of the same name."""
    return f"item:{item.id}" if item.group is None else f"group:{item.group}"


@dataclass(frozen=True, slots=True)
class Tied:
    """Items of which no two groups share a text. ``copies`` of them have a text that stands in several of the groups given."""

    items: tuple[Item, ...]
    copies: int

    @property
    def warning(self) -> str | None:
        """What a person should know of it, None where there is nothing."""
        if not self.copies:
            return None
        return (
            f"{plural(self.copies, 'item')} share a text with an item of another group; their groups count as one, so that no "
            "text is learned from and proven on: leave copies out, or give the --group that they belong to"
        )


def tie_copies(items: Sequence[Item]) -> Tied:
    """Return the items, in their order, with one group for all groups that share a text, directly or over others.

    Texts are the same when they, their prompts and their contexts differ in blanks and capitals at most. Such a group is named
    after the least id of its items; all others stay as they are. Doing it twice changes nothing.
    """
    keys = [group_key(item) for item in items]
    above = {key: key for key in keys}

    def top(key: str) -> str:
        while above[key] != key:
            above[key] = above[above[key]]
            key = above[key]
        return key

    holders: dict[tuple[str, ...], set[str]] = {}
    texts = [_text_key(item) for item in items]
    for text, key in zip(texts, keys, strict=True):
        holders.setdefault(text, set()).add(key)
    for sharing in holders.values():
        first, *others = sorted(sharing)
        for key in others:
            above[top(key)] = top(first)
    tied = {top(key) for sharing in holders.values() if len(sharing) > 1 for key in sharing}
    names: dict[str, str] = {}
    for item, key in zip(items, keys, strict=True):
        names[top(key)] = min(item.id, names.get(top(key), item.id))
    return Tied(
        tuple(
            replace(item, group=f"same text: {names[top(key)]}") if top(key) in tied else item
            for item, key in zip(items, keys, strict=True)
        ),
        sum(len(holders[text]) > 1 for text in texts),
    )


def _text_key(item: Item) -> tuple[str, ...]:
    return tuple(" ".join(text.split()).casefold() for text in (item.text, item.prompt, item.context))


@dataclass(frozen=True, slots=True)
class Round:
    """One way through the open groups: what is fitted on ``learn`` is tested on ``test``. Both are keys of groups."""

    learn: frozenset[str]
    test: frozenset[str]


@dataclass(frozen=True, slots=True)
class Split:
    """Which group is where.

    ``groups`` maps the key of a group to ``sealed``, to ``learn`` or ``test`` where there are enough groups, else to the number
    of its fold. ``items`` counts them, ``items_hash`` is theirs in any order.
    """

    seed: int
    heldout: float
    groups: Mapping[str, str | int]
    items: int
    items_hash: str

    @property
    def cross_fitted(self) -> bool:
        """Whether every open group is tested by what was fitted without its fold."""
        return any(isinstance(where, int) for where in self.groups.values())

    def counts(self) -> dict[str, int]:
        """Return how many groups are ``sealed`` and ``open``, and of the open ones ``learn`` and ``test`` (None shared: both)."""
        learned = {key for round_ in self.rounds() for key in round_.learn}
        tested = {key for round_ in self.rounds() for key in round_.test}
        sealed = sum(where == "sealed" for where in self.groups.values())
        return {"sealed": sealed, "open": len(self.groups) - sealed, "learn": len(learned), "test": len(tested)}

    def rounds(self) -> tuple[Round, ...]:
        """Return one round, or one for each fold where groups are cross-fitted; together they test each group at most once."""
        opened = {key: where for key, where in self.groups.items() if where != "sealed"}
        if not self.cross_fitted:
            test = frozenset(key for key, where in opened.items() if where == "test")
            return (Round(frozenset(opened) - test, test),)
        folds = sorted({where for where in opened.values() if isinstance(where, int)})
        tests = [frozenset(key for key, where in opened.items() if where == fold) for fold in folds]
        return tuple(Round(frozenset(opened) - test, test) for test in tests)

    def is_sealed(self, item: Item) -> bool:
        """Return whether nothing may look at ``item`` before the set is final. Errors: KeyError for an item of another file."""
        return self.groups[group_key(item)] == "sealed"

    def part(self, items: Iterable[Item], part: Part) -> list[Item]:
        """Return the items of a part, in their order. ``learn`` and ``test`` are both all the open ones when cross-fitted."""
        wanted = {"sealed", part} if part == "sealed" else {"learn", "test"} if part == "open" else {part}
        return [
            item
            for item in items
            if (where := self.groups[group_key(item)]) in wanted or (isinstance(where, int) and part != "sealed")
        ]

    def check(self, items: Sequence[Item]) -> None:
        """Raise :class:`jumar.errors.ItemError` unless these are the items that were split."""
        if items_digest(items) == self.items_hash:
            return
        unknown = [item for item in items if group_key(item) not in self.groups]
        more = f"; such as {escape(unknown[0].id)}, whose group is not in it" if unknown else ""
        raise ItemError(
            f"these are not the items of split.json ({plural(len(items), 'item')} here, {self.items} there, or other texts{more})"
            "; give the same file, or learn into another folder"
        )

    def to_json(self) -> dict[str, Any]:
        """Return what ``split.json`` holds."""
        return {
            "format": _FORMAT,
            "seed": self.seed,
            "heldout": self.heldout,
            "items": self.items,
            "items_hash": self.items_hash,
            "cross_fitted": self.cross_fitted,
            "groups": dict(self.groups),
        }

    @classmethod
    def from_json(cls, text: str | bytes, where: str = "split.json") -> Split:
        """Return the split of a file's text.

        Errors: :class:`jumar.errors.StoreDamagedError` that names ``where``, :class:`jumar.errors.FormatTooNewError`.
        """
        try:
            found = json.loads(text)
            if not isinstance(found, dict):
                raise TypeError("not an object")  # noqa: TRY301 - one message for all of them
            data = cast("dict[str, Any]", found)
            if isinstance(data.get("format"), int) and data["format"] > _FORMAT:
                raise FormatTooNewError(f"{escape(where)}: format {data['format']}; this jumar reads up to {_FORMAT}, update it")
            groups = {str(key): _where(value) for key, value in dict(data["groups"]).items()}
            made = cls(int(data["seed"]), float(data["heldout"]), groups, int(data["items"]), str(data["items_hash"]))
        except (ValueError, KeyError, TypeError) as error:
            raise StoreDamagedError(
                f"{escape(where)} is damaged ({escape(str(error))[:100]}); restore it from a backup, or learn into another "
                "folder: a new split would mix what is held out with what was learned from"
            ) from None
        return made


def _where(value: Any) -> str | int:
    if value in ("sealed", "learn", "test") or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return cast("str | int", value)
    raise ValueError(f"a group is in {value!r}")


def split_items(items: Sequence[Item], *, seed: int = 0, heldout: float = 0.4, folds: int = FOLDS) -> Split:
    """Return the split of ``items``: the share ``heldout`` of the groups, rounded, is held out.

    Groups that share a text stand together and count as one (:func:`tie_copies`).
    With 100 groups or more a third of the others is the test split; with fewer they are dealt into ``folds`` and cross-fitted.
    The order of the groups is that of a hash of the seed and their names: neither the order of the items nor anything else
    matters.
    Errors: :class:`jumar.errors.ItemError` for fewer than 10 groups, ValueError for a share outside of [0, 1) or fewer than 2
    folds.
    """
    if not 0 <= heldout < 1:
        raise ValueError(f"heldout = {heldout} should be at least 0 and below 1")
    if folds < 2:
        raise ValueError(f"folds = {folds} should be at least 2")
    units = {group_key(item): group_key(own) for item, own in zip(items, tie_copies(items).items, strict=True)}
    names = set(units.values())
    if len(names) < FEWEST_TO_SPLIT:
        raise ItemError(
            f"{plural(len(items), 'item')} in {plural(len(names), 'group')}: learning and proving need at least "
            f"{FEWEST_TO_SPLIT} groups; give more items, or, where items of one group are independent of each other, --group id"
        )
    order = sorted(names, key=lambda name: hashlib.sha256(f"{seed}\0{name}".encode("utf-8", "surrogatepass")).digest())
    sealed = min(round(heldout * len(order)), len(order) - 2)
    placed: dict[str, str | int] = dict.fromkeys(order[:sealed], "sealed")
    opened = order[sealed:]
    if len(order) < CROSS_FIT_BELOW:
        placed |= {name: place % min(folds, len(opened)) for place, name in enumerate(opened)}
    else:
        tested = max(1, round(_TEST_SHARE * len(opened)))
        placed |= {name: "test" if place < tested else "learn" for place, name in enumerate(opened)}
    return Split(seed, heldout, {key: placed[units[key]] for key in sorted(units)}, len(items), items_digest(items))
