"""A Flower app that carries messages between silos: a server that relays them, and clients that open their stores.

Needs the extra ``flower``. Flower's SuperLink and SuperNodes carry what the apps return. TLS, and who may send as whom,
are Flower's: without SuperNode authentication any node can pass itself off as any silo.

Every request carries the messages of all releases so far, of which a silo takes in those that it lacks. So a silo that
was away, comes late or has lost a reply goes on with the next request.
"""

from collections.abc import Callable
from time import monotonic, sleep
from typing import Any

from fedbandit_envs.silos.messages import Message, MessageError
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
    def relay(grid: Any, context: Any) -> None:
        packets: dict[tuple[int, int], bytes] = {}
        due = [t for t in range(1, plan.rounds + 1) if layout.schedule.sends(t)]
        for place, round_ in enumerate([*due, plan.rounds]):
            until = monotonic() + patience
            while len(nodes := [*grid.get_node_ids()]) < least and monotonic() < until:
                sleep(0.2)
            content = ConfigRecord({_ROUND: round_, _PACKETS: [packets[key] for key in sorted(packets)]})
            requests = [
                Envelope(RecordDict({_RECORD: content}), node, MessageType.QUERY, group_id=str(round_))
                for node in nodes
            ]
            here = set()
            for reply in grid.send_and_receive(requests, timeout=patience):
                if not reply.has_error():
                    here |= _keep(reply.content[_RECORD][_PACKETS], plan, packets)
            last = ", the last" if place == len(due) else ""
            print(f"round {round_}{last}: {len(here)} of {layout.agents} silos: {sorted(here)}", flush=True)

    return app


def _keep(sent: list[bytes], plan: SiloPlan, packets: dict[tuple[int, int], bytes]) -> set[int]:
    """Adds the messages of a reply to those known, and returns whose they are; a bad reply is left out."""
    try:
        found = [Message.decode(packet, plan.layout) for packet in sent]
    except MessageError as error:
        print(f"a reply is left out: {error}", flush=True)
        return set()
    for message in found:
        packets.setdefault((message.sender, message.number), message.encode())
    return {message.sender for message in found}


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
            for packet in asked[_PACKETS]:
                try:
                    message = Message.decode(packet, plan.layout)
                    if message.sender != silo.agent and message.number > silo.received.get(message.sender, 0):
                        silo.receive([packet])
                except MessageError as error:
                    print(f"a message is left out: {error}", flush=True)
            while True:
                if silo.due:
                    silo.release()
                if silo.round >= min(asked[_ROUND], plan.rounds):
                    break
                play(silo)
            content = ConfigRecord({_PACKETS: [message.encode() for message in silo.messages]})
            print(f"silo {silo.agent}: round {silo.round}, {silo.privacy()}", flush=True)
        return Envelope(RecordDict({_RECORD: content}), reply_to=request)

    return app
