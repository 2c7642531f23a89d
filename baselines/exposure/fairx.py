"""FairX-LinUCB, alone and federated: fair shares for an optimistic parameter."""

from math import log
from typing import Any

import numpy as np

from fedbandit_envs.baselines.exposure.optimism import SOLVERS, SolverName, centre, optimise
from fedbandit_envs.baselines.linear.feducb import FedUCB
from fedbandit_envs.baselines.linear.noise import Regularisation
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_choice, require_flag, require_integer
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.exposure.merit import Merits, share_out


class FairX(FedUCB):
    """FairX-LinUCB (Wang et al. 2021), also on received data (thesis, Algorithm 6.1).

    V, b and the radius are FedUCB's, which without a channel are LinUCB's. Shares are the fair ones for the parameter
    of the confidence ellipsoid under which fair shares would pay most, see
    :mod:`fedbandit_envs.baselines.exposure.optimism`. Channel and privatizer make of this policy the thesis' baseline
    B0, Fed-FairX-LinUCB, Priv-FairX-LinUCB, B1 and B2.

    Where agents choose when to send, they ask to once log det V - log det S reaches D / (rounds since the last
    synchronisation + 1), S being V at that time (FedUCB's line 12). V holds what is known when shares are chosen; which
    arm will be drawn, and its context, are not known then.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import exposure_v0
        >>> from fedbandit_envs.baselines.exposure import FairX
        >>> env = exposure_v0.parallel_env(num_agents=3, num_arms=4, dim=2)
        >>> policy = FairX(beta_scale=0.1)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3, 4)
    """

    def __init__(
        self,
        solver: SolverName = "frank_wolfe",
        steps: int | None = None,
        ridge_each: bool = False,
        noise_sd: float = 0.1,
        failure: float = 0.05,
        **feducb: Any,
    ) -> None:
        """Sets the policy's constants.

        Args:
            solver: ``"frank_wolfe"`` or ``"projected_gradient"``.
            steps: Number of the solver's steps; None for 3 and 10. 0 stays at the estimate, as ``beta_scale=0`` does.
            ridge_each: Whether V has lambda I once for each agent after the first message, as in the listing; else once
                in all.
            noise_sd: R.
            failure: delta'.
            **feducb: See :class:`FedUCB`, all but ``combine`` and ``alpha``. ``beta_scale`` is the factor of the radius
                sqrt(beta), and 0 is greedy; where D (``threshold``) is None it is FedUCB's printed one with rho_min =
                rho_max = ridge / (number of agents).

        Raises:
            TypeError: A parameter has the wrong type, or is unknown.
            ValueError: A parameter is out of its range, or ``shift`` and ``bias`` do not go together.
        """
        if refused := feducb.keys() & {"combine", "alpha"}:
            raise TypeError(f"FairX takes no {', '.join(sorted(refused))}: shares follow from one ellipsoid")
        super().__init__(noise_sd=noise_sd, failure=failure, **feducb)
        self._solver: SolverName = require_choice("solver", solver, SOLVERS)
        if steps is not None:
            require_integer("steps", steps, 0)
        self._ridge_each = require_flag("ridge_each", ridge_each)
        self._steps = 0 if self._beta_scale == 0 else SOLVERS[solver] if steps is None else int(steps)

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets own and received data; see :meth:`Policy.reset`.

        Raises:
            UnfitError: Merit functions are not public here: it is another problem.
        """
        merits = spec.public.get("merits")
        if not isinstance(merits, Merits):
            raise UnfitError(
                f"public has no 'merits' but {list(spec.public)}; those of exposure_v0 are required"
            )
        self._merits = merits
        self._federation = spec.agents
        shape = (*seeds.shape, *(spec.observation["contexts"].shape or ())[:1])
        self._means, self._shares = np.zeros(shape), np.zeros(shape)
        self._radius = np.zeros(seeds.shape)
        super().reset(spec, seeds)

    def _joint_ridge(self) -> float:
        return self._ridge * (self._federation if self._ridge_each else 1)

    def _default_threshold(self, horizon: int, longest: float, start: Regularisation) -> float:
        dim = self._ridges.moment.shape[-1]
        grown = horizon * longest**2 * self._federation / (dim * self._ridge)
        return 2 * horizon * dim / (log(1 + grown) + 1)

    def _wants(self, observation: Arrays, action: Array) -> None:
        turn = observation["round"] % self._estimators
        grown = np.take_along_axis(self._ridges.log_det - self._synchronised, turn, axis=2)[..., 0]
        self._send[...] = grown >= self._due / (self._waited + 1.0)
        if "active" in observation:
            self._send &= observation["active"][..., 0]

    def _pull(self, observation: Arrays) -> Array:
        round_, contexts = observation["round"], observation["contexts"]
        centre(
            round_, *self._ridges, *self._confidence, self._noise_sd, -log(self._own_failure()),
            self._beta_scale, self._parameter, self._radius,
        )  # fmt: skip
        _, logarithms = optimise(
            self._solver, self._steps, round_, contexts, self._ridges.inverse, self._parameter, self._radius,
            self._merits, observation.get("merit"), self._means,
        )  # fmt: skip
        share_out(logarithms, self._shares)
        return self._shares
