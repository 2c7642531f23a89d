"""All roles in one process: frames are handed over as they are, by whoever is next."""

from collections import deque
from collections.abc import Callable, Mapping
from time import process_time
from typing import NamedTuple

from fedbandit_envs.wrappers.secure.errors import PeerLostError
from fedbandit_envs.wrappers.secure.roles.role import Role

# Progress is told of in steps of so many rounds.
_STEP = 64


class Observed(NamedTuple):
    """A frame as an outside observer sees it."""

    sender: str
    receiver: str
    frame: bytes


def run_roles(
    roles: Mapping[str, Role],
    advance: Callable[[int], None] = lambda rounds: None,
    observer: list[Observed] | None = None,
) -> dict[str, float]:
    """Lets roles talk until all are done.

    Args:
        roles: By name.
        advance: Told of rounds played, for progress bars.
        observer: Receives every frame, or None.

    Returns:
        CPU seconds of each role.

    Raises:
        SecureError: A role has refused a frame, or somebody is missing one.
    """
    spent = dict.fromkeys(roles, 0.0)
    on_their_way: deque[Observed] = deque()
    controller, told = roles["controller"], 0
    before = process_time()
    for name, role in roles.items():
        on_their_way.extend(Observed(name, *sealed) for sealed in role.start())
        before, spent[name] = (now := process_time()), now - before
    while on_their_way:
        passing = on_their_way.popleft()
        if observer is not None:
            observer.append(passing)
        sender, name, frame = passing
        before = process_time()
        on_their_way.extend(Observed(name, *sealed) for sealed in roles[name].handle(sender, frame))
        spent[name] += process_time() - before
        if controller.round >= told + _STEP:
            advance(controller.round - told)
            told = controller.round
    waiting = {name: role.waits_for() for name, role in roles.items() if not role.done}
    if waiting:
        name, peers = next(iter(waiting.items()))
        raise PeerLostError(f"{name} waits for {', '.join(peers)}, and nothing is on its way", peers[0])
    return spent
