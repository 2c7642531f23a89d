"""CPU seconds and memory against the size of a problem, one size at a time, with fitted exponents.

OMP_NUM_THREADS=1 python -m benchmarks.growth --out docs
"""
