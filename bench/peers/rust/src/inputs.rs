//! The inputs of all systems: the delays and orders that `carillon_bench_wheel --inputs` wrote, and
//! the random numbers of W4 and W7.

use std::io;

pub struct Inputs {
    pub delays: Vec<u32>,      // 1 .. 60 000, uniform
    pub wide_delays: Vec<u32>, // 1 .. 2.6e9, log-uniform
    pub random_order: Vec<u32>,
}

impl Inputs {
    pub fn read(file: &str) -> io::Result<Inputs> {
        let bytes = std::fs::read(file)?;
        let words: Vec<u32> = bytes
            .chunks_exact(4)
            .map(|word| u32::from_ne_bytes(word.try_into().unwrap()))
            .collect();
        let n = *words.first().unwrap_or(&0) as usize;
        if n == 0 || words.len() != 1 + 3 * n {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("{file}: not what carillon_bench_wheel --inputs writes"),
            ));
        }
        Ok(Inputs {
            delays: words[1..=n].to_vec(),
            wide_delays: words[1 + n..=2 * n].to_vec(),
            random_order: words[1 + 2 * n..].to_vec(),
        })
    }

    pub fn len(&self) -> usize {
        self.delays.len()
    }
}

/// Marsaglia's xorshift, as in bench/wheel/inputs.h.
pub struct XorShift(u64);

impl XorShift {
    pub fn new() -> XorShift {
        XorShift(88172645463325252)
    }

    pub fn index(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 32) as usize * n) >> 32
    }

    pub fn delay(&self) -> u64 {
        1 + ((self.0 & 0xffff_ffff) * 60_000 >> 32)
    }
}
