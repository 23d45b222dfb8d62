//! Mail: SMTP (RFC 5321) to a relay, with STARTTLS (RFC 3207) and AUTH PLAIN (RFC 4616) where they are configured.
//!
//! Promise: a password is sent under TLS alone, and nothing of an alarm can end a header or the mail.

use super::stream::{Stream, connect, cover};
use super::{plain, quoted, secret};
use crate::alarm::text;
use crate::config::alarm::{Cover, Mail, ReceiverConfig};
use api::AlarmMessage;
use finding::AlarmFault;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

/// Longest line of an answer, and most lines of one.
const LINE_MAX: u64 = 2048;
const LINES_MAX: usize = 100;

/// Hands a mail to the relay; its answer to the whole.
pub async fn send(
    mail: &Mail,
    config: &ReceiverConfig,
    message: &AlarmMessage,
) -> Result<String, AlarmFault> {
    let me = domain(&message.machine);
    let password = config.password_file.as_deref().map(secret).transpose()?;
    let stream = connect(&mail.host, mail.port).await?;
    let stream: Box<dyn Stream> = match mail.cover {
        Cover::Tls => cover(stream, &mail.host, config.ca_file.clone()).await?,
        Cover::No | Cover::StartTls => Box::new(stream),
    };
    let mut talk = Talk(BufReader::new(stream));
    talk.expect(220).await?;
    talk.hello(me).await?;
    if mail.cover == Cover::StartTls {
        talk.say("STARTTLS").await?;
        talk.expect(220).await?;
        // Whatever was sent behind the answer is of nobody who is known yet.
        let plain = talk.0.into_inner();
        talk = Talk(BufReader::new(cover(plain, &mail.host, config.ca_file.clone()).await?));
        talk.hello(me).await?;
    }
    if let (Some(user), Some(password)) = (&config.user, password) {
        talk.say(&format!("AUTH PLAIN {}", base64(format!("\0{user}\0{password}").as_bytes()))).await?;
        talk.expect(235).await?;
    }
    let from = mail.from.clone().unwrap_or_else(|| format!("millrace@{me}"));
    talk.say(&format!("MAIL FROM:<{from}>")).await?;
    talk.expect(250).await?;
    for to in &mail.to {
        talk.say(&format!("RCPT TO:<{to}>")).await?;
        talk.expect(250).await?;
    }
    talk.say("DATA").await?;
    talk.expect(354).await?;
    talk.say(&letter(&from, &mail.to, me, message)).await?;
    talk.say(".").await?;
    let answer = talk.expect(250).await?;
    // It has the mail: how it takes a farewell does not matter.
    let _ = talk.say("QUIT").await;
    Ok(answer)
}

/// A dialogue with a relay.
struct Talk(BufReader<Box<dyn Stream>>);

fn broken(e: &std::io::Error) -> AlarmFault {
    AlarmFault::BrokenOff { error: plain(e) }
}

impl Talk {
    async fn say(&mut self, line: &str) -> Result<(), AlarmFault> {
        let line = format!("{line}\r\n");
        self.0.write_all(line.as_bytes()).await.map_err(|e| broken(&e))?;
        self.0.flush().await.map_err(|e| broken(&e))
    }

    /// The next answer: its code, and its lines.
    async fn answer(&mut self) -> Result<(u16, Vec<String>), AlarmFault> {
        let odd =
            |line: &str| AlarmFault::BrokenOff { error: format!("it does not speak SMTP: {}", quoted(line)) };
        let mut lines = Vec::new();
        loop {
            let mut line = Vec::new();
            let read =
                (&mut self.0).take(LINE_MAX).read_until(b'\n', &mut line).await.map_err(|e| broken(&e))?;
            if read == 0 {
                return Err(AlarmFault::BrokenOff { error: "it closed the connection".into() });
            }
            let line = String::from_utf8_lossy(&line).into_owned();
            let code: u16 = line.get(..3).and_then(|c| c.parse().ok()).ok_or_else(|| odd(&line))?;
            let goes_on = line.as_bytes().get(3) == Some(&b'-');
            lines.push(line.get(4..).unwrap_or_default().trim().to_string());
            if !goes_on {
                return Ok((code, lines));
            }
            if lines.len() > LINES_MAX {
                return Err(odd(&line));
            }
        }
    }

    /// The next answer, which is to have this code; its last line with it.
    async fn expect(&mut self, wanted: u16) -> Result<String, AlarmFault> {
        let (status, lines) = self.answer().await?;
        let answer = quoted(lines.last().map_or("", String::as_str));
        // The relay may pass it on.
        if status != wanted && (wanted, status) != (250, 251) {
            return Err(AlarmFault::Refused { status, answer });
        }
        Ok(format!("{status} {answer}"))
    }

    /// Greets.
    async fn hello(&mut self, me: &str) -> Result<(), AlarmFault> {
        self.say(&format!("EHLO {me}")).await?;
        if self.answer().await?.0 == 250 {
            return Ok(());
        }
        // An old relay knows the older word alone.
        self.say(&format!("HELO {me}")).await?;
        self.expect(250).await.map(drop)
    }
}

/// The machine's name as a domain.
fn domain(machine: &str) -> &str {
    let good =
        !machine.is_empty() && machine.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.".contains(&b));
    if good { machine } else { "localhost" }
}

/// The mail as it is sent, without the line that ends it. The body is base64, so that no line of it is long, or a dot.
fn letter(from: &str, to: &[String], me: &str, message: &AlarmMessage) -> String {
    let at = message.alarms.iter().map(|a| a.at.0).max().unwrap_or_default();
    let date = jiff::Timestamp::from_second(at as i64)
        .ok()
        .and_then(|t| jiff::fmt::rfc2822::to_string(&t.to_zoned_datetime(jiff::tz::TimeZone::UTC)).ok())
        .unwrap_or_default();
    let mut out =
        format!("From: {from}\r\nTo: {}\r\nSubject: {}\r\n", to.join(", "), header(&text::subject(message)));
    out += &format!("Date: {date}\r\nMessage-ID: <{}@{me}>\r\n", text::digest(message));
    out += "Auto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\n";
    out += "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n";
    let body = base64(text::body(message).replace('\n', "\r\n").as_bytes());
    let lines: Vec<&str> =
        body.as_bytes().chunks(76).map(|l| core::str::from_utf8(l).expect("ASCII")).collect();
    out + &lines.join("\r\n")
}

/// A header's text: as it is if it is short ASCII, else in encoded words (RFC 2047).
fn header(text: &str) -> String {
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    if text.is_ascii() && text.len() <= 900 && !text.contains("=?") {
        return text;
    }
    let mut words = vec![String::new()];
    for c in text.chars() {
        if words.last().map_or(0, String::len) + c.len_utf8() > 42 {
            words.push(String::new());
        }
        words.last_mut().expect("one").push(c);
    }
    let encoded: Vec<String> =
        words.iter().map(|w| format!("=?utf-8?B?{}?=", base64(w.as_bytes()))).collect();
    encoded.join("\r\n ")
}

/// RFC 4648 4.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |i: usize| u32::from(chunk.get(i).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let value = bits >> (18 - 6 * digit) & 63;
            out.push(if digit <= chunk.len() { char::from(DIGITS[value as usize]) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::message;
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        for (text, encoded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
        ] {
            assert_eq!(base64(text.as_bytes()), encoded);
        }
    }

    #[test]
    fn nothing_of_an_alarm_ends_a_header_or_the_mail() {
        let mut odd = message();
        odd.alarms[0].message = "a\r\nBcc: <x@y>\r\n.\r\nQUIT".into();
        odd.text = "one\r\nBcc: <x@y>".into();
        let letter = letter("a@b", &["c@d".into()], "san1", &odd);
        let (head, body) = letter.split_once("\r\n\r\n").expect("a body");
        assert!(!head.contains("\r\nBcc"), "{head}");
        assert!(body.lines().all(|l| l.len() <= 76 && !l.starts_with('.')), "{body}");
        assert!(head.contains("Date: Fri, 20 Nov 2026 14:02:11 +0000"), "{head}");
        let long = header(&"ü".repeat(100));
        assert!(long.split("\r\n ").count() > 3 && long.split("\r\n ").all(|w| w.len() <= 75), "{long}");
        assert_eq!(
            (domain("san1.example.com"), domain("a b"), domain("")),
            ("san1.example.com", "localhost", "localhost")
        );
    }
}
