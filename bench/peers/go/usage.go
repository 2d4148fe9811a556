package main

import "syscall"

// usage is the CPU time that the process has used so far, and how often its threads went to sleep.
type usage struct{ cpuNs, sleeps float64 }

func usageNow() usage {
	var all syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &all); err != nil {
		panic(err)
	}
	return usage{float64(all.Utime.Nano() + all.Stime.Nano()), float64(all.Nvcsw)}
}

func (a usage) less(b usage) usage { return usage{a.cpuNs - b.cpuNs, a.sleeps - b.sleeps} }
