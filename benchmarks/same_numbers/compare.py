"""Says whether two files of capture.py hold the same numbers; exit code 1 if they do not, or names are gone.

python compare.py BEFORE.json AFTER.json
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any


def differences(before: Any, after: Any, where: str = "") -> list[str]:
    """Returns what differs, with the place in the file where it does."""
    if isinstance(before, dict) and isinstance(after, dict):
        # Of an array one line is enough.
        if "sha256" in before and "sha256" in after:
            if before == after:
                return []
            old, new = (f"{one['dtype']}{one['shape']}, sum {one.get('sum')!r}" for one in (before, after))
            return [f"{where}: {old} became {new}"]
        found = []
        for name in sorted(before.keys() | after.keys()):
            place = f"{where}/{name}" if where else name
            if name not in after:
                found.append(f"{place}: only before")
            elif name not in before:
                found.append(f"{place}: only after")
            else:
                found += differences(before[name], after[name], place)
        return found
    return [] if before == after else [f"{where}: {before!r} became {after!r}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    options = parser.parse_args()
    before, after = (json.loads(file.read_text()) for file in (options.before, options.after))
    for setting in ("rounds", "seeds"):
        if before[setting] != after[setting]:
            sys.exit(f"{setting}: {before[setting]} before, {after[setting]} after; nothing can be compared")
    for what in ("libraries", "machine"):
        if before[what] != after[what]:
            print(f"note: {what}: {before[what]} before, {after[what]} after; last bits may follow from it")
    gone = 0
    for kind in ("environments", "baselines"):
        lost, new = (
            sorted(set(here[kind]) - set(there[kind])) for here, there in ((before, after), (after, before))
        )
        gone += len(lost)
        for side, names in (("before", lost), ("after", new)):
            if names:
                print(f"{kind} only {side}: {', '.join(names)}")
    both = sorted(before["pairs"].keys() & after["pairs"].keys())
    wrong = {pair: differences(before["pairs"][pair], after["pairs"][pair]) for pair in both}
    wrong = {pair: lines for pair, lines in wrong.items() if lines}
    for pair, lines in wrong.items():
        print(pair, *lines, sep="\n    ")
    refused = sum("refused" in before["pairs"][pair] for pair in both if pair not in wrong)
    equal = len(both) - len(wrong)
    print(
        f"{equal} of {len(both)} pairs are equal to the last bit: {equal - refused} played, {refused} refused "
        f"likewise; {len(wrong)} differ, {gone} names are gone"
    )
    sys.exit(1 if wrong or gone else 0)


if __name__ == "__main__":
    main()
