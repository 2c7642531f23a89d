"""The package's wrappers by name."""

from fedbandit_envs import wrappers
from fedbandit_envs.core.wrapper import FederatedWrapper

WRAPPERS: dict[str, type[FederatedWrapper]] = {
    name: wrapper for name in wrappers.__all__ if (wrapper := getattr(wrappers, name)).examples
}
"""Every wrapper of this package that keyword arguments alone can make, by the name of its class."""
