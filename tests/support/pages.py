"""What a page of a reproduction says, set against its CSV file."""

import re

from fedbandit_envs.papers.page import read_numbers

_NUMBER = r"[+-]?(?:[\d,]*\.?\d+(?:e[+-]?\d+)?%?|inf|nan)"
_MEASURE = re.compile(
    rf"(?P<value>{_NUMBER})?(?: ± (?P<half>{_NUMBER}))?(?: ?\[(?P<low>{_NUMBER}), (?P<high>{_NUMBER})\])?"
)


def parts_of(page):
    """Returns the parts of a page between marks, by name."""
    found = re.findall(r"<!-- ([^/>][^>]*) -->\n(.*?)\n<!-- /\1 -->", page, flags=re.DOTALL)
    return {name: text.strip() for name, text in found}


def claims(page):
    """Returns the lines of sentences on the page of claims, each as its cells, by the paper's key."""
    sections = re.split(r"^\(claims-", page, flags=re.MULTILINE)[1:]
    return {
        section.partition(")")[0]: [
            line[2:-2].split(" | ") for line in section.splitlines() if line.startswith("| ") and '"' in line
        ]
        for section in sections
    }


def cells(page):
    """Returns what a page's tables say with digits: first cell of the line, head of the column, text."""
    found, header = [], None
    for line in page.splitlines():
        if not line.startswith("|"):
            header = None
        elif header is None:
            header = line[2:-2].split(" | ")
        elif not line.startswith("|---"):
            label, *others = line[2:-2].split(" | ")
            found += [
                (label, column, text)
                for column, text in zip(header[1:], others, strict=True)
                if any(letter.isdigit() for letter in text)
            ]
    return found


def written(number, like):
    """Writes a number with the digits of another's text."""
    if like.endswith("%"):
        return f"{number:.{_digits(like[:-1])}%}"
    if "e" in like:
        return f"{number:.{_digits(like.split('e')[0])}e}"
    return f"{number:{'+' if like[0] == '+' else ''}{',' if ',' in like else ''}.{_digits(like)}f}"


def _digits(text):
    return len(text.partition(".")[2])


def check_section(section):
    """Demands that the numbers of a section's tables are those of its rows, and that intervals hold their values."""
    tables = [text for name, text in section.tables.items() if name != "numbers"]
    check_numbers("\n\n".join(tables), section.rows)
    return section.rows


def check_paper(folder, paper, stem):
    """Demands the same of the parts of a paper's page that an experiment has made, and returns the rows of numbers."""
    parts = parts_of((folder / f"{paper}.md").read_text())
    own = {name.removeprefix(f"{stem} "): text for name, text in parts.items() if name.startswith(f"{stem} ")}
    assert own.pop("made").startswith("Made by `fedbandit reproduce ")
    rows = [
        row
        for row in read_numbers(folder / f"{paper}.csv.gz")
        if stem == "-".join(filter(None, (row["experiment"], row["scale"], row["settings"])))
    ]
    for panel in {name.partition(" ")[0] for name in own}:
        tables = [
            t for name, t in own.items() if name.partition(" ")[0] == panel and not name.endswith(" numbers")
        ]
        check_numbers("\n\n".join(tables), [row for row in rows if row["panel"] == panel])
    assert (folder / f"{stem}.png").stat().st_size > 10_000
    return own, rows


def check_numbers(page, rows):
    tabled = [row for row in rows if row["printed"] and row["quantity"] != "in the text"]
    assert cells(page) == [(row["name"], row["quantity"], row["printed"]) for row in tabled]
    for row in rows:
        numbers = {key: float(row[key]) for key in ("value", "low", "high") if row[key] != ""}
        if row["quantity"] == "ratio" and not row["printed"]:
            # Of two trials there is no interval.
            assert numbers.get("low", numbers["value"]) > 0, row
        if "low" in numbers:
            value = numbers.get("value", numbers["low"])
            assert not numbers["low"] > value, row
            assert not value > numbers["high"], row
            numbers["half"] = (numbers["high"] - numbers["low"]) / 2
        if row["printed"] and numbers:
            says = _MEASURE.fullmatch(row["printed"])
            assert says, row
            for name, text in says.groupdict().items():
                assert text is None or written(numbers[name], text) == text, row
