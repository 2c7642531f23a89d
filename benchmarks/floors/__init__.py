"""Loops that do one law and nothing else, as one would write them by hand: what the package's speed is held against.

A floor plays the instances that the package draws for the same seeds, by the same law and policy, with luck of its own;
tests compare what both regret. It has no spaces, no checks, no observations, no wrappers and no way to stop between
rounds, and keeps nothing but the policy's sums and what is regretted. Its kernels sum in the order that is written, as
the package's do (``fastmath={"nsz"}``; those of the linear problem may fuse a product and a sum, ``"contract"``).

    OMP_NUM_THREADS=1 python -m benchmarks.floors
"""
