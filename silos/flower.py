"""A Flower app that carries messages between silos: a server that relays them, and clients that open their stores.

Needs the extra ``flower``. Flower's SuperLink and SuperNodes carry what the apps return. TLS, and who may send as whom,
are Flower's: without SuperNode authentication any node can pass itself off as any silo.

Every request carries the messages of all releases so far, of which a silo takes in those that it lacks. So a silo that
was away, comes late or has lost a reply goes on with the next request.
"""

from collections.abc import Callable
from time import monotonic, sleep
from typing import Any

from fedbandit_envs.silos.messages import Layout, Message, MessageError, added
from fedbandit_envs.silos.plan import SiloPlan
from fedbandit_envs.silos.silo import Silo

_RECORD, _PACKETS, _ROUND = "silos", "packets", "round"


def server_app(plan: SiloPlan, patience: float = 60.0, least: int = 1) -> Any:
    """Returns a ``ServerApp`` that lets silos play and relays their messages.

    Args:
        plan: What all silos play.
        patience: Seconds to wait for replies to a request; a silo that has not replied by then counts as away.
        least: Number of nodes to wait for before each request.
    """
    from flwr.app import ConfigRecord, MessageType, RecordDict
    from flwr.app import Message as Envelope
    from flwr.serverapp import ServerApp

    app, layout = ServerApp(), plan.layout

    @app.main()
    def serve(grid: Any, context: Any) -> None:
        known: dict[tuple[int, int], Message] = {}
        packets: list[bytes] = []
        due = [t for t in range(1, plan.rounds + 1) if layout.schedule.sends(t)]
        for place, round_ in enumerate([*due, plan.rounds]):
            until = monotonic() + patience
            while len(nodes := [*grid.get_node_ids()]) < least and monotonic() < until:
                sleep(0.2)
            content = ConfigRecord({_ROUND: round_, _PACKETS: packets})
            requests = [
                Envelope(RecordDict({_RECORD: content}), node, MessageType.QUERY, group_id=str(round_))
                for node in nodes
            ]
            here, new = set(), []
            for reply in grid.send_and_receive(requests, timeout=patience):
                for message in [] if reply.has_error() else _read(reply.content[_RECORD][_PACKETS], layout):
                    here.add(message.parts[0][0])
                    if len(message.parts) == 1 and known.setdefault(message.parts[0], message) is message:
                        new.append(message)
            if layout.sums and new:
                new = [added(new)]
            packets += [message.encode() for message in new]
            last = ", the last" if place == len(due) else ""
            print(f"round {round_}{last}: {len(here)} of {layout.agents} silos: {sorted(here)}", flush=True)

    return app


def _read(packets: list[bytes], layout: Layout) -> list[Message]:
    """Returns the messages that a node has sent; bad ones are left out."""
    found = []
    for packet in packets:
        try:
            found.append(Message.decode(packet, layout))
        except MessageError as error:
            print(f"a message is left out: {error}", flush=True)
    return found


def client_app(plan: SiloPlan, play: Callable[[Silo], None]) -> Any:
    """Returns a ``ClientApp`` that plays a silo up to the round of a request, and replies with all its messages.

    The silo's number and the path of its store are the SuperNode's: ``--node-config 'agent=0 store="silo-0.db"'``.

    Args:
        plan: What all silos play.
        play: Plays one round: calls ``act`` and ``observe`` of the silo. If ``pending`` is not None, a process was
            stopped between the two, and only the outcome is missing.
    """
    from flwr.app import ConfigRecord, RecordDict
    from flwr.app import Message as Envelope
    from flwr.clientapp import ClientApp

    app = ClientApp()

    @app.query()
    def answer(request: Any, context: Any) -> Any:
        asked = request.content[_RECORD]
        with Silo(plan, context.node_config["agent"], context.node_config["store"]) as silo:
            for message in _read(asked[_PACKETS], plan.layout):
                if any(t > silo.received.get(j, 0) for j, t in message.parts if j != silo.agent):
                    try:
                        silo.receive([message.encode()])
                    except MessageError as error:
                        print(f"a message is left out: {error}", flush=True)
            while silo.due or silo.round < min(asked[_ROUND], plan.rounds):
                if silo.due:
                    silo.release()
                else:
                    play(silo)
            content = ConfigRecord({_PACKETS: [message.encode() for message in silo.messages]})
            print(f"silo {silo.agent}: round {silo.round}, {silo.privacy()}", flush=True)
        return Envelope(RecordDict({_RECORD: content}), reply_to=request)

    return app
