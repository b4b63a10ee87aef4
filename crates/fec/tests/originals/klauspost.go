// Digests of the codes of klauspost/reedsolomon: see README.md.
package main

import (
	"fmt"

	"github.com/klauspost/reedsolomon"
)

var state uint64

func next() uint64 {
	state += 0x9E3779B97F4A7C15
	z := state
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
	z = (z ^ (z >> 27)) * 0x94D049BB133111EB
	return z ^ (z >> 31)
}

func nextPowerOfTwo(n uint64) uint64 {
	power := uint64(1)
	for power < n {
		power *= 2
	}
	return power
}

// run prints digests of a code whose shards, with parity rounded up to a power of two if isLeopard,
// are at most `limit`, and whose sizes are multiples of `unit`.
func run(name string, limit, unit uint64, isLeopard bool, options ...reedsolomon.Option) {
	state = 1
	digest := uint64(0xCBF29CE484222325)
	for i := 1; i <= 100000; i++ {
		most := []uint64{10, 20, 40, 64}[i%4]
		if i%32 == 0 {
			most = 255
		}
		if limit > 256 && i%1000 == 0 {
			most = 3000
		}
		k := 1 + next()%most
		m := 1 + next()%min(most, limit-k)
		for isLeopard && k+nextPowerOfTwo(m) > limit {
			m /= 2
		}
		width, seed := (1+next()%8)*unit, next()|1
		if isLeopard {
			width = unit * (1 + width/unit%2)
		}
		if m == 0 {
			continue
		}
		shards := make([][]byte, k+m)
		for j := range shards {
			shards[j] = make([]byte, width)
		}
		for at := uint64(0); at < k*width; at++ {
			shards[at/width][at%width] = byte(seed * (at + 1) >> 56)
		}
		encoder, err := reedsolomon.New(int(k), int(m), options...)
		if err == nil {
			err = encoder.Encode(shards)
		}
		if err != nil {
			panic(err)
		}
		for _, shard := range shards[k:] {
			for _, octet := range shard {
				digest = (digest ^ uint64(octet)) * 0x100000001B3
			}
		}
		if i == 1000 || i == 100000 {
			fmt.Printf("%s %d %#016x\n", name, i, digest)
		}
	}
}

func main() {
	run("default", 256, 1, false)
	run("leopard8", 256, 64, true, reedsolomon.WithLeopardGF(true))
	run("leopard16", 65536, 64, true, reedsolomon.WithLeopardGF16(true))
}
