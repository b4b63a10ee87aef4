"""Digests of zfec: see README.md."""
import zfec

MASK = (1 << 64) - 1
state = 1


def draw():
    global state
    state = (state + 0x9E3779B97F4A7C15) & MASK
    z = state
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


digest = 0xCBF29CE484222325
for i in range(1, 100_001):
    most = 255 if i % 32 == 0 else [10, 20, 40, 64][i % 4]
    k = 1 + draw() % most
    parity = 1 + draw() % min(most, 256 - k)
    width = 1 + draw() % 8
    seed = draw() | 1
    data = bytes((seed * at & MASK) >> 56 for at in range(1, k * width + 1))
    shards = [data[j : j + width] for j in range(0, len(data), width)]
    encoder = zfec.Encoder(k, k + parity)
    for shard in encoder.encode(shards, tuple(range(k, k + parity))):
        for octet in shard:
            digest = (digest ^ octet) * 0x100000001B3 & MASK
    if i in (1_000, 100_000):
        print(i, f"{digest:#018x}", flush=True)
