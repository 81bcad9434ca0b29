"""The glossary has few words of our own."""

from tests.docs.pages import ROOT

_LIMIT = 10


def test_glossary_has_at_most_ten_own_words_with_one_sentence_for_each_row() -> None:
    page = (ROOT / "docs/glossary.md").read_text()
    section = page.split("\n## ")[1]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    words = [word for row in rows for word in row.split(" | ")[0].split(", ")]
    meanings = [row.split(" | ")[1].removesuffix(" |") for row in rows]
    assert 0 < len(words) <= _LIMIT
    assert [text for text in meanings if not text.endswith(".") or ". " in text] == []
