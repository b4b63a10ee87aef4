// Speed of the Go library klauspost/reedsolomon with its Leopard code over GF(2^8), for the
// comparison in docs/benchmarks.md: 128 source and 127 repair symbols, on one thread, in its
// processor time.
package main

import (
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"time"
	"unsafe"

	"github.com/klauspost/reedsolomon"
)

const (
	sourceSymbols = 128
	repairSymbols = 127
	symbolSize    = 1280
	runs          = 201
	timesInRun    = 20
)

// processorTime is the time of this thread.
func processorTime() time.Duration {
	const threadClock = 3
	var now syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, threadClock, uintptr(unsafe.Pointer(&now)), 0)
	return time.Duration(now.Nano())
}

// measure prints the median of all runs.
func measure(name string, prepare func(), run func() error) {
	var times []time.Duration
	for range runs {
		var sum time.Duration
		for range timesInRun {
			prepare()
			start := processorTime()
			if err := run(); err != nil {
				panic(err)
			}
			sum += processorTime() - start
		}
		times = append(times, sum/timesInRun)
	}
	slices.Sort(times)
	speed := sourceSymbols * symbolSize / 1e6 / times[runs/2].Seconds()
	fmt.Printf("leopard   %d %s %.0f MB/s\n", sourceSymbols, name, speed)
}

func main() {
	runtime.GOMAXPROCS(1)
	runtime.LockOSThread()
	code, err := reedsolomon.New(sourceSymbols, repairSymbols,
		reedsolomon.WithLeopardGF(true), reedsolomon.WithMaxGoroutines(1))
	if err != nil {
		panic(err)
	}
	shards := code.(reedsolomon.Extensions).AllocAligned(symbolSize)
	for i := range shards[:sourceSymbols] {
		for j := range shards[i] {
			shards[i][j] = byte(i*i + 7*j + j/50)
		}
	}
	measure("encode", func() {}, func() error { return code.Encode(shards) })
	for _, percent := range []int{50, 5} {
		lost := sourceSymbols * percent / 100
		received := make([][]byte, len(shards))
		prepare := func() {
			copy(received, shards)
			for i := range lost {
				received[i*sourceSymbols/lost] = received[i*sourceSymbols/lost][:0]
			}
			clear(received[sourceSymbols+lost:])
		}
		measure(fmt.Sprintf("decode%d", percent), prepare, func() error {
			return code.ReconstructData(received)
		})
	}
}
