//! tokio's own timers: `Sleep` futures on the runtime's wheel and paused clock. A tick is 1 ms.
//!
//! Each `Sleep` is polled once, which places it on the wheel. Its waker only counts; no task runs.
//! `tokio::time::advance` moves the time, and turns the runtime once per call; W3e measures this.
//! In W5 the runtime goes from timer to timer, because its paused clock moves on by itself when
//! nothing is left to do.

use crate::inputs::{Inputs, XorShift};
use crate::measure::{allocated, Repetition, Stopwatch};
use std::cell::{Cell, RefCell};
use std::future::{poll_fn, Future};
use std::pin::Pin;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{advance, sleep_until, Duration, Instant, Sleep};

thread_local! {
    static FIRED: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
    static LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
    static MAIN: RefCell<Option<Waker>> = const { RefCell::new(None) };
}

/// The waker of timer `index`. It remembers that the timer fired, and wakes the program after the
/// last timer.
fn waker(index: usize) -> Waker {
    const TABLE: RawWakerVTable =
        RawWakerVTable::new(|data| RawWaker::new(data, &TABLE), wake, wake, |_| ());
    fn wake(data: *const ()) {
        FIRED.with_borrow_mut(|fired| fired.push(data as usize as u32));
        LEFT.set(LEFT.get() - 1);
        if LEFT.get() == 0 {
            MAIN.with_borrow(|main| main.as_ref().unwrap().wake_by_ref());
        }
    }
    unsafe { Waker::from_raw(RawWaker::new(index as *const (), &TABLE)) }
}

struct Sleeps {
    start: Instant,
    slots: Box<[Option<Sleep>]>, // never moved while a Sleep is in one
}

impl Sleeps {
    fn new(n: usize) -> Sleeps {
        FIRED.with_borrow_mut(|fired| {
            fired.clear();
            fired.reserve(n);
        });
        LEFT.set(usize::MAX);
        Sleeps {
            start: Instant::now(),
            slots: std::iter::repeat_with(|| None).take(n).collect(),
        }
    }

    fn slot(&mut self, index: usize) -> Pin<&mut Option<Sleep>> {
        unsafe { Pin::new_unchecked(&mut self.slots[index]) }
    }

    fn at(&self, tick: u64) -> Instant {
        self.start + Duration::from_millis(tick)
    }

    fn arm(&mut self, index: usize) {
        let waker = waker(index);
        let poll = self
            .slot(index)
            .as_pin_mut()
            .unwrap()
            .poll(&mut Context::from_waker(&waker));
        assert!(poll.is_pending());
    }

    fn schedule(&mut self, index: usize, tick: u64) {
        let deadline = self.at(tick);
        self.slot(index).set(Some(sleep_until(deadline)));
        self.arm(index);
    }

    fn cancel(&mut self, index: usize) {
        self.slot(index).set(None);
    }

    fn reschedule(&mut self, index: usize, tick: u64) {
        let deadline = self.at(tick);
        self.slot(index).as_pin_mut().unwrap().reset(deadline);
    }

    fn schedule_all(&mut self, now: u64, delays: &[u32]) {
        for (i, &delay) in delays.iter().enumerate() {
            self.schedule(i, now + u64::from(delay));
        }
    }

    fn fired(&self) -> usize {
        FIRED.with_borrow(|fired| fired.len())
    }
}

fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
}

async fn tick() {
    advance(Duration::from_millis(1)).await;
}

pub fn schedule_and_cancel(inputs: &Inputs) -> (f64, f64) {
    runtime().block_on(async {
        let mut sleeps = Sleeps::new(inputs.len());
        let (mut scheduling, mut cancelling) = (0.0, 0.0);
        let mut now = 0;
        let mut warm = false;
        let mut repetition = Repetition::of(inputs.len());
        loop {
            let watch = Stopwatch::start();
            sleeps.schedule_all(now, &inputs.delays);
            let scheduled = watch.nanoseconds();
            let watch = Stopwatch::start();
            for &i in &inputs.random_order {
                sleeps.cancel(i as usize);
            }
            let cancelled = watch.nanoseconds();
            advance(Duration::from_millis(65_536)).await;
            now += 65_536;
            if warm {
                scheduling += scheduled;
                cancelling += cancelled;
                if !repetition.again() {
                    break;
                }
            }
            warm = true;
        }
        assert_eq!(sleeps.fired(), 0);
        (
            scheduling / repetition.operations,
            cancelling / repetition.operations,
        )
    })
}

pub fn fire_all(inputs: &Inputs) -> f64 {
    let mut repetition = Repetition::of(inputs.len());
    let mut time = 0.0;
    loop {
        runtime().block_on(async {
            let mut sleeps = Sleeps::new(inputs.len());
            sleeps.schedule_all(0, &inputs.delays);
            let watch = Stopwatch::start();
            for _ in 0..60_001 {
                tick().await;
                if sleeps.fired() == inputs.len() {
                    break;
                }
            }
            time += watch.nanoseconds();
            assert_eq!(sleeps.fired(), inputs.len());
        });
        if !repetition.again() {
            return time / repetition.operations;
        }
    }
}

pub fn empty_tick(inputs: &Inputs) -> f64 {
    const TICKS: u64 = 200_000;
    runtime().block_on(async {
        let mut sleeps = Sleeps::new(inputs.len());
        for (i, &delay) in inputs.delays.iter().enumerate() {
            sleeps.schedule(i, 4_000_000_000 - u64::from(delay));
        }
        let watch = Stopwatch::start();
        for _ in 0..TICKS {
            tick().await;
        }
        assert_eq!(sleeps.fired(), 0);
        watch.nanoseconds() / TICKS as f64
    })
}

pub fn keepalive(inputs: &Inputs) -> f64 {
    let n = inputs.len();
    let per_tick = (n / 10_000).max(1);
    runtime().block_on(async {
        let mut sleeps = Sleeps::new(n);
        for i in 0..n {
            sleeps.schedule(i, 30_000);
        }
        let mut random = XorShift::new();
        let mut fired = Vec::new();
        let watch = Stopwatch::start();
        for now in 1..=60_000 {
            tick().await;
            FIRED.with_borrow_mut(|each| std::mem::swap(&mut fired, each));
            for index in fired.drain(..) {
                sleeps.reschedule(index as usize, now + 30_000);
                sleeps.arm(index as usize);
            }
            for _ in 0..per_tick {
                sleeps.reschedule(random.index(n), now + 30_000);
            }
        }
        watch.nanoseconds() / (per_tick * 60_000) as f64
    })
}

pub fn wide_range(inputs: &Inputs) -> f64 {
    let n = inputs.len();
    runtime().block_on(async {
        let mut sleeps = Sleeps::new(n);
        let watch = Stopwatch::start();
        sleeps.schedule_all(0, &inputs.wide_delays);
        LEFT.set(n);
        poll_fn(|context| {
            MAIN.set(Some(context.waker().clone()));
            if LEFT.get() == 0 {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
        assert_eq!(sleeps.fired(), n);
        watch.nanoseconds() / n as f64
    })
}

pub fn memory(inputs: &Inputs) -> f64 {
    runtime().block_on(async {
        let before = allocated();
        let mut sleeps = Sleeps::new(inputs.len());
        let list = 4.0 * inputs.len() as f64; // FIRED, which is ours and not tokio's
        sleeps.schedule_all(0, &inputs.delays);
        (allocated() - before - list)
            .max((std::mem::size_of::<Option<Sleep>>() * inputs.len()) as f64)
            / inputs.len() as f64
    })
}

pub fn churn(inputs: &Inputs) -> f64 {
    let n = inputs.len();
    let per_tick = (n / 10_000).max(1);
    runtime().block_on(async {
        let mut sleeps = Sleeps::new(n);
        sleeps.schedule_all(0, &inputs.delays);
        let mut random = XorShift::new();
        let mut fired = Vec::new();
        let watch = Stopwatch::start();
        for now in 1..=20_000 {
            tick().await;
            FIRED.with_borrow_mut(|each| std::mem::swap(&mut fired, each));
            for index in fired.drain(..) {
                sleeps.schedule(index as usize, now + random.delay());
            }
            for _ in 0..per_tick {
                let index = random.index(n);
                sleeps.cancel(index);
                sleeps.schedule(index, now + random.delay());
            }
        }
        watch.nanoseconds() / (per_tick * 20_000) as f64
    })
}
