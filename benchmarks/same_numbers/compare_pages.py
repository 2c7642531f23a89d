"""Says whether two folders of pages.py hold the same numbers; exit code 1 if they do not.

python compare_pages.py BEFORE_FOLDER AFTER_FOLDER [--most 10]

The numbers of the rows of CSV files, in any order, and the numbers of pages, in their order, are compared letter by
letter; words are not. CPU time is left out: of experiments that measure it the rows are only counted, of others all but
its columns are compared.
"""

import argparse
import csv
import re
import sys
from itertools import zip_longest
from pathlib import Path
from typing import Any

# Their numbers are CPU seconds, or follow from them.
TIMED = ("samba-fig8a", "samba-fig8b", "samba-fig8d")
NUMBERS = ("panel", "x", "value", "low", "high", "least", "most", "printed")
CPU_TIME = "CPU µs a pull"

_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
_TIMES = re.compile(r"whose runs took [\d,]+ CPU-seconds|[\d.,]+ times the CPU time")


def of_csv(file: Path) -> list[Any]:
    """Returns the numbers of the rows, sorted."""
    with file.open(newline="") as text:
        rows = [row for row in csv.DictReader(text) if row["quantity"] != CPU_TIME]
    columns = ("panel",) if file.name.startswith(TIMED) else NUMBERS
    return sorted([row[column] for column in columns] for row in rows)


def of_page(file: Path) -> list[Any]:
    """Returns the numbers in order."""
    if file.name.startswith(TIMED):
        return []
    lines = []
    left_out: set[int] = set()  # columns of the table that we are in
    head = True
    for line in _TIMES.sub("", file.read_text()).splitlines():
        if line.startswith("|"):
            cells = line.split("|")
            if head:
                left_out = {place for place, cell in enumerate(cells) if "CPU" in cell}
            line = " ".join(cell for place, cell in enumerate(cells) if place not in left_out)
            head = False
        else:
            head = True
        lines.append(line)
    return _NUMBER.findall("\n".join(lines))


def differences(before: Path, after: Path) -> list[str]:
    """Returns what differs between two files."""
    read = of_csv if before.suffix == ".csv" else of_page
    was, now = read(before), read(after)
    found = [
        f"{place}: {old} became {new}"
        for place, (old, new) in enumerate(zip_longest(was, now), 1)
        if old != new
    ]
    return [f"{len(was)} rows or numbers became {len(now)}", *found] if len(was) != len(now) else found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--most", type=int, default=10, help="differences of a file that are shown")
    options = parser.parse_args()
    names = [
        {file.name for file in folder.iterdir() if file.suffix in (".csv", ".md")}
        for folder in (options.before, options.after)
    ]
    wrong = len(names[0] ^ names[1])
    for side, only in (("before", names[0] - names[1]), ("after", names[1] - names[0])):
        if only:
            print(f"only {side}: {', '.join(sorted(only))}")
    both = sorted(names[0] & names[1])
    for name in both:
        found = differences(options.before / name, options.after / name)
        if found:
            wrong += 1
            print(name, *(line[:500] for line in found[: options.most]), sep="\n    ")
            if len(found) > options.most:
                print(f"    ... and {len(found) - options.most} more")
    print(f"{len(both)} files on both sides; {wrong} differ or are on one side only")
    sys.exit(1 if wrong or not both else 0)


if __name__ == "__main__":
    main()
