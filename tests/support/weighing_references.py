"""What messages are worth by their noise, word by word, one number at a time."""

import numpy as np


def worth(w, y, v_w, v_y, v_wy, q):
    """How many units a message is worth, and how many good ones, by the formula's words."""
    if w <= 4 * np.sqrt(v_w):
        return 0.0, 0.0
    r = min(max(y / w, 0.0), 1.0)
    variance = (max(v_y - 2 * r * v_wy + r**2 * v_w, 0.0) + q * (1 - q) * w) / w**2
    n = q * (1 - q) / variance
    return n, n * r


def worth_of(messages, own, before):
    """All of them for one value: ``messages`` rows of w, y, v_w, v_y and v_wy."""
    total, good = own[0] + before[0], own[1] + before[1]
    q = min(max((good + 1) / (total + 2), 0.02), 0.98)
    return np.sum([worth(*message, q) for message in messages] or [(0.0, 0.0)], axis=0)


def gram_worth(heard, variance, reward_variance):
    """The Gram matrix and the moment, direction by direction."""
    heard = (heard + heard.T) / 2
    values, vectors = np.linalg.eigh(heard[:-1, :-1])
    gram, moment = np.zeros_like(heard[:-1, :-1]), np.zeros(len(heard) - 1)
    for g, v in zip(values, vectors.T, strict=True):
        if g > 0:
            gram += g**2 / (g + variance / reward_variance) * np.outer(v, v)
            moment += g / (g + variance / reward_variance) * v * (v @ heard[:-1, -1])
    return gram, moment
