//! The clocks of alarms.

use api::Time;
use std::time::{Duration, Instant, SystemTime};

/// A moment, by the clock that people read and by one that nobody sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Now {
    /// Of people.
    pub at: Time,
    /// Minute of the day in the machine's time zone.
    pub minute: u16,
    /// Since the start.
    pub run: Duration,
}

impl Now {
    /// This moment, of a thread that began then.
    pub fn since(begin: Instant) -> Self {
        let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs());
        let minute = jiff::Timestamp::from_second(seconds as i64).map_or(0, |at| {
            let local = at.to_zoned_datetime(jiff::tz::TimeZone::system());
            local.hour() as u16 * 60 + local.minute() as u16
        });
        Self { at: Time(seconds), minute, run: begin.elapsed() }
    }
}
