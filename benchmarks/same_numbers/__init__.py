"""Whether two commits give the same numbers: written down on one, compared on the other.

Run on either commit, in a virtual environment of its own and on the same machine (processors differ in last bits). What
the scripts import beyond names that stay is looked for in its new place and in its old one (`first_of`).

OMP_NUM_THREADS=1 python capture.py before.json              # baselines on environments, 10 min
OMP_NUM_THREADS=1 python pages.py before-pages               # every experiment of `fedbandit reproduce`, small, 6 min
OMP_NUM_THREADS=1 python cli.py before-cli                   # what commands print, 80 s
OMP_NUM_THREADS=1 fedbandit leaderboard verify docs/leaderboard   # committed rows of the leaderboard, 4 min

compare.py sets two files of the first beside each other, and `diff -ru` two folders of the third.
Both virtual environments need the extras report, secure and test, at the same versions.
"""
