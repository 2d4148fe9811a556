// The timer trials (bench/timer) on Go's own timers: time.AfterFunc and Stop.
//
//	carillon-bench-go --systems
//	carillon-bench-go SYSTEM TRIAL PRODUCERS TIMERS PAIRS LEAD SPAN
//
// The arguments are described in bench/timer/child.h, the trials in bench/timer/trials.h.
package main

import (
	"fmt"
	"math/rand"
	"os"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	onTheWay = 1000
	farMs    = 30_000
)

type plan struct {
	producers, timers, pairs, leadMs, spanMs int
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--systems" {
		fmt.Println("Go time.AfterFunc")
		return
	}
	if len(os.Args) != 8 {
		fmt.Fprintln(os.Stderr, "usage: carillon-bench-go SYSTEM TRIAL PRODUCERS TIMERS PAIRS LEAD SPAN")
		os.Exit(2)
	}
	var numbers [5]int
	for i := range numbers {
		number, err := strconv.Atoi(os.Args[3+i])
		if err != nil {
			fmt.Fprintln(os.Stderr, "carillon-bench-go:", err)
			os.Exit(2)
		}
		numbers[i] = number
	}
	p := plan{numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]}
	switch os.Args[2] {
	case "pairs":
		pairs(p)
	case "fire", "late":
		fire(p)
	case "idle":
		idle(p)
	}
}

func far(random *rand.Rand) time.Duration {
	return time.Duration(farMs+random.Intn(farMs)) * time.Millisecond
}

func nothing() {}

func pairs(p plan) {
	each, count := p.timers/p.producers, p.pairs/p.producers
	var ready, done sync.WaitGroup
	ready.Add(p.producers)
	done.Add(p.producers)
	begin := make(chan struct{})
	for producer := 0; producer < p.producers; producer++ {
		go func() {
			random := rand.New(rand.NewSource(int64(producer)))
			timers := make([]*time.Timer, each+onTheWay)
			for i := range timers {
				timers[i] = time.AfterFunc(far(random), nothing)
			}
			ready.Done()
			<-begin
			for i, slot := 0, each; i < count; i++ {
				timers[slot].Stop()
				timers[slot] = time.AfterFunc(far(random), nothing)
				if slot++; slot == len(timers) {
					slot = each
				}
			}
			done.Done()
			<-make(chan struct{}) // blocks for ever: the timers stay pending
		}()
	}
	ready.Wait()
	before := usageNow()
	start := time.Now()
	close(begin)
	done.Wait()
	seconds := time.Since(start).Seconds()
	used := usageNow().less(before)
	total := float64(count * p.producers)
	print("rate", total/seconds)
	print("cpu", used.cpuNs/total)
}

func fire(p plan) {
	deadlines := make([]time.Time, p.timers)
	firedAt := make([]time.Time, p.timers)
	var fired atomic.Int64
	random := rand.New(rand.NewSource(42))
	first := time.Now().Add(time.Duration(p.leadMs) * time.Millisecond)
	span := time.Duration(p.spanMs) * time.Millisecond
	for slot := range deadlines {
		at := first.Add(time.Duration(random.Int63n(int64(span))))
		delay := max(time.Millisecond, time.Until(at).Truncate(time.Millisecond))
		deadlines[slot] = time.Now().Add(delay)
		time.AfterFunc(delay, func() {
			firedAt[slot] = time.Now()
			fired.Add(1)
		})
	}
	if time.Now().After(first) {
		fmt.Print("scheduling took longer than the lead")
		os.Exit(1)
	}
	time.Sleep(time.Until(first))
	before := usageNow()
	time.Sleep(span)
	for fired.Load() < int64(p.timers) {
		time.Sleep(5 * time.Millisecond)
	}
	used := usageNow().less(before)
	late := make([]float64, p.timers)
	early := 0
	begun, ended := deadlines[0], firedAt[0]
	for slot := range late {
		late[slot] = float64(firedAt[slot].Sub(deadlines[slot]).Nanoseconds()) / 1e3
		if late[slot] < 0 {
			early++
		}
		if deadlines[slot].Before(begun) {
			begun = deadlines[slot]
		}
		if firedAt[slot].After(ended) {
			ended = firedAt[slot]
		}
	}
	sort.Float64s(late)
	n := float64(p.timers)
	percentile := func(f float64) float64 { return late[int(f*(n-1))] }
	print("rate", n/ended.Sub(begun).Seconds())
	print("cpu", used.cpuNs/n)
	print("cpu_ms", used.cpuNs/1e6)
	print("sleeps", used.sleeps)
	print("early", float64(early))
	print("min", late[0])
	print("p50", percentile(0.50))
	print("p99", percentile(0.99))
	print("max", late[len(late)-1])
}

func idle(p plan) {
	random := rand.New(rand.NewSource(1))
	timers := make([]*time.Timer, p.timers)
	for i := range timers {
		timers[i] = time.AfterFunc(60*far(random), nothing)
	}
	time.Sleep(200 * time.Millisecond)
	before := usageNow()
	time.Sleep(time.Duration(p.spanMs) * time.Millisecond)
	used := usageNow().less(before)
	seconds := float64(p.spanMs) / 1e3
	print("cpu_ms", used.cpuNs/1e6/seconds)
	print("sleeps", used.sleeps/seconds)
	timers[0].Stop()
}

func print(name string, value float64) {
	fmt.Println(name, strconv.FormatFloat(value, 'f', 3, 64))
}
