// Digests of the default code of klauspost/reedsolomon: see README.md.
package main

import (
	"fmt"

	"github.com/klauspost/reedsolomon"
)

var state uint64 = 1

func next() uint64 {
	state += 0x9E3779B97F4A7C15
	z := state
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
	z = (z ^ (z >> 27)) * 0x94D049BB133111EB
	return z ^ (z >> 31)
}

func main() {
	digest := uint64(0xCBF29CE484222325)
	for i := 1; i <= 100000; i++ {
		most := []uint64{10, 20, 40, 64}[i%4]
		if i%32 == 0 {
			most = 255
		}
		k := 1 + next()%most
		m := 1 + next()%min(most, 256-k)
		width, seed := 1+next()%8, next()|1
		shards := make([][]byte, k+m)
		for j := range shards {
			shards[j] = make([]byte, width)
		}
		for at := uint64(0); at < k*width; at++ {
			shards[at/width][at%width] = byte(seed * (at + 1) >> 56)
		}
		encoder, err := reedsolomon.New(int(k), int(m))
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
			fmt.Printf("%d %#016x\n", i, digest)
		}
	}
}
