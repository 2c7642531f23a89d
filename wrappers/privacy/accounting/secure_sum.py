"""Privacy of releases that an observer sees only as a sum over agents, each of which adds a share of the noise.

Of a noise of standard deviation sigma that is promised for ``honest`` agents h, each agent adds a share of variance
sigma^2/h to its release, whose own (local) privacy is therefore mu_local = D sqrt(h)/sigma, for neighbours at a
distance D. If the sum contains k shares that the observer does not know, the agent's own among them, its noise has the
variance sigma^2 k/h, and the sum is mu-GDP for mu = D sqrt(h/k)/sigma = mu_local/sqrt(k).

The same holds for a matrix mechanism (:mod:`..mechanisms.prefix_noise`) whose streams of noise all agents share in, one
draw a synchronisation, also where agents are absent. For one altered window, k counts the shares in its own
synchronisation. For a change of all data of an agent, k counts the agents that are present at all of its releases: the
shares of others are further noise.

The noise is idealised: it is real-valued, while a real secure sum adds up integers.
"""

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import require_integer


def unknown_shares(present: Array, known: int = 0, every_release: bool = False) -> Array:
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

    Raises:
        TypeError: ``known`` is not an integer.
        ValueError: ``known`` is negative.

    Example:
        >>> present = np.array([[True, True, True, False], [True, True, False, True]])
        >>> unknown_shares(present, known=1).tolist()
        [2, 2, 2, 2]
        >>> unknown_shares(present, known=1, every_release=True).tolist()
        [1, 1, 2, 2]
    """
    require_integer("known", known, 0)
    agents = present.shape[1]
    if every_release:
        # For each pair of agents, how often the first one was in a sum without the second one.
        alone = present.T.astype(np.float64) @ ~present
        shares = (alone == 0).sum(axis=1)
    else:
        sizes = np.where(present, present.sum(axis=1, keepdims=True), agents)
        shares = sizes.min(axis=0, initial=agents)
    return np.maximum(shares - known, 1).astype(np.int64)
