"""Whether two commits give the same numbers: written down on one, compared on the other.

Run on either commit, in a virtual environment of its own and on the same machine (processors differ in last bits). A
commit before a name that the scripts import had its place needs the scripts of that time.

OMP_NUM_THREADS=1 python capture.py before.json              # baselines on environments, 10 min
fedbandit reproduce all --rounds 2000 --trials 3 --out before-pages   # every experiment; SAMBA's encryption is slow
OMP_NUM_THREADS=1 python cli.py before-cli                   # what commands print, 80 s
OMP_NUM_THREADS=1 fedbandit leaderboard verify docs/leaderboard   # committed rows of the leaderboard, 4 min

compare.py sets two files of the first beside each other, and `diff -ru` two folders of the others.
Both virtual environments need the extras report, secure and test, at the same versions.
"""
