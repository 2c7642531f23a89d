"""How many shares of noise protect an agent in secure sums, from the whole history of who was in which."""

import numpy as np


def unknown_shares(present: np.ndarray, known: int = 0, every_release: bool = False) -> np.ndarray:
    """Returns how many agents' noise protects each agent in secure sums: the shares that an observer does not know.

    A share is the noise that one agent has added to a sum.

    Args:
        present: Whose data and noise were in each sum, bool ``(sums, agents)``.
        known: How many of the shares the observer knows: the number of colluding agents, and one more for a fellow
            agent, which subtracts its own.
        every_release: False for the least number of shares in any of the sums with the agent: for independent noise,
            and for one altered window of a matrix mechanism. True for the number of agents that were in every sum: for
            a change of all data of an agent under a matrix mechanism.

    Returns:
        The numbers, int64 ``(agents,)``: at least 1, an agent's own share.
        For an agent that was in no sum, the number of all agents is used.

    Example:
        >>> present = np.array([[True, True, True, False], [True, True, False, True]])
        >>> unknown_shares(present, known=1).tolist()
        [2, 2, 2, 2]
        >>> unknown_shares(present, known=1, every_release=True).tolist()
        [1, 1, 2, 2]
    """
    agents = present.shape[1]
    if every_release:
        # For each pair of agents, how often the first one was in a sum without the second one.
        alone = present.T.astype(np.float64) @ ~present
        shares = (alone == 0).sum(axis=1)
    else:
        sizes = np.where(present, present.sum(axis=1, keepdims=True), agents)
        shares = sizes.min(axis=0, initial=agents)
    return np.maximum(shares - known, 1).astype(np.int64)
