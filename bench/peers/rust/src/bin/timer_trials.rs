//! The timer trials (bench/timer) on tokio's timers.
//!
//!     timer_trials --systems
//!     timer_trials SYSTEM TRIAL PRODUCERS TIMERS PAIRS LEAD SPAN
//!
//! The arguments are described in bench/timer/child.h, the trials in bench/timer/trials.h. A timer
//! is a `Sleep` of a runtime whose only worker thread drives the clock. Polling the `Sleep` once
//! schedules it, dropping it cancels it, as `timeout()` does. In T2 and T3 a task of its own awaits
//! each timer.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, Sleep};

const ON_THE_WAY: usize = 1000;
const FAR_MS: u64 = 30_000;

struct Plan {
    producers: usize,
    timers: usize,
    pairs: usize,
    lead: Duration,
    span: Duration,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["--systems"] {
        println!("tokio sleep");
        return;
    }
    if arguments.len() != 7 {
        eprintln!("usage: timer_trials SYSTEM TRIAL PRODUCERS TIMERS PAIRS LEAD SPAN");
        std::process::exit(2);
    }
    let number = |index: usize| arguments[index].parse::<usize>().expect("a number");
    let plan = Plan {
        producers: number(2),
        timers: number(3),
        pairs: number(4),
        lead: Duration::from_millis(number(5) as u64),
        span: Duration::from_millis(number(6) as u64),
    };
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .expect("a runtime");
    match arguments[1].as_str() {
        "pairs" => pairs(&runtime, &plan),
        "fire" | "late" => fire(&runtime, &plan),
        "idle" => idle(&runtime, &plan),
        _ => std::process::exit(2),
    }
    std::process::exit(0);
}

/// Places a new timer on the runtime's wheel.
fn arm(delay: Duration) -> Pin<Box<Sleep>> {
    let mut timer = Box::pin(sleep(delay));
    assert!(timer
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
        .is_pending());
    timer
}

fn pairs(runtime: &Runtime, plan: &Plan) {
    let each = plan.timers / plan.producers;
    let count = plan.pairs / plan.producers;
    let line = Arc::new(Barrier::new(plan.producers + 1));
    for producer in 0..plan.producers {
        let (handle, line) = (runtime.handle().clone(), line.clone());
        thread::spawn(move || {
            let _entered = handle.enter();
            let mut random = Random(producer as u64 + 1);
            let mut timers: Vec<_> = (0..each + ON_THE_WAY)
                .map(|_| Some(arm(random.far())))
                .collect();
            line.wait();
            line.wait();
            let mut slot = each;
            for _ in 0..count {
                timers[slot] = None;
                timers[slot] = Some(arm(random.far()));
                slot += 1;
                if slot == timers.len() {
                    slot = each;
                }
            }
            line.wait();
            line.wait(); // blocks for ever: the timers stay pending
        });
    }
    line.wait();
    let before = Usage::now();
    let start = Instant::now();
    line.wait();
    line.wait();
    let seconds = start.elapsed().as_secs_f64();
    let used = Usage::now().since(&before);
    let total = (count * plan.producers) as f64;
    print("rate", total / seconds);
    print("cpu", used.cpu_ns / total);
}

fn fire(runtime: &Runtime, plan: &Plan) {
    let origin = Instant::now();
    let fired_at: Arc<Vec<AtomicI64>> =
        Arc::new((0..plan.timers).map(|_| AtomicI64::new(0)).collect());
    let fired = Arc::new(AtomicUsize::new(0));
    let mut deadlines = Vec::with_capacity(plan.timers);
    let mut random = Random(42);
    let first = origin + plan.lead;
    for slot in 0..plan.timers {
        let at = first + Duration::from_nanos(random.next() % plan.span.as_nanos() as u64);
        let delay =
            Duration::from_millis(((at - Instant::now().min(at)).as_millis() as u64).max(1));
        let (fired_at, fired) = (fired_at.clone(), fired.clone());
        let deadline = Instant::now() + delay;
        deadlines.push((deadline - origin).as_nanos() as i64);
        runtime.spawn(async move {
            tokio::time::sleep_until(deadline.into()).await;
            fired_at[slot].store(origin.elapsed().as_nanos() as i64, Ordering::Relaxed);
            fired.fetch_add(1, Ordering::Release);
        });
    }
    if Instant::now() >= first {
        print!("scheduling took longer than the lead");
        std::process::exit(1);
    }
    thread::sleep(first - Instant::now());
    let before = Usage::now();
    thread::sleep(plan.span);
    while fired.load(Ordering::Acquire) < plan.timers {
        thread::sleep(Duration::from_millis(5));
    }
    let used = Usage::now().since(&before);
    let fired_at: Vec<i64> = fired_at
        .iter()
        .map(|each| each.load(Ordering::Relaxed))
        .collect();
    let took = fired_at.iter().max().unwrap() - deadlines.iter().min().unwrap();
    let mut late: Vec<f64> = fired_at
        .iter()
        .zip(&deadlines)
        .map(|(at, due)| (at - due) as f64 / 1e3)
        .collect();
    late.sort_by(f64::total_cmp);
    let n = plan.timers as f64;
    let percentile = |p: f64| late[(p * (n - 1.0)) as usize];
    print("rate", n / (took as f64 / 1e9));
    print("cpu", used.cpu_ns / n);
    print("cpu_ms", used.cpu_ns / 1e6);
    print("sleeps", used.sleeps);
    print(
        "early",
        late.iter().filter(|each| **each < 0.0).count() as f64,
    );
    print("min", late[0]);
    print("p50", percentile(0.50));
    print("p99", percentile(0.99));
    print("max", late[late.len() - 1]);
}

fn idle(runtime: &Runtime, plan: &Plan) {
    let _entered = runtime.enter();
    let mut random = Random(1);
    let _timers: Vec<_> = (0..plan.timers).map(|_| arm(60 * random.far())).collect();
    thread::sleep(Duration::from_millis(200));
    let before = Usage::now();
    thread::sleep(plan.span);
    let used = Usage::now().since(&before);
    print("cpu_ms", used.cpu_ns / 1e6 / plan.span.as_secs_f64());
    print("sleeps", used.sleeps / plan.span.as_secs_f64());
}

/// The CPU time that the process has used so far, and how often its threads went to sleep, not
/// counting the calling thread.
struct Usage {
    cpu_ns: f64,
    sleeps: f64,
}

impl Usage {
    fn now() -> Usage {
        unsafe {
            let mut time: libc::timespec = std::mem::zeroed();
            let mut all: libc::rusage = std::mem::zeroed();
            let mut own: libc::rusage = std::mem::zeroed();
            libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time);
            libc::getrusage(libc::RUSAGE_SELF, &mut all);
            libc::getrusage(libc::RUSAGE_THREAD, &mut own);
            Usage {
                cpu_ns: time.tv_sec as f64 * 1e9 + time.tv_nsec as f64,
                sleeps: (all.ru_nvcsw - own.ru_nvcsw) as f64,
            }
        }
    }

    fn since(&self, before: &Usage) -> Usage {
        Usage {
            cpu_ns: self.cpu_ns - before.cpu_ns,
            sleeps: self.sleeps - before.sleeps,
        }
    }
}

/// xorshift64*
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 1
    }

    fn far(&mut self) -> Duration {
        Duration::from_millis(FAR_MS + self.next() % FAR_MS)
    }
}

fn print(figure: &str, value: f64) {
    println!("{figure} {value:.3}");
}
