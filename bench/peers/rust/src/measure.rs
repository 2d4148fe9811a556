//! The CPU time of the thread, the bytes that are allocated, and the lines of JSON.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

pub struct Stopwatch(f64);

impl Stopwatch {
    pub fn start() -> Stopwatch {
        Stopwatch(now())
    }

    pub fn nanoseconds(&self) -> f64 {
        now() - self.0
    }
}

fn now() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Repeats a small workload within a run, until it has lasted long enough to be measured.
pub struct Repetition {
    n: usize,
    pub operations: f64,
    watch: Stopwatch,
}

impl Repetition {
    pub fn of(n: usize) -> Repetition {
        Repetition {
            n,
            operations: 0.0,
            watch: Stopwatch::start(),
        }
    }

    pub fn again(&mut self) -> bool {
        self.operations += self.n as f64;
        self.operations < 1e6 && self.watch.nanoseconds() < 1e8
    }
}

pub struct CountingAllocator;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size(), Relaxed);
        System.alloc(layout)
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size(), Relaxed);
        System.dealloc(memory, layout)
    }
}

pub fn allocated() -> f64 {
    ALLOCATED.load(Relaxed) as f64
}

/// Prints one line of JSON, in the format of `carillon_bench_wheel --json`.
pub fn print(n: usize, workload: &str, system: &str, mut runs: Vec<f64>) {
    runs.sort_by(f64::total_cmp);
    let half = runs.len() / 2;
    let median = if runs.len() % 2 == 1 {
        runs[half]
    } else {
        (runs[half - 1] + runs[half]) / 2.0
    };
    let unit = if workload == "W6" { "bytes" } else { "ns" };
    println!(
        "{{\"n\": {n}, \"workload\": \"{workload}\", \"system\": \"{system}\", \
         \"unit\": \"{unit}\", \"median\": {median:.3}, \"min\": {:.3}, \"max\": {:.3}, \
         \"runs\": {}}}",
        runs[0],
        runs[runs.len() - 1],
        runs.len()
    );
}
