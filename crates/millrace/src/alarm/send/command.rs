//! A command: the message as JSON on its standard input, the worst alarm in its environment.

use super::{plain, quoted};
use api::AlarmMessage;
use finding::AlarmFault;
use rustix::process::{Pid, Signal, kill_process_group};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, Command};

/// Where a command finds programs.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Most that is read of its standard error.
const STDERR_MAX: u64 = 64 << 10;
/// How long its standard error is waited for once it has ended: a process of its own may hold it.
const STDERR_PATIENCE: Duration = Duration::from_millis(200);

/// Runs the command, and kills its process group when its time is over.
pub async fn send(words: &[String], timeout: Duration, message: &AlarmMessage) -> Result<String, AlarmFault> {
    let (program, arguments) = words.split_first().expect("the configuration has checked it");
    let mut command = Command::new(program);
    command.args(arguments).current_dir("/").env_clear().env("PATH", PATH).envs(environment(message));
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    let not_started =
        |e: &std::io::Error| AlarmFault::NotStarted { error: format!("{program}: {}", plain(e)) };
    let mut child = command.spawn().map_err(|e| not_started(&e))?;
    let group = child.id().and_then(|id| Pid::from_raw(id as i32));
    let (input, error) = (child.stdin.take(), child.stderr.take());
    let json = serde_json::to_vec(message).expect("plain data");
    // One that does not read must not keep us from waiting for its end.
    let writer = tokio::spawn(async move {
        if let Some(mut input) = input {
            let _ = input.write_all(&json).await;
        }
    });
    let reader = error.map(|error| tokio::spawn(read(error)));
    let ended = tokio::time::timeout(timeout, child.wait()).await;
    writer.abort();
    let status = match ended {
        Ok(Ok(status)) => status,
        Ok(Err(e)) => return Err(not_started(&e)),
        Err(_) => {
            if let Some(group) = group {
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = child.wait().await;
            return Err(AlarmFault::TimedOut { seconds: timeout.as_secs() });
        }
    };
    let said = match reader {
        Some(mut reader) => match tokio::time::timeout(STDERR_PATIENCE, &mut reader).await {
            Ok(said) => said.unwrap_or_default(),
            Err(_) => {
                reader.abort();
                String::new()
            }
        },
        None => String::new(),
    };
    outcome(status, &said)
}

fn outcome(status: ExitStatus, said: &str) -> Result<String, AlarmFault> {
    match (status.code(), status.signal()) {
        (Some(0), _) => Ok("ended with 0".into()),
        (Some(status), _) => {
            let last = said.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or_default();
            Err(AlarmFault::CommandFailed { status, answer: quoted(last) })
        }
        (None, signal) => Err(AlarmFault::CommandKilled { signal: signal.unwrap_or_default() }),
    }
}

async fn read(error: ChildStderr) -> String {
    let mut bytes = Vec::new();
    let _ = error.take(STDERR_MAX).read_to_end(&mut bytes).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The worst alarm in variables, for scripts that read no JSON.
fn environment(message: &AlarmMessage) -> Vec<(&'static str, String)> {
    let mut all = vec![("MILLRACE_TEXT", message.text.clone())];
    if let Some(worst) = super::super::text::worst(&message.alarms) {
        all.extend([
            ("MILLRACE_LEVEL", worst.level.word().to_string()),
            ("MILLRACE_STATE", worst.state.word().to_string()),
            ("MILLRACE_CODE", worst.code.clone()),
            ("MILLRACE_SUBJECT", worst.subject.clone()),
        ]);
    }
    // A variable cannot hold a zero byte, and a line feed makes two lines of a log's one.
    let plain = |text: String| text.chars().filter(|c| !c.is_control()).collect();
    all.into_iter().map(|(name, text)| (name, plain(text))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::message;
    use super::*;

    fn run(script: &str, timeout: Duration) -> Result<String, AlarmFault> {
        let words = ["/bin/sh", "-c", script].map(String::from);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(send(&words, timeout, &message()))
    }

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn a_command_gets_json_and_variables_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out");
        let script = format!("{{ env; cat; }} > {}", path.display());
        assert_eq!(run(&script, LONG), Ok("ended with 0".into()));
        let text = std::fs::read_to_string(path).expect("written");
        let json = text.lines().find(|l| l.starts_with('{')).expect("JSON");
        assert_eq!(serde_json::from_str::<AlarmMessage>(json).expect("its shape"), message());
        assert!(
            text.contains("MILLRACE_LEVEL=error\n") && text.contains("MILLRACE_CODE=leg_not_optimal\n"),
            "{text}"
        );
        assert!(!text.contains("CARGO"), "{text}");
    }

    #[test]
    fn a_command_that_fails_hangs_or_is_not_there_is_told() {
        let failed = run("echo first >&2; echo no modem >&2; exit 3", LONG);
        assert_eq!(failed, Err(AlarmFault::CommandFailed { status: 3, answer: "no modem".into() }));
        assert_eq!(run("kill -9 $$", LONG), Err(AlarmFault::CommandKilled { signal: 9 }));
        let began = std::time::Instant::now();
        let hung = run("sleep 60 & wait", Duration::from_secs(1));
        assert_eq!(hung, Err(AlarmFault::TimedOut { seconds: 1 }));
        assert!(began.elapsed() < Duration::from_secs(20));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let missing = runtime.block_on(send(&["/nowhere/at all".into()], LONG, &message()));
        assert!(matches!(missing, Err(AlarmFault::NotStarted { .. })), "{missing:?}");
    }
}
