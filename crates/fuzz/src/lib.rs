//! Fuzz: every decoder with random and mutated bytes.
//!
//! A [`Target`] takes any bytes and must not panic; what it decodes, it must also be able to write down
//! and read again. [`run`] feeds it noise and mutations of good examples for a bounded time, with the
//! stable compiler and no tool to install. Does not know what the bytes are for.

use base::Prng;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Something that takes any bytes.
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// Takes the bytes; a panic is a finding.
    pub run: fn(&[u8]),
    /// Good inputs to begin with.
    pub examples: Vec<Vec<u8>>,
    /// Makes checksums right after a mutation, since a decoder that sees only wrong ones is not tested.
    pub mend: fn(&mut [u8]),
    /// Longest input, bytes.
    pub bytes_max: usize,
}

/// How long each target is tried: `MILLRACE_FUZZ_SECONDS`, else one second.
pub fn limit() -> Duration {
    let seconds = std::env::var("MILLRACE_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(1))
}

/// Inputs that each target takes, however long that is.
const INPUTS_MIN: u64 = 256;

/// Tries a target for `time`, and with 256 inputs at least; returns how many it took. The inputs follow from `seed`.
/// Panics with the input in hex at the first finding.
pub fn run(target: &Target, seed: u64, time: Duration) -> u64 {
    let (mut random, began, mut count) = (Prng::new(seed), Instant::now(), 0);
    let mut input = Vec::new();
    while began.elapsed() < time || count < INPUTS_MIN {
        for _ in 0..16 {
            make(target, &mut random, &mut input);
            if catch_unwind(AssertUnwindSafe(|| (target.run)(&input))).is_err() {
                let hex = base::codec::hex(&input);
                panic!("{} panics at input {count} of seed {seed}: {hex}", target.name);
            }
            count += 1;
        }
    }
    count
}

/// The next input: noise, or an example with a few changes.
fn make(target: &Target, random: &mut Prng, input: &mut Vec<u8>) {
    input.clear();
    if target.examples.is_empty() || random.chance(1, 8) {
        input.resize(random.below(target.bytes_max as u64 + 1) as usize, 0);
        random.fill(input);
    } else {
        let example: &Vec<u8> = random.pick(&target.examples);
        input.extend_from_slice(example);
    }
    for _ in 0..random.below(6) {
        mutate(random, input, target.bytes_max);
    }
    if random.chance(7, 8) {
        (target.mend)(input);
    }
}

/// Numbers on which decoders stumble.
const ODD: [u64; 10] = [0, 1, 0x7f, 0x80, 0xff, 0xffff, 1 << 20, u32::MAX as u64, 1 << 63, u64::MAX];

fn mutate(random: &mut Prng, input: &mut Vec<u8>, bytes_max: usize) {
    if input.is_empty() {
        input.push(random.next_u64() as u8);
        return;
    }
    let at = random.below(input.len() as u64) as usize;
    match random.below(6) {
        0 => input[at] ^= 1 << random.below(8),
        1 => input[at] = random.next_u64() as u8,
        2 => {
            // An odd number of 1, 2, 4 or 8 bytes, in either byte order.
            let width = (1usize << random.below(4)).min(input.len() - at);
            let number = random.pick(&ODD).to_le_bytes();
            input[at..at + width].copy_from_slice(&number[..width]);
            if random.chance(1, 2) {
                input[at..at + width].reverse();
            }
        }
        3 => input.truncate(at),
        4 => {
            let more = random.below(64).min((bytes_max - input.len().min(bytes_max)) as u64) as usize;
            let mut noise = vec![0; more];
            random.fill(&mut noise);
            input.splice(at..at, noise);
        }
        _ => {
            let to = at + random.below((input.len() - at) as u64 + 1) as usize;
            let copy = input[at..to.min(at + bytes_max.saturating_sub(input.len()))].to_vec();
            input.extend(copy);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(run: fn(&[u8]), examples: &[&[u8]]) -> Target {
        let examples = examples.iter().map(|e| e.to_vec()).collect();
        Target { name: "planted", run, examples, mend: |_| {}, bytes_max: 64 }
    }

    #[test]
    fn a_planted_bug_is_found_and_its_input_shown() {
        let planted = target(
            |bytes| assert!(!(bytes.len() > 7 && bytes.starts_with(b"GOOD") && bytes[6] == 0xff)),
            &[b"GOOD    "],
        );
        let found = catch_unwind(AssertUnwindSafe(|| run(&planted, 1, Duration::from_secs(20))));
        let why = found.expect_err("the planted bug is not found");
        let why = why.downcast_ref::<String>().expect("a sentence");
        assert!(why.contains("planted panics at input") && why.contains(": 474f4f44"), "{why}");
    }

    #[test]
    fn the_same_seed_makes_the_same_inputs_within_the_bound() {
        let target = target(|_| {}, &[b"an example of a good input"]);
        let inputs = |seed| {
            let mut random = Prng::new(seed);
            let mut all = Vec::new();
            for _ in 0..2000 {
                let mut input = Vec::new();
                make(&target, &mut random, &mut input);
                assert!(input.len() <= target.bytes_max, "{}", input.len());
                all.push(input);
            }
            all
        };
        assert_eq!(inputs(7), inputs(7));
        assert_ne!(inputs(7), inputs(8));
    }
}
