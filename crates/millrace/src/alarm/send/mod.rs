//! How a message reaches its receiver. Each way ends within the receiver's time limit, whatever the other side does.

mod command;
mod mail;
mod stream;
mod webhook;

use crate::config::alarm::{ReceiverConfig, Target};
use api::AlarmMessage;
use finding::AlarmFault;
use std::path::Path;

/// Longest part of an answer that is quoted.
const ANSWER_MAX: usize = 200;

/// Sends a message; what the receiver answered.
pub async fn send(config: &ReceiverConfig, message: &AlarmMessage) -> Result<String, AlarmFault> {
    let target = config.target().map_err(|(_, error)| AlarmFault::NotReached { error })?;
    let seconds = config.timeout.as_secs();
    let over = |_| Err(AlarmFault::TimedOut { seconds });
    match &target {
        Target::Webhook(url) => tokio::time::timeout(config.timeout, webhook::send(url, config, message))
            .await
            .unwrap_or_else(over),
        Target::Mail(mail) => {
            tokio::time::timeout(config.timeout, mail::send(mail, config, message)).await.unwrap_or_else(over)
        }
        // It has a process to kill.
        Target::Command(words) => command::send(words, config.timeout, message).await,
    }
}

/// The secret of a file: its text without blanks around.
fn secret(path: &Path) -> Result<String, AlarmFault> {
    match crate::config::read_text(path) {
        Ok(text) => Ok(text.trim().to_string()),
        Err(e) => Err(AlarmFault::FileUnread { path: path.display().to_string(), error: plain(&e) }),
    }
}

/// An error without its number.
fn plain(e: &std::io::Error) -> String {
    let text = e.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_string()
}

/// The first line of what somebody else wrote, as far as it can be quoted.
fn quoted(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|l| !l.is_empty()).unwrap_or_default();
    line.chars().filter(|c| !c.is_control()).take(ANSWER_MAX).collect()
}
