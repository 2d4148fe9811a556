//! The wheel workloads (bench/wheel/workloads.h) on tokio's timers and tokio-util's `DelayQueue`.
//! Prints the results as lines of JSON.
//!
//!     carillon-bench-rust INPUTS RUNS     # INPUTS as carillon_bench_wheel --inputs writes it

mod delay_queue;
mod inputs;
mod measure;
mod sleeps;

use inputs::Inputs;
use measure::print;

#[global_allocator]
static ALLOCATOR: measure::CountingAllocator = measure::CountingAllocator;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, file, runs] = &arguments[..] else {
        eprintln!("usage: carillon-bench-rust INPUTS RUNS");
        std::process::exit(2);
    };
    let inputs = Inputs::read(file).unwrap_or_else(|error| {
        eprintln!("carillon-bench-rust: {error}");
        std::process::exit(1);
    });
    let runs: usize = runs.parse().expect("RUNS is a number");

    both("tokio sleep", &inputs, runs, sleeps::schedule_and_cancel);
    one("W3", "tokio sleep", &inputs, runs, sleeps::fire_all);
    one("W3e", "tokio sleep", &inputs, runs, sleeps::empty_tick);
    one("W4", "tokio sleep", &inputs, runs, sleeps::keepalive);
    one("W5", "tokio sleep", &inputs, runs, sleeps::wide_range);
    one("W6", "tokio sleep", &inputs, 1, sleeps::memory);
    one("W7", "tokio sleep", &inputs, runs, sleeps::churn);

    both(
        "tokio DelayQueue",
        &inputs,
        runs,
        delay_queue::schedule_and_cancel,
    );
    one(
        "W3",
        "tokio DelayQueue",
        &inputs,
        runs,
        delay_queue::fire_all,
    );
    one(
        "W4",
        "tokio DelayQueue",
        &inputs,
        runs,
        delay_queue::keepalive,
    );
    one("W6", "tokio DelayQueue", &inputs, 1, delay_queue::memory);
    one("W7", "tokio DelayQueue", &inputs, runs, delay_queue::churn);
}

fn one(workload: &str, system: &str, inputs: &Inputs, runs: usize, run: fn(&Inputs) -> f64) {
    print(
        inputs.len(),
        workload,
        system,
        (0..runs).map(|_| run(inputs)).collect(),
    );
}

fn both(system: &str, inputs: &Inputs, runs: usize, run: fn(&Inputs) -> (f64, f64)) {
    let (schedule, cancel) = (0..runs).map(|_| run(inputs)).unzip();
    print(inputs.len(), "W1", system, schedule);
    print(inputs.len(), "W2", system, cancel);
}
