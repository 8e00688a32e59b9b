from __future__ import annotations

import itertools
import json

import pytest

from jumar.demo.blocks import Document, parse, render
from jumar.demo.condense import KERNEL, condense, main
from jumar.demo.outline import numbered_lists, title_of
from jumar.demo.phrases import SHORTER
from jumar.demo.plan import default_file
from jumar.demo.tidy import tidy
from jumar.demo.wording import is_chatter, shorten, without_link_word
from jumar.demo.words import count_words
from jumar.demo.worth import parts_of


@pytest.mark.parametrize(
    ("wordy", "short", "phrases"),
    [
        ("In order to win, run.", "To win, run.", 1),
        ("We ran in order to win due to the fact that we could.", "We ran to win because we could.", 2),
        ("Please note that it rains.", "It rains.", 1),
        ("It is important to note that, in order to win, one runs.", "To win, one runs.", 2),
        ("As mentioned above, you should be two.", "You should be two.", 1),
        ("**Please note that** it rains.", "**Please note that** it rains.", 0),
        ("This is, of course, a test.", "This is a test.", 1),
        ("It is very cold and quite simply wet.", "It is cold and wet.", 2),
        (
            "It was not very cold, and a very long day, but quite a wet one.",
            "It was not very cold, and a very long day, but quite a wet one.",
            0,
        ),
        (
            'Say `in order to`, [in order to](in order to), "in order to".',
            'Say `in order to`, [in order to](in order to), "in order to".',
            0,
        ),
        ("Ein Haus in Ordnung.", "Ein Haus in Ordnung.", 0),
        ("Actually, iPhones ring.", "iPhones ring.", 1),
        ("", "", 0),
    ],
)
def test_wordy_phrases_are_said_shorter(wordy: str, short: str, phrases: int):
    assert shorten(wordy) == (short, phrases)


def test_every_phrase_becomes_shorter_and_stays_short():
    assert list(SHORTER) == sorted(SHORTER)
    for wordy, short in SHORTER.items():
        found = shorten(f"They {wordy} it.")
        assert found.text == (f"They {short} it." if short else "They it.")
        assert shorten(found.text).phrases == 0


def test_talk_about_the_text_is_known_as_such():
    assert is_chatter("Thank you for reading, and welcome to the team.")
    assert is_chatter("In this section we look at gauges.")
    assert not is_chatter("The gauge stands in this section of the river.")


def test_a_sentence_without_the_one_before_it_says_no_however():
    assert without_link_word("However, it rains.") == "It rains."
    assert without_link_word("Therefore it rains.") == "Therefore it rains."
    assert without_link_word("in addition, `x` rains.") == "`x` rains."


def _sizes(text: str) -> tuple[list[int], str]:
    sizes = [count_words(text)]
    while (after := condense(text).text) != text:
        text = after
        sizes.append(count_words(text))
    return sizes, text


def test_the_shipped_text_shrinks_by_its_own_steps_to_a_kernel():
    text = default_file().read_text("utf-8")
    first = condense(text)
    assert (first.phrases > 20, first.removed > 10) == (True, True)
    sizes, kernel = _sizes(text)
    assert sizes == sorted(set(sizes), reverse=True)
    assert len(sizes) > 9
    ratios = {round(after / before, 2) for before, after in itertools.pairwise(sizes)}
    assert len(ratios) > 4  # the text decides how much goes
    assert len(parts_of(parse(kernel).blocks, 0)) <= KERNEL
    assert kernel.startswith("# Field guide for gauge keepers\n")


def test_what_was_said_before_goes_first():
    names = enumerate(("Wend", "Harl", "Sorrel", "Mill"))
    said = [f"Gauge {name} stands at kilometre {number} near the {name} bridge." for number, name in names]
    again = "Gauge Wend stands at kilometre 0 near the Wend bridge."
    text = "# Gauges\n\n" + " ".join([*said, again]) + "\n"
    assert condense(text).text == "# Gauges\n\n" + " ".join(said) + "\n"


def test_chatter_goes_before_facts():
    facts = (
        "The gauge at Harl Mill sends the level every hour. The battery of the gauge lasts a week. The level is kept for 90 days."
    )
    text = f"# Gauges\n\n{facts} We hope that you will enjoy reading about this gauge as much as we did.\n"
    assert condense(text) == (f"# Gauges\n\n{facts}\n", 0, 1, 0)


def _until(text: str, gone: str) -> str:
    for _ in range(20):
        if gone not in text:
            return text
        text = condense(text).text
    raise AssertionError(f"{gone} never went")


LONG = (
    "The gauge at Harl Mill sends the level of the river to the base station hourly, and the station warns the desk of Ashmere."
)
MANY = " ".join(f"{LONG[:-1]} on line {number} of page {number * 7}." for number in range(6))


CHATTER = "Thank you very much for being so kind and reading all of this, and feel free to enjoy it"


def test_a_section_without_content_is_merged_and_links_to_it_become_words():
    contents = "- [Thanks](#thanks)\n- [Gauges](#gauges)"
    text = f"# Gauges\n\n{contents}\n\n{MANY} See [our thanks](#thanks).\n\n## Thanks\n\n{CHATTER}.\n"
    done = condense(text)
    assert (done.headings, "## Thanks" in done.text, "](#thanks)" in done.text) == (1, False, False)
    assert "- [Thanks]" not in done.text


def test_lists_are_renumbered_and_announcements_go_with_their_list():
    steps = "\n".join(f"{number}. {CHATTER} {way}." for number, way in enumerate(("now", "then", "again", "too"), start=1))
    text = f"# Gauges\n\n{MANY}\n\n{CHATTER}, in these steps:\n\n{steps}\n"
    lengths: list[int] = []
    for _ in range(20):
        numbers = [[number for _, number in numbered] for numbered in numbered_lists(parse(text).blocks)]
        if not numbers:
            break
        assert numbers == [list(range(1, len(numbers[0]) + 1))]
        assert "in these steps:" in text
        lengths.append(len(numbers[0]))
        text = condense(text).text
    assert lengths[0] > lengths[-1] > 0
    assert "in these steps:" not in text


def test_an_item_stays_while_something_stands_below_it():
    text = f"# Gauges\n\n- Enjoy:\n  - {LONG}\n\n{MANY}\n"
    after = condense(text).text
    assert after != text
    assert f"- Enjoy:\n  - {LONG}" in after


def test_definitions_go_with_their_last_use():
    text = f"# Gauges\n\n{MANY}\n\nEnjoy [the manual][m]. Good luck[^1].\n\n[m]: https://m.example\n[^1]: Luck helps.\n"
    after = _until(text, "[the manual]")
    assert "[m]:" not in after
    assert ("[^1]:" in after) == ("luck[^1]" in after)


def _without(text: str, *gone: str) -> str:
    """Return ``text`` put in order after the blocks that begin with ``gone`` were taken out."""
    document = parse(text)
    left = [None if block.raw[0].startswith(gone) else block for block in document.blocks]
    return render(Document(tuple(tidy(document.blocks, left, title_of(document.blocks))), document.tail))


@pytest.mark.parametrize(
    ("text", "gone", "after"),
    [
        ("# T\n\nA.\n\n---\n\nB.\n\n---\n\nC.\n", "B", "# T\n\nA.\n\n---\n\nC.\n"),
        ("# T\n\nA.\n\n---\n\nB.\n", "B", "# T\n\nA.\n"),
        ("# T\n\nB.\n", "B", "# T\n"),
        ("# T\n\nThe [`a.b`][] is.\n\n[`a.b`]: #c\n\nB.\n", "B", "# T\n\nThe [`a.b`][] is.\n\n[`a.b`]: #c\n"),
        ("# T\n\n[a [b [c] d] e](#s) is more.\n\n## S\n\nB.\n", "B", "# T\n\n[a [b [c] d] e](#s) is more.\n"),
        ("# T\n\n\n\nA.\n\nB.\n", "A", "# T\n\n\n\nB.\n"),
        ("# T\n\nA.\n\n## S\n\n### U\n\nB.\n", "B", "# T\n\nA.\n"),
        ("# [T](#s)\n\nA.\n\n## S\n\nB.\n", "B", "# T\n\nA.\n"),
        ("See [S](#s).\n\n## S\n\nB.\n", "B", "See S.\n"),
        (
            "# T\n\n| a | b |\n|---|---|\n| [S](#s) | [T](#t) |\n\n## S\n\nB.\n",
            "B",
            "# T\n\n| a | b |\n|---|---|\n| S | [T](#t) |\n",
        ),
        ("# T\n\n```\n[S](#s)\n```\n\n## S\n\nB.\n", "B", "# T\n\n```\n[S](#s)\n```\n"),
        ("# T\n\nContents:\n\n- [S](#s)\n\nA.\n\n## S\n\nB.\n", "B", "# T\n\nA.\n"),
        ("# T\n\nAh well now. Do these things:\n\n- x:\n  - y\n\nC.\n", "  - y", "# T\n\nAh well now.\n\nC.\n"),
        ("# T\n\nAh well now. It goes so:\n\nB.\n\n# U\n\nC.\n", "B", "# T\n\nAh well now.\n\n# U\n\nC.\n"),
        ("# T\n\n9. a\n10. b\n11. c\n", "9", "# T\n\n9. b\n10. c\n"),
        (
            "# T\n\nSee x_.\n\n.. _x: https://a.example\n.. _y: https://b.example\n\nB.\n",
            "B",
            "# T\n\nSee x_.\n\n.. _x: https://a.example\n",
        ),
    ],
)
def test_nothing_points_at_what_is_gone(text: str, gone: str, after: str):
    assert _without(text, gone) == after


def test_code_and_tables_go_whole_or_not_at_all():
    code = "```sh\ngauge --check\ngauge --report\n```"
    table = "| gauge | km |\n|---|---|\n| Wend | 14 |"
    text = f"# Gauges\n\n{MANY}\n\n{code}\n\n{table}\n"
    seen: set[tuple[bool, bool]] = set()
    while (after := condense(text).text) != text:
        text = after
        seen.add((code in text, table in text))
        assert ("gauge --" in text, "Wend |" in text) == (code in text, table in text)
    assert seen  # and at least one iteration was looked at


@pytest.mark.parametrize(
    "text", ["", "\n\n", "# Only\n\n## Headings\n", "One sentence.", "---\n", "# T\n\nA b. C d. E f.\n", "词"]
)
def test_what_is_a_kernel_already_is_left_alone(text: str):
    assert condense(text) == (text, 0, 0, 0)


def test_front_matter_and_the_title_stay_to_the_end():
    text = f"---\nname: gauges\n---\n\nGauges are, of course, pipes. {MANY}\n"
    _, kernel = _sizes(text)
    assert kernel.startswith("---\nname: gauges\n---\n\nGauges are, of course, pipes.")


@pytest.mark.parametrize("language", ["zh", "ja", "ru"])
def test_other_scripts_are_condensed_too(language: str):
    sentence = {
        "zh": "第{}号水位计每小时向磨坊的基站发送河流{}处的水位。",
        "ja": "第{}番の水位計は毎時、水車小屋の基地局へ川の{}の水位を送る。",
        "ru": "Датчик номер {} каждый час передаёт уровень реки у моста {} на станцию. ",
    }[language]
    text = "".join(
        sentence.format(number, name) for number, name in enumerate("甲乙丙丁戊己庚辛" if language != "ru" else "АБВГДЕЖЗ")
    )
    sizes, kernel = _sizes(text)
    assert len(sizes) > 3
    assert kernel
    assert kernel[:20] == text[:20]


def test_the_command_changes_the_file_and_says_what_it_did(tmp_path, capsys):
    file = tmp_path / "document.md"
    file.write_bytes(f"# Gauges\r\n\r\n“{MANY}” Enjoy it very much.\r\n".encode("cp1252"))
    assert main([str(file)]) == 0
    assert capsys.readouterr().out == "185 to 151 words: 1 phrase shortened, 2 pieces given up, 0 headings merged\n"
    lines = [f"{LONG[:-1]} on line {number} of page {number * 7}." for number in range(5)]
    assert file.read_bytes() == f"# Gauges\r\n\r\n“{' '.join(lines)}\r\n".encode("cp1252")


def test_the_command_reports_completion_only_when_nothing_was_left(tmp_path, capsys, monkeypatch):
    usage = tmp_path / "usage.json"
    monkeypatch.setenv("JUMAR_USAGE_FILE", str(usage))
    file = tmp_path / "document.md"
    file.write_text("# T\n\nOne here. Two here. Three here. Four here.\n")
    assert main([str(file)]) == 0
    assert not usage.exists()
    for _ in range(5):
        assert main([str(file)]) == 0
    before = file.read_bytes()
    capsys.readouterr()
    assert main([str(file)]) == 0
    assert capsys.readouterr().out == "nothing left to take away\n"
    assert file.read_bytes() == before
    assert json.loads(usage.read_text()) == {"completed": True}
    monkeypatch.delenv("JUMAR_USAGE_FILE")
    assert main([str(file)]) == 0


def test_the_command_says_what_is_wrong(tmp_path, capsys):
    assert main([]) == 2
    assert capsys.readouterr().err.startswith("usage: ")
    assert main([str(tmp_path / "no\x1bne")]) == 1
    assert capsys.readouterr().err == f"could not condense {tmp_path}/no\\x1bne: No such file or directory\n"


def test_a_pass_that_drops_a_picture_drops_words_too():
    code = "```\n" + "\n".join(f"set gauge{number} level{number} to {number * 3}" for number in range(30)) + "\n```"
    codes = "\n\n".join(code.replace("gauge", name) for name in ("gauge", "station", "cable"))
    text = f"# Gauges\n\n![level](level.png)\n\n{codes}\n\n{LONG}\n"
    after = condense(text).text
    assert "level.png" not in after
    assert count_words(after) < count_words(text) - 10
