"""A terminal, as small as what we write to it: lines, back to the beginning, up, erase. Slow and obvious; without colours."""

from __future__ import annotations

import re

__all__ = ["screen_of"]

_PIECES = re.compile(r"\x1b\[(\??[0-9;]*)([A-Za-z])|(\r)|(\n)|(\x1b.)|([^\x1b\r\n]+)")


def screen_of(written: str, width: int = 500) -> list[str]:
    """Return the lines that stand on a terminal that got ``written``, those that scrolled away included."""
    lines: list[list[str]] = [[]]
    row = column = 0
    for match in _PIECES.finditer(written):
        number, command, back, feed, other, text = match.groups()
        assert other is None, f"{other!r} is more than this terminal knows"
        if back:
            column = 0
        elif feed:
            row, column = row + 1, 0  # a pseudo-terminal writes \r\n; a stream of text only \n
            lines += [[] for _ in range(row + 1 - len(lines))]
        elif text:
            for char in text:
                if column == width:
                    row, column = row + 1, 0
                    lines += [[] for _ in range(row + 1 - len(lines))]
                line = lines[row]
                line += " " * (column + 1 - len(line))
                line[column] = char
                column += 1
        elif command == "A":
            row = max(0, row - int(number or 1))
        elif command in {"K", "J"}:
            del lines[row][column:]
            if command == "J":
                del lines[row + 1 :]
        else:
            assert command in {"m", "h", "l"}, f"{match.group()!r} is more than this terminal knows"
    return ["".join(line).rstrip() for line in lines]
