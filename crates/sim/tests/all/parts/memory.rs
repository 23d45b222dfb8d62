//! Memory of simulated machines.

use base::{Memory, Slice};
use sim::memory::SimMemory;

const START: u64 = 1 << 32;
const LEN: u32 = 40_000;

#[test]
fn memory_that_another_machine_had_is_zeroes_again() {
    let mut first = SimMemory::new(START, LEN.into());
    let place = first.bytes(Slice::new(START, LEN)).as_ptr();
    // Within a page, over the end of one, the last byte of all, and what was copied.
    for (at, len) in [(1, 1), (8190, 4), (u64::from(LEN) - 1, 1)] {
        first.bytes_mut(Slice::new(START + at, len)).fill(0xa5);
    }
    first.copy(Slice::new(START + 8190, 4), Slice::new(START + 20_478, 4));
    assert_eq!(first.bytes(Slice::new(START + 20_478, 4)), [0xa5; 4]);
    drop(first);
    let second = SimMemory::new(7 * START, LEN.into());
    let bytes = second.bytes(Slice::new(7 * START, LEN));
    assert_eq!(bytes.as_ptr(), place, "it is the same memory");
    assert_eq!(bytes.iter().position(|b| *b != 0), None);
}

#[test]
fn machines_that_live_at_once_have_memory_of_their_own() {
    drop(SimMemory::new(0, 100));
    let mut all: Vec<SimMemory> = (0..3).map(|_| SimMemory::new(0, 100)).collect();
    for (byte, memory) in (1_u8..).zip(&mut all) {
        memory.bytes_mut(Slice::new(0, 100)).fill(byte);
    }
    for (byte, memory) in (1_u8..).zip(&all) {
        assert_eq!(memory.bytes(Slice::new(0, 100)), [byte; 100]);
    }
}

#[test]
fn memory_larger_than_usual_is_zeroes_to_its_last_byte() {
    let len = (35 << 20) - 1;
    for _ in 0..2 {
        let mut memory = SimMemory::new(0, len);
        let last = memory.bytes_mut(Slice::new(len - 1, 1));
        assert_eq!(last, [0]);
        last[0] = 1;
    }
}
