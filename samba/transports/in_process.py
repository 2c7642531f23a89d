"""All roles in one process: each frame is handed to its receiver, in the order of sending."""

from collections import deque
from collections.abc import Callable, Mapping
from time import process_time

from fedbandit_envs.samba.errors import SecureError
from fedbandit_envs.samba.roles.messages import Frame
from fedbandit_envs.samba.roles.role import Role

_ROUNDS_PER_CALL = 64


def run_roles(
    roles: Mapping[str, Role],
    advance: Callable[[int], None] = lambda rounds: None,
    observer: list[Frame] | None = None,
) -> dict[str, float]:
    """Passes frames between roles until all are done, and returns the CPU seconds of each role.

    Args:
        roles: Roles by name.
        advance: Called with a number of rounds that have been played since the last call.
        observer: Receives every frame, or None.

    Raises:
        SecureError: A role has refused a frame, or waits for one that is not on its way.
    """
    spent = dict.fromkeys(roles, 0.0)
    on_their_way: deque[Frame] = deque()
    controller, reported = roles["controller"], 0
    before = process_time()
    for name, role in roles.items():
        on_their_way.extend(role.start())
        before, spent[name] = (now := process_time()), now - before
    while on_their_way:
        frame = on_their_way.popleft()
        if observer is not None:
            observer.append(frame)
        sender, name, data = frame
        before = process_time()
        on_their_way.extend(roles[name].handle(sender, data))
        spent[name] += process_time() - before
        if controller.round >= reported + _ROUNDS_PER_CALL:
            advance(controller.round - reported)
            reported = controller.round
    for name, role in roles.items():
        if not role.done:
            peers = role.waits_for()
            raise SecureError(f"{name} waits for {', '.join(peers)}, and nothing is on its way", peers[0])
    return spent
