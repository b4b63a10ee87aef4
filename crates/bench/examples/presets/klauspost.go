// The Go library klauspost/reedsolomon as a library for C, on one thread: `.ci/originals`.
package main

import "C"

import (
	"unsafe"

	"github.com/klauspost/reedsolomon"
)

// A group of shards in the memory of the caller.
type group struct {
	code   reedsolomon.Encoder
	shards [][]byte
	// Shards that are lost each time.
	lost int
}

var groups []group

// klauspost_new returns the number of a group whose first `lost` shards are lost each time.
// Mode 0 is the default, 1 Leopard over GF(2^8), 2 Leopard over GF(2^16).
//
//export klauspost_new
func klauspost_new(mode, data, parity C.int, shards **C.uchar, size, lost C.int) C.int {
	options := []reedsolomon.Option{
		reedsolomon.WithMaxGoroutines(1), reedsolomon.WithInversionCache(true),
	}
	switch mode {
	case 1:
		options = append(options, reedsolomon.WithLeopardGF(true))
	case 2:
		options = append(options, reedsolomon.WithLeopardGF16(true))
	}
	code, err := reedsolomon.New(int(data), int(parity), options...)
	if err != nil {
		panic(err)
	}
	made := group{code: code, lost: int(lost)}
	for _, shard := range unsafe.Slice(shards, int(data+parity)) {
		made.shards = append(made.shards, unsafe.Slice((*byte)(unsafe.Pointer(shard)), int(size)))
	}
	groups = append(groups, made)
	return C.int(len(groups) - 1)
}

// klauspost_encode computes the parity shards `times` times.
//
//export klauspost_encode
func klauspost_encode(number, times C.int) {
	group := groups[number]
	for range int(times) {
		if err := group.code.Encode(group.shards); err != nil {
			panic(err)
		}
	}
}

// klauspost_reconstruct computes the lost shards `times` times.
//
//export klauspost_reconstruct
func klauspost_reconstruct(number, times C.int) {
	group := groups[number]
	for range int(times) {
		for i := range group.lost {
			group.shards[i] = group.shards[i][:0]
		}
		if err := group.code.ReconstructData(group.shards); err != nil {
			panic(err)
		}
	}
}

func main() {}
