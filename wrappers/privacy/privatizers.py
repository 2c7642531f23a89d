"""The privatizers by name: short constructors of :class:`.Privatizer` with one mechanism each."""

from collections.abc import Sequence
from typing import Literal, TypedDict, Unpack

from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.privacy import Adjacency
from fedbandit_envs.randomness.streams import Entropy
from fedbandit_envs.wrappers.privacy.mechanisms.additive import (
    Calibration,
    Gaussian,
    Laplace,
    NoisyPair,
    PlannedReleases,
    RandomizedResponse,
    Releases,
)
from fedbandit_envs.wrappers.privacy.mechanisms.matrix import MatrixMechanism, MatrixName
from fedbandit_envs.wrappers.privacy.mechanisms.vector_sum import VectorSum
from fedbandit_envs.wrappers.privacy.privatizer import GivenBudget, OnExhausted, Privatizer


class NoiseOptions(TypedDict, total=False):
    """What every privatizer takes besides the arguments of its mechanism; :class:`.Privatizer` explains it.

    Attributes:
        budget: How the epsilon that agents have spent is measured and limited.
        on_exhausted: What happens to a release that would exceed the budget: ``"raise"`` or ``"silence"``.
        noise_seed: Seed of the noise; None derives it from the episode's seed.
        clip: The largest Euclidean norm of a release; None clips nothing.
    """

    budget: GivenBudget
    on_exhausted: OnExhausted
    noise_seed: Entropy | None
    clip: float | None


class GaussianPrivatizer(Privatizer):
    """Adds independent Gaussian noise to every release, as P-FCB does; see :class:`.Gaussian`.

    Example:
        >>> from fedbandit_envs.procurement_v0 import parallel_env
        >>> from fedbandit_envs.wrappers import GaussianPrivatizer
        >>> env = GaussianPrivatizer(parallel_env(num_agents=2), epsilon=0.5, delta=0.01, releases=1)
        >>> _ = env.reset(seed=0)
        >>> _ = env.release([[True, True]])
        >>> claim = env.privacy()
        >>> round(claim.epsilon, 6), claim.delta
        (0.5, 0.01)
    """

    examples = (
        {"epsilon_per_release": 0.9},
        {"epsilon": 0.9, "releases": "every_round", "noise_seed": 2**64},
        {"epsilon": 0.9, "releases": "every_round", "clip": 1.5},
    )

    def __init__(
        self,
        env: FederatedEnv,
        epsilon: float | None = None,
        delta: float = 0.01,
        calibration: Calibration | None = None,
        releases: Releases = None,
        pair: NoisyPair = "as_given",
        noise_multiplier: float | None = None,
        epsilon_per_release: float | Sequence[float] | None = None,
        **noise: Unpack[NoiseOptions],
    ) -> None:
        """Wraps ``env``.

        Args:
            env: The environment, not yet privatized.
            epsilon: Epsilon of all planned releases of an agent together, under the budget's adjacency and by exact
                composition; infinity adds no noise. One of it, ``epsilon_per_release`` and ``noise_multiplier`` is
                given.
            delta: Delta of all releases together; with the other two that of each release, if neighbours differ in one
                of its numbers.
            calibration: What ``epsilon_per_release`` stands for: ``"classic"``, the paper's formula and the default, or
                ``"analytic"``, the smallest noise that suffices. Noise for ``epsilon`` is always the smallest one.
            releases: The number of releases, after which no more are possible, or a schedule whose rounds are counted;
                with ``epsilon`` also a sequence with the proportions of what the releases spend, such as ``[1, 2, 4]``.
                None, which ``epsilon`` does not allow, for any number.
            pair: Which numbers get the noise: the arrays as the environment releases them (``"as_given"``), or the
                numbers of good and of defective outcomes (``"good_and_defective"``).
            noise_multiplier: Standard deviation of the noise of every release in units of sensitivity, >= 0. The
                epsilon of a release then follows from it and ``delta``.
            epsilon_per_release: Epsilon of each release, if neighbours differ in one of its numbers; or a sequence with
                that of each. A number without ``releases`` is P-FCB's epsilon, of which shares that decrease are spent.
            **noise: ``budget``, ``on_exhausted``, ``noise_seed`` and ``clip``, see :class:`NoiseOptions`.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: A parameter is out of its range, or ``env`` is already privatized.

        Warns:
            UserWarning: The classic formula gives a release more than ``delta``, as it may where epsilon is 1 or more;
                the warning names the true delta, which claims use.
        """
        mechanism = Gaussian(
            epsilon, delta, calibration, releases, pair, noise_multiplier, epsilon_per_release
        )
        super().__init__(env, mechanism, **noise)


class LaplacePrivatizer(Privatizer):
    """Adds independent Laplace noise to every release: pure differential privacy; see :class:`.Laplace`.

    Example:
        >>> from fedbandit_envs.procurement_v0 import parallel_env
        >>> from fedbandit_envs.wrappers import LaplacePrivatizer
        >>> env = LaplacePrivatizer(parallel_env(num_agents=2), epsilon=1.0, releases=4)
        >>> _ = env.reset(seed=0)
        >>> _ = env.release([[True, True]])
        >>> env.privacy().delta
        0.0
    """

    examples = ({"epsilon_per_release": 1.0}, {"epsilon": 1.0, "releases": "every_round", "clip": 1.5})

    def __init__(
        self,
        env: FederatedEnv,
        epsilon: float | None = None,
        releases: Releases = None,
        epsilon_per_release: float | Sequence[float] | None = None,
        **noise: Unpack[NoiseOptions],
    ) -> None:
        """Wraps ``env``.

        Args:
            env: The environment, not yet privatized.
            epsilon: Epsilon of all planned releases of an agent together, under the budget's adjacency; infinity adds
                no noise. One of it and ``epsilon_per_release`` is given.
            releases: The number of releases, after which no more are possible, or a schedule whose rounds are counted;
                with ``epsilon`` also a sequence with the proportions of what the releases spend, such as ``[1, 2, 4]``.
                None, which ``epsilon`` does not allow, for any number.
            epsilon_per_release: Epsilon of each release, if neighbours differ in one of its numbers; or a sequence with
                that of each. A number without ``releases`` is divided into P-FCB's decreasing shares.
            **noise: ``budget``, ``on_exhausted``, ``noise_seed`` and ``clip``, see :class:`NoiseOptions`.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: A parameter is out of its range, or ``env`` is already privatized.
        """
        super().__init__(env, Laplace(epsilon, releases, epsilon_per_release), **noise)


class RandomizedResponsePrivatizer(Privatizer):
    """Flips each binary outcome with a probability given by epsilon, before counting; see :class:`.RandomizedResponse`.

    Example:
        >>> from fedbandit_envs.procurement_v0 import parallel_env
        >>> from fedbandit_envs.wrappers import RandomizedResponsePrivatizer
        >>> env = RandomizedResponsePrivatizer(parallel_env(num_agents=2), epsilon=1.0, releases=4)
        >>> _ = env.reset(seed=0)
        >>> _ = env.release([[True, True]])
        >>> round(env.privacy().epsilon, 6), env.privacy().adjacency
        (0.25, 'one-outcome')
    """

    examples = ({"epsilon": 1.0, "releases": "every_round"},)

    def __init__(
        self,
        env: FederatedEnv,
        epsilon: float | None = None,
        releases: Releases = None,
        epsilon_per_release: float | Sequence[float] | None = None,
        **noise: Unpack[NoiseOptions],
    ) -> None:
        """Wraps ``env``, whose statistic must count binary outcomes (:class:`~fedbandit_envs.core.privacy.Pair`).

        Args:
            env: The environment, not yet privatized.
            epsilon: Epsilon of all planned releases of an agent together, under ``one-outcome``; infinity flips no
                outcome. One of it and ``epsilon_per_release`` is given.
            releases: The number of releases, after which no more are possible, or a schedule whose rounds are counted;
                with ``epsilon`` also a sequence with the proportions of what the releases spend, such as ``[1, 2, 4]``.
                None, which ``epsilon`` does not allow, for any number.
            epsilon_per_release: Epsilon of each release, if neighbours differ in one of its outcomes; or a sequence
                with that of each. A number without ``releases`` is divided into P-FCB's decreasing shares.
            **noise: ``budget``, ``on_exhausted`` and ``noise_seed``, see :class:`NoiseOptions`. By default the epsilons
                of all releases are added up (``basic``). Since each outcome is in one release only, the composition
                ``parallel`` gives a smaller epsilon.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: A parameter is out of its range, or ``env`` is already privatized.
        """
        super().__init__(env, RandomizedResponse(epsilon, releases, epsilon_per_release), **noise)


class ContinualPrivatizer(Privatizer):
    """Adds correlated noise to releases, so that sums of them have little of it; see :class:`.MatrixMechanism`.

    Example:
        >>> from fedbandit_envs.linear_v0 import parallel_env
        >>> from fedbandit_envs.wrappers import ContinualPrivatizer
        >>> env = ContinualPrivatizer(parallel_env(num_agents=2), epsilon=1.0, delta=1e-5, releases=3)
        >>> _ = env.reset(seed=0)
        >>> for _ in range(3):
        ...     _ = env.release([[True, True]])
        >>> round(env.privacy().epsilon, 6)
        1.0
    """

    examples = (
        {"epsilon": 1.0, "delta": 0.1},
        {"epsilon": 1.0, "delta": 0.1, "mechanism": "honaker"},
        {"epsilon": 1.0, "delta": 0.1, "adjacency": "agent", "clip": 1.5},
    )

    def __init__(
        self,
        env: FederatedEnv,
        epsilon: float | None,
        delta: float,
        mechanism: MatrixName | None = None,
        sigma: Literal["exact", "printed"] = "exact",
        releases: PlannedReleases = None,
        adjacency: Adjacency | None = None,
        noise_multiplier: float | None = None,
        **noise: Unpack[NoiseOptions],
    ) -> None:
        """Wraps ``env``.

        Args:
            env: The environment, not yet privatized.
            epsilon: Epsilon of all releases of an agent together; infinity adds no noise; None if ``noise_multiplier``
                is given, from which it follows.
            delta: Delta of all releases of an agent together.
            mechanism: The factorisation of prefix sums: ``"sqrt_toeplitz"`` has the least noise, but memory and time of
                a release grow with the number of releases; ``"blt"`` has at most a thousandth more noise, in constant
                memory and time; ``"tree"`` and ``"honaker"`` are tree mechanisms. ``"independent"`` draws new noise in
                every release, which is best if all data of an agent may change. None takes it under the adjacency
                ``agent``; otherwise ``"sqrt_toeplitz"`` for up to 64 planned releases, and ``"blt"`` for more.
            sigma: ``"exact"``, the smallest noise that suffices, or ``"printed"``, the formula of FedUCB for trees:
                sigma_N = 4 sqrt(m) ln(2/delta)/epsilon in units of sensitivity, where m = 1 + ceil(log2 n) is the
                tree's depth for n releases.
            releases: Planned number of releases of an agent, after which no more are possible; or a schedule, fixed in
                advance, whose rounds are counted; None for one release in each round.
            adjacency: The neighbouring histories that are protected; None for the first that the environment names.
            noise_multiplier: The standard deviation of one draw in units of sensitivity; None for the one that follows
                from ``epsilon`` and ``sigma``.
            **noise: ``budget``, ``on_exhausted``, ``noise_seed`` and ``clip``, see :class:`NoiseOptions`. By
                default epsilon is measured with the composition ``exact``, at ``delta`` and under ``adjacency``.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: A parameter is out of its range, ``env`` is already privatized or cannot protect
                ``adjacency``, or the printed noise would not be (epsilon, delta) private.
        """
        matrix = MatrixMechanism(epsilon, delta, mechanism, sigma, releases, adjacency, noise_multiplier)
        super().__init__(env, matrix, **noise)


class VectorSumPrivatizer(Privatizer):
    """Randomises every round as one-bit messages, of which sums are read; see :class:`VectorSum`.

    Example:
        >>> from fedbandit_envs.linear_v0 import parallel_env
        >>> from fedbandit_envs.wrappers import VectorSumPrivatizer
        >>> env = parallel_env(num_agents=2, num_arms=5, dim=2, statistic="moments")
        >>> env = VectorSumPrivatizer(env, epsilon=1.0, delta=0.1, gap=5)
        >>> _ = env.reset(seed=0)
        >>> _ = env.release([[True, True]])
        >>> 0 < env.privacy().epsilon <= 1.0
        True
    """

    examples = ({"epsilon": 1.0, "delta": 0.1, "gap": 1},)

    def __init__(
        self,
        env: FederatedEnv,
        epsilon: float | None,
        delta: float,
        gap: int,
        draw: Literal["exact", "printed"] = "exact",
        bound: float = 1.0,
        epsilon_per_release: float | None = None,
        **noise: Unpack[NoiseOptions],
    ) -> None:
        """Wraps ``env``, whose statistic must be a sum of [x; y][x; y]^T, with or without the squares of y.

        Args:
            env: The environment, not yet privatized.
            epsilon: Epsilon of all releases of an agent together, > 0; infinity adds no noise. One of it and
                ``epsilon_per_release`` is given.
            delta: Delta of all releases together, and in the constant of the noise.
            gap: B, the number of rounds from one release to the next.
            draw: ``"exact"``, or ``"printed"`` for the biased draw of the authors' program.
            bound: L, the largest size of a number for which messages can be sent.
            epsilon_per_release: Epsilon in the constant of the noise, as printed; claims differ from it.
            **noise: ``budget``, ``on_exhausted`` and ``noise_seed``, see :class:`NoiseOptions`. By default
                epsilon is measured with the composition ``exact`` at ``delta``.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: A parameter is out of its range, or ``env`` is already privatized or releases something else.
        """
        super().__init__(env, VectorSum(epsilon, delta, gap, draw, bound, epsilon_per_release), **noise)
