"""Streams of bytes are cut into frames, and end with one."""

import asyncio
import tracemalloc

import pytest
from samba_runs import ends

from fedbandit_envs.samba.errors import SecureError
from fedbandit_envs.samba.network import read_frame, with_length


async def cut(parts, sender="somebody", max_bytes=100, end=True):
    """Returns the frames of a stream that arrives in these parts."""
    reader = asyncio.StreamReader()

    async def arrive():
        for part in parts:
            reader.feed_data(part)
            await asyncio.sleep(0)
        if end:
            reader.feed_eof()

    arriving = asyncio.ensure_future(arrive())
    frames = []
    try:
        while (frame := await read_frame(reader, sender, max_bytes)) is not None:
            frames.append(frame)
    finally:
        await arriving
    return frames


def test_streams_are_cut_into_frames_wherever_they_break():
    frames = [b"a" * 30, b"b", b"", b"c" * 100]
    stream = b"".join(map(with_length, frames))
    for size in (1, 3, 7, len(stream)):
        parts = [stream[i : i + size] for i in range(0, len(stream), size)]
        assert asyncio.run(cut(parts)) == frames


def test_a_frame_of_two_gigabytes_is_refused_as_it_is_announced():
    parts = [(1 << 31).to_bytes(4, "big") + bytes(1000)]
    asyncio.run(cut([]))
    tracemalloc.start()
    with pytest.raises(SecureError, match="owner-1 announces a frame of 2147483648 bytes") as caught:
        asyncio.run(cut(parts, "owner-1", 10_000, end=False))
    assert tracemalloc.get_traced_memory()[1] < 100_000
    tracemalloc.stop()
    assert caught.value.culprit == "owner-1"
    here, there = ends(max_bytes=200)
    with pytest.raises(SecureError, match="at most 200 are allowed"):
        there.open(here.seal(bytes(300)))


def test_a_stream_that_ends_within_a_frame_is_refused():
    for begun in (with_length(b"begun")[:-1], with_length(b"begun")[:4], b"\0"):
        with pytest.raises(SecureError, match=rf"ends within a frame, after {len(begun)} bytes of it"):
            asyncio.run(cut([with_length(b"whole") + begun]))
