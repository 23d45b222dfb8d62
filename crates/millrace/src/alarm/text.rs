//! Messages as people read them.

use api::{Alarm, AlarmMessage, AlarmState, Time};
use head::order::EventLine;

/// An event as an alarm.
pub fn of_event(line: &EventLine) -> Alarm {
    let json = serde_json::to_value(&line.event).expect("plain data");
    Alarm {
        state: AlarmState::Happened,
        level: line.weight,
        at: Time(line.at),
        since: None,
        subject: line.what.clone(),
        code: line.event.code(),
        fields: json.get("fields").cloned().unwrap_or_default(),
        message: crate::words::event(&line.event),
        next: None,
    }
}

/// The weightiest alarm, of these the first; what is over comes last.
pub fn worst(alarms: &[Alarm]) -> Option<&Alarm> {
    alarms.iter().rev().max_by_key(|a| (a.state != AlarmState::Recovered, a.level))
}

/// The word that says how bad it is, or that it is over.
fn word(alarm: &Alarm) -> &'static str {
    match alarm.state {
        AlarmState::Recovered | AlarmState::Test => alarm.state.word(),
        AlarmState::Happened | AlarmState::Raised | AlarmState::Repeated => alarm.level.word(),
    }
}

/// All alarms in one line, without the machine.
fn line(alarms: &[Alarm]) -> String {
    let Some(worst) = worst(alarms) else { return String::new() };
    let more = match alarms.len() {
        1 => String::new(),
        n => format!(" (and {} more)", n - 1),
    };
    format!("{}: {}: {}{more}", word(worst), worst.subject, worst.message)
}

/// A message of these alarms.
pub fn message(machine: &str, serial: &str, alarms: Vec<Alarm>, lost: u64) -> AlarmMessage {
    AlarmMessage {
        text: format!("{machine}: {}", line(&alarms)),
        version: 1,
        level: alarms.iter().map(|a| a.level).max().unwrap_or_default(),
        machine: machine.into(),
        serial: serial.into(),
        alarms,
        lost,
    }
}

/// The subject of a mail.
pub fn subject(message: &AlarmMessage) -> String {
    format!("[millrace {}] {}", message.machine, line(&message.alarms))
}

/// The body of a mail.
pub fn body(message: &AlarmMessage) -> String {
    let mut out = String::new();
    for alarm in &message.alarms {
        out += &format!("{}  {}  {}  {}\n", alarm.at, alarm.level.word(), alarm.state.word(), alarm.code);
        out += &format!("    {}: {}\n", alarm.subject, alarm.message);
        if let Some(since) = alarm.since.filter(|since| *since != alarm.at) {
            out += &format!("    Since: {since}\n");
        }
        if let Some(next) = &alarm.next {
            out += &format!("    Next: {next}\n");
        }
        out.push('\n');
    }
    if message.lost > 0 {
        out += &format!("{} alarms before these found no room: millrace events has them\n\n", message.lost);
    }
    out + &format!("Millrace on {}, system {}\n", message.machine, message.serial)
}

/// A word that no other message has.
pub fn digest(message: &AlarmMessage) -> String {
    use sha2::{Digest, Sha256};
    let json = serde_json::to_vec(message).expect("plain data");
    base::codec::hex(&Sha256::digest(json)[..12])
}

#[cfg(test)]
mod tests {
    use super::super::tests::message;
    use super::*;

    #[test]
    fn a_message_begins_with_the_worst() {
        let m = message();
        let mut alarms = m.alarms.clone();
        alarms.insert(
            0,
            Alarm { level: api::Weight::Warning, subject: "host esx1".into(), ..alarms[0].clone() },
        );
        alarms.insert(0, Alarm { state: AlarmState::Recovered, ..alarms[1].clone() });
        let text = super::message("san1", "M1", alarms, 0).text;
        assert_eq!(text, "san1: error: pool tank: a leg is out (and 2 more)");
        let over = vec![Alarm { state: AlarmState::Recovered, ..m.alarms[0].clone() }];
        assert_eq!(super::message("san1", "M1", over, 0).text, "san1: recovered: pool tank: a leg is out");
        assert!(body(&m).contains("    Next: millrace drive ls\n"), "{}", body(&m));
        assert_ne!(digest(&m), digest(&super::message("san2", "M1", m.alarms.clone(), 0)));
    }
}
