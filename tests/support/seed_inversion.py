"""NumPy's seed sequences, run backwards."""

MASK = 0xFFFFFFFF
INIT_A, MULT_A, INIT_B, MULT_B = 0x43B0D7E5, 0x931E8875, 0x8B51F9DD, 0x58F38DED
MIX_L, MIX_R = 0xCA01F9DD, 0x4973F715
WORDS = 4


def _unshift(value):
    """Undoes ``value ^= value >> 16``."""
    return value ^ (value >> 16)


def _hashes(start, multiplier, count):
    """The constants before and after each use."""
    constants = [start]
    for _ in range(count):
        constants.append(constants[-1] * multiplier & MASK)
    return constants


def _hashed(value, before, after):
    value = (value ^ before) * after & MASK
    return value ^ (value >> 16)


def entropy_behind(words, spawn_key):
    """Returns the entropy, of up to 128 bits, behind the first four words that a seed sequence generates."""
    constants = _hashes(INIT_B, MULT_B, WORDS)
    pool = [
        (_unshift(int(word)) * pow(after, -1, 1 << 32) & MASK) ^ before
        for word, before, after in zip(words, constants, constants[1:], strict=False)
    ]
    uses = WORDS + WORDS * (WORDS - 1) + WORDS * len(spawn_key)
    constants = _hashes(INIT_A, MULT_A, uses)
    used = uses

    def unmix(mixed, hashed):
        return (_unshift(mixed) + MIX_R * hashed) * pow(MIX_L, -1, 1 << 32) & MASK

    for key in reversed(spawn_key):
        for target in reversed(range(WORDS)):
            used -= 1
            pool[target] = unmix(pool[target], _hashed(key, constants[used], constants[used + 1]))
    for source in reversed(range(WORDS)):
        for target in reversed(range(WORDS)):
            if source != target:
                used -= 1
                pool[target] = unmix(
                    pool[target], _hashed(pool[source], constants[used], constants[used + 1])
                )
    entropy = 0
    for place in reversed(range(WORDS)):
        used -= 1
        word = (_unshift(pool[place]) * pow(constants[used + 1], -1, 1 << 32) & MASK) ^ constants[used]
        entropy |= word << (32 * place)
    return entropy
