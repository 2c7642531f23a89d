"""Threefry-2x32 as its paper defines it, in Python's integers (Salmon et al., SC 2011)."""

_ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)


def threefry(key, counter, rounds=13):
    """Returns the pair of words of a key and a counter, pairs of words themselves."""
    mask = 0xFFFFFFFF
    keys = (*key, key[0] ^ key[1] ^ 0x1BD11BDA)
    x, y = ((c + k) & mask for c, k in zip(counter, key, strict=True))
    for number in range(rounds):
        x = (x + y) & mask
        turn = _ROTATIONS[number % 8]
        y = ((y << turn | y >> (32 - turn)) & mask) ^ x
        if number % 4 == 3:
            place = number // 4 + 1
            x, y = (x + keys[place % 3]) & mask, (y + keys[(place + 1) % 3] + place) & mask
    return x, y
