//! How an NVMe drive says it is: the SMART / Health Information log page (NVM Express Base Specification, log page 02h).

use crate::recording::{Missing, Recording};
use serde::Serialize;

/// The bytes of the page that mean something; the rest is reserved.
pub(crate) const USED: usize = 232;

/// What a drive warns of: the bits of its critical warning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Warning {
    /// Spare blocks are fewer than its own limit.
    Spare,
    /// It is warmer or colder than it should be.
    Temperature,
    /// It is not as reliable as it was.
    Reliability,
    /// It takes no more writes.
    ReadOnly,
    /// What keeps its cache over a power cut has failed.
    Backup,
    /// Its persistent memory region takes no more writes.
    Region,
}

impl Warning {
    const ALL: [Warning; 6] = [
        Warning::Spare,
        Warning::Temperature,
        Warning::Reliability,
        Warning::ReadOnly,
        Warning::Backup,
        Warning::Region,
    ];
}

/// Why a drive should be replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "code", content = "fields", rename_all = "snake_case")]
#[allow(missing_docs, reason = "fields are what their names say")]
pub enum Wear {
    /// Its spare blocks run out: percent that are left, and its own limit.
    SpareLow { left: Option<u8>, limit: Option<u8> },
    /// It takes no more writes. `used`: percent of its rated life.
    ReadOnly { used: u8 },
    /// It is not as reliable as it was.
    Unreliable { used: u8 },
    /// Its rated life is used, percent.
    LifeUsed { used: u8 },
    /// More of it than it can tell.
    LifeFarOver,
}

/// How a drive says it is.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Health {
    /// What it warns of.
    pub warnings: Vec<Warning>,
    /// Degrees Celsius, as the drive itself has them.
    pub celsius: Option<f32>,
    /// Part of its rated life that is used, percent: 100 and more when it is over (255: at least that).
    pub used: u8,
    /// Spare blocks that are left, percent.
    pub spare: Option<u8>,
    /// It warns when fewer are left, percent.
    pub spare_limit: Option<u8>,
    /// Bytes that hosts wrote, ever.
    pub written: f64,
    /// Hours with power.
    pub hours: u64,
    /// Data that it could not read or keep whole, times.
    pub media_errors: u64,
    /// Minutes at or above the temperature from which it warns.
    pub hot_minutes: u32,
    /// Seconds in which it made itself slower because of heat.
    pub throttled_seconds: u64,
}

impl Health {
    /// Reads a page as a recording has it: hexadecimal.
    pub(crate) fn decode(text: &str) -> Option<Self> {
        let text = text.trim().as_bytes();
        let digit = |at: usize| char::from(*text.get(at)?).to_digit(16);
        let page: Option<Vec<u8>> =
            (0..USED).map(|i| Some((digit(2 * i)? << 4 | digit(2 * i + 1)?) as u8)).collect();
        let page = page?;
        let half = |at: usize| u16::from_le_bytes([page[at], page[at + 1]]);
        let word = |at: usize| u32::from_le_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]]);
        let long = |at: usize| {
            let number = page[at..at + 16].iter().rev().fold(0u128, |n, b| n << 8 | u128::from(*b));
            u64::try_from(number).unwrap_or(u64::MAX)
        };
        let percent = |at: usize| Some(page[at]).filter(|n| *n <= 100);
        // A drive that fills the page with zeroes or ones tells nothing.
        if page.iter().all(|b| *b == page[0]) {
            return None;
        }
        let celsius = f32::from(half(1)) - 273.0;
        Some(Self {
            warnings: (0..6).filter(|bit| page[0] >> bit & 1 == 1).map(|bit| Warning::ALL[bit]).collect(),
            celsius: (-60.0..200.0).contains(&celsius).then_some(celsius),
            used: page[5],
            spare: percent(3),
            spare_limit: percent(4),
            // The unit is a thousand blocks of 512 bytes.
            written: long(48) as f64 * 512_000.0,
            hours: long(128),
            media_errors: long(160),
            hot_minutes: word(192),
            throttled_seconds: u64::from(word(224)) + u64::from(word(228)),
        })
    }

    /// Whether it warns of this.
    pub fn warns(&self, of: Warning) -> bool {
        self.warnings.contains(&of)
    }

    /// Why it should be replaced, if it should.
    pub fn worn(&self) -> Option<Wear> {
        let used = self.used;
        if self.warns(Warning::Spare) {
            let known = self.spare.zip(self.spare_limit);
            return Some(Wear::SpareLow { left: known.map(|k| k.0), limit: known.map(|k| k.1) });
        }
        if self.warns(Warning::ReadOnly) {
            return Some(Wear::ReadOnly { used });
        }
        if self.warns(Warning::Reliability) {
            return Some(Wear::Unreliable { used });
        }
        (used >= 100).then_some(if used == u8::MAX { Wear::LifeFarOver } else { Wear::LifeUsed { used } })
    }
}

/// Why it is not known how a controller is, though it was asked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Silent {
    /// Asking needs root.
    NeedsRoot,
    /// It did not answer.
    NoAnswer,
    /// What it answered is no health log.
    NoLog,
}

/// How a controller says it is; an error is why that is not known, though it was asked. A recording of before, or a drive
/// of another kind, has neither.
pub(crate) fn of(from: &Recording, controller: &str) -> Result<Option<Health>, Silent> {
    let path = format!("/nvme/{controller}/health");
    match from.missing(&path) {
        Some(Missing::Refused) => return Err(Silent::NeedsRoot),
        Some(Missing::Broken) => return Err(Silent::NoAnswer),
        Some(Missing::Absent) | None => {}
    }
    let Some(text) = from.text(&path) else { return Ok(None) };
    Health::decode(text).map(Some).ok_or(Silent::NoLog)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(change: impl Fn(&mut [u8])) -> String {
        let mut page = [0u8; USED];
        (page[1], page[2]) = (0x37, 0x01);
        (page[3], page[4], page[5]) = (100, 10, 7);
        change(&mut page);
        crate::recording::hex(&page)
    }

    #[test]
    fn a_page_is_read_as_the_specification_has_it() {
        let text = page(|p| {
            p[48..56].copy_from_slice(&2_000_000u64.to_le_bytes());
            p[128..136].copy_from_slice(&8760u64.to_le_bytes());
            p[160] = 3;
            p[192] = 90;
            (p[224], p[228]) = (40, 2);
        });
        let health = Health::decode(&text).expect("a page");
        assert_eq!(
            health,
            Health {
                warnings: Vec::new(),
                celsius: Some(38.0),
                used: 7,
                spare: Some(100),
                spare_limit: Some(10),
                written: 1.024e12,
                hours: 8760,
                media_errors: 3,
                hot_minutes: 90,
                throttled_seconds: 42,
            }
        );
        assert_eq!(health.worn(), None);
    }

    #[test]
    fn wear_is_told_by_what_the_drive_says() {
        let worn = |change: &dyn Fn(&mut [u8])| Health::decode(&page(change)).and_then(|h| h.worn());
        assert_eq!(worn(&|p| p[5] = 99), None);
        assert_eq!(worn(&|p| p[5] = 104), Some(Wear::LifeUsed { used: 104 }));
        assert_eq!(worn(&|p| p[5] = 255), Some(Wear::LifeFarOver));
        let low = Wear::SpareLow { left: Some(4), limit: Some(10) };
        assert_eq!(worn(&|p| (p[0], p[3]) = (1, 4)), Some(low));
        assert_eq!(worn(&|p| p[0] = 8), Some(Wear::ReadOnly { used: 7 }));
        // Heat is no wear.
        assert_eq!(worn(&|p| p[0] = 2), None);
    }

    #[test]
    fn what_is_no_page_is_none() {
        let whole = page(|_| ());
        for text in
            ["", "00", "zz", &"0".repeat(2 * USED), &"f".repeat(2 * USED), &whole[..2 * USED - 1], "é"]
        {
            assert_eq!(Health::decode(text), None, "{text}");
        }
        // Nonsense in a field is not shown as a number.
        let odd = Health::decode(&page(|p| (p[1], p[2], p[3]) = (0, 0, 200))).expect("a page");
        assert_eq!((odd.celsius, odd.spare), (None, None));
        let full = Health::decode(&page(|p| p[128..144].fill(0xff))).expect("a page");
        assert_eq!(full.hours, u64::MAX);
    }
}
