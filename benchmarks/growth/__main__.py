"""Measures how seconds and memory grow, and writes growth.md, growth.csv and growth.png.

OMP_NUM_THREADS=1 python -m benchmarks.growth --out docs            # ten CPU-minutes at most
OMP_NUM_THREADS=1 python -m benchmarks.growth --out elsewhere --points 3 --repeats 1
"""

import argparse
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.growth.page import draw, read_csv, write_csv, write_page
from benchmarks.growth.series import SERIES, Measurement, measure
from benchmarks.machine import describe


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="a folder")
    parser.add_argument("--repeats", type=int, default=3, help="of which seconds are the median")
    parser.add_argument(
        "--points", type=int, help="only so many of each series' smallest sizes, three at least"
    )
    options = parser.parse_args()
    if options.repeats < 1 or (options.points is not None and options.points < 3):
        parser.error(f"--repeats {options.repeats} --points {options.points}: at least 1 and 3 are required")
    options.out.mkdir(parents=True, exist_ok=True)
    plan = [
        (name, series, series.values[: options.points])
        for name, all_of in SERIES.items()
        for series in all_of
    ]
    columns = (TextColumn("{task.description:24}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    points: list[Measurement] = []
    with Progress(*columns) as progress:
        bar = progress.add_task("", total=sum(len(values) for _, _, values in plan))
        for name, series, values in plan:
            progress.update(bar, description=f"{name}, {series.size}")
            for point in measure(name, series, values, options.repeats):
                points.append(point)
                progress.advance(bar)
    command = f"OMP_NUM_THREADS=1 python -m benchmarks.growth --out {options.out}"
    if options.points is not None:
        command += f" --points {options.points}"
    if options.repeats != parser.get_default("repeats"):
        command += f" --repeats {options.repeats}"
    write_csv(points, options.out / "growth.csv")
    # As rounded there, so that the page says what its file does.
    points = read_csv(options.out / "growth.csv")
    draw(points, options.out / "growth.png")
    write_page(points, describe(), command, options.repeats, options.out / "growth.md")


if __name__ == "__main__":
    main()
