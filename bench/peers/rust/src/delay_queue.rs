//! tokio-util's `DelayQueue`, a wheel that owns its timers and names them by keys, on the runtime's
//! paused clock.

use crate::inputs::{Inputs, XorShift};
use crate::measure::{allocated, Repetition, Stopwatch};
use std::task::{Context, Poll, Waker};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{advance, Duration, Instant};
use tokio_util::time::delay_queue::{DelayQueue, Key};

/// The payload of a timer: 16 bytes. The second half is the number of the timer.
type Payload = [u64; 2];

struct Timers {
    start: Instant,
    queue: DelayQueue<Payload>,
    keys: Vec<Option<Key>>,
}

impl Timers {
    fn new(n: usize) -> Timers {
        Timers {
            start: Instant::now(),
            queue: DelayQueue::with_capacity(n),
            keys: vec![None; n],
        }
    }

    fn at(&self, tick: u64) -> Instant {
        self.start + Duration::from_millis(tick)
    }

    fn schedule(&mut self, index: usize, tick: u64) {
        self.keys[index] = Some(self.queue.insert_at([0, index as u64], self.at(tick)));
    }

    fn cancel(&mut self, index: usize) {
        self.queue.remove(&self.keys[index].take().unwrap());
    }

    fn reschedule(&mut self, index: usize, tick: u64) {
        let at = self.at(tick);
        self.queue.reset_at(&self.keys[index].unwrap(), at);
    }

    fn schedule_all(&mut self, now: u64, delays: &[u32]) {
        for (i, &delay) in delays.iter().enumerate() {
            self.schedule(i, now + u64::from(delay));
        }
    }

    /// Removes the timers that are due, and calls `fire` for each.
    fn expire(&mut self, mut fire: impl FnMut(usize)) {
        let mut context = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(expired)) = self.queue.poll_expired(&mut context) {
            fire(expired.into_inner()[1] as usize);
        }
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
        let (mut scheduling, mut cancelling) = (0.0, 0.0);
        let mut now = 0;
        let mut warm = false;
        let mut repetition = Repetition::of(inputs.len());
        loop {
            // A new queue each time. In a used one, inserting would follow the random order of the
            // cancels, because the queue's slab first reuses the entry that was freed last.
            let mut timers = Timers::new(inputs.len());
            timers.start -= Duration::from_millis(now);
            timers.schedule_all(now, &inputs.delays);
            for i in (0..inputs.len()).rev() {
                timers.cancel(i);
            }
            let watch = Stopwatch::start();
            timers.schedule_all(now, &inputs.delays);
            let scheduled = watch.nanoseconds();
            let keys: Vec<Key> = inputs
                .random_order
                .iter()
                .map(|&i| timers.keys[i as usize].unwrap())
                .collect();
            let watch = Stopwatch::start();
            for key in &keys {
                timers.queue.remove(key);
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
            let mut timers = Timers::new(inputs.len());
            timers.schedule_all(0, &inputs.delays);
            let mut fired = 0;
            let watch = Stopwatch::start();
            for _ in 0..60_002 {
                tick().await;
                timers.expire(|_| fired += 1);
                if fired == inputs.len() {
                    break;
                }
            }
            time += watch.nanoseconds();
            assert_eq!(fired, inputs.len());
        });
        if !repetition.again() {
            return time / repetition.operations;
        }
    }
}

pub fn keepalive(inputs: &Inputs) -> f64 {
    let n = inputs.len();
    let per_tick = (n / 10_000).max(1);
    runtime().block_on(async {
        let mut timers = Timers::new(n);
        for i in 0..n {
            timers.schedule(i, 30_000);
        }
        let mut random = XorShift::new();
        let mut fired = Vec::new();
        let watch = Stopwatch::start();
        for now in 1..=60_000 {
            tick().await;
            timers.expire(|index| fired.push(index));
            for index in fired.drain(..) {
                timers.schedule(index, now + 30_000);
            }
            for _ in 0..per_tick {
                timers.reschedule(random.index(n), now + 30_000);
            }
        }
        watch.nanoseconds() / (per_tick * 60_000) as f64
    })
}

pub fn memory(inputs: &Inputs) -> f64 {
    runtime().block_on(async {
        let before = allocated();
        let mut timers = Timers::new(inputs.len());
        timers.schedule_all(0, &inputs.delays);
        let keys = std::mem::size_of::<Option<Key>>() * inputs.len();
        (allocated() - before - keys as f64) / inputs.len() as f64
            - std::mem::size_of::<Payload>() as f64
    })
}

pub fn churn(inputs: &Inputs) -> f64 {
    let n = inputs.len();
    let per_tick = (n / 10_000).max(1);
    runtime().block_on(async {
        let mut timers = Timers::new(n);
        timers.schedule_all(0, &inputs.delays);
        let mut random = XorShift::new();
        let mut fired = Vec::new();
        let watch = Stopwatch::start();
        for now in 1..=20_000 {
            tick().await;
            timers.expire(|index| fired.push(index));
            for index in fired.drain(..) {
                timers.schedule(index, now + random.delay());
            }
            for _ in 0..per_tick {
                let index = random.index(n);
                timers.cancel(index);
                timers.schedule(index, now + random.delay());
            }
        }
        watch.nanoseconds() / (per_tick * 20_000) as f64
    })
}
