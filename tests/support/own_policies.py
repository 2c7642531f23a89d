"""Policies in a user's own file, which tests copy into the current folder as `mine.py`."""

import os

import numpy as np


class Constant:
    def __init__(self, arm=0, file=None):
        self.arm = arm
        if file:
            os.stat(file)

    def reset(self, spaces, seeds):
        self.shape = seeds.shape

    def act(self, observation):
        return np.full(self.shape, self.arm)


class Mixed(Constant):
    def act(self, observation):
        return np.full(self.shape, self.shape[1] - 1)


number = 3
