"""Streams of bytes are cut into frames, and end with one."""

import tracemalloc

import pytest
from samba_runs import ends

from fedbandit_envs.samba.errors import (
    OversizedFrameError,
    TruncatedFrameError,
)
from fedbandit_envs.samba.transports.stream import FrameReader, with_length


def test_streams_are_cut_into_frames_wherever_they_break():
    frames = [b"a" * 30, b"b", b"c" * 100]
    stream = b"".join(map(with_length, frames))
    for size in (1, 3, 7, len(stream)):
        reader = FrameReader("somebody", 100)
        cut = [frame for i in range(0, len(stream), size) for frame in reader.feed(stream[i : i + size])]
        assert cut == frames
        assert reader.end() is None


def test_a_frame_of_two_gigabytes_is_refused_as_it_is_announced():
    reader = FrameReader("owner-1", 10_000)
    tracemalloc.start()
    with pytest.raises(OversizedFrameError, match="owner-1 announces a frame of 2147483648 bytes") as caught:
        list(reader.feed((1 << 31).to_bytes(4, "big") + bytes(1000)))
    assert tracemalloc.get_traced_memory()[1] < 100_000
    tracemalloc.stop()
    assert caught.value.culprit == "owner-1"
    here, there = ends(max_bytes=200)
    with pytest.raises(OversizedFrameError):
        there.open(here.seal(bytes(300)))


def test_a_stream_that_ends_within_a_frame_is_refused():
    reader = FrameReader("comp", 100)
    assert list(reader.feed(with_length(b"whole") + with_length(b"begun")[:-1])) == [b"whole"]
    error = reader.end()
    assert isinstance(error, TruncatedFrameError)
    assert "ends within a frame" in str(error)
