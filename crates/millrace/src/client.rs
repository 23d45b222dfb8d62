//! The command line's only way to the daemon: HTTP/1.1 on its Unix socket, or over TCP with a token.
//!
//! Promise: every failure says which socket or URL was tried and what to do. Blocking; each request has a
//! connection of its own and a time limit.

mod error;
mod remote;

use crate::access::Stream;
use crate::failure::Failure;
use finding::ClientFault;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use remote::Remote;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

/// A time limit for ordinary requests. A pool whose weights are measured takes longest.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(180);
/// Largest answer that is read.
const ANSWER_MAX: usize = 64 << 20;

/// Where the daemon is.
enum Way {
    Socket(PathBuf),
    Url(Remote),
}

/// A way to the daemon.
pub struct Client {
    way: Way,
    patience: Duration,
    runtime: tokio::runtime::Runtime,
}

impl Client {
    /// A client of the daemon that listens at `socket`; nothing is connected yet.
    pub fn new(socket: impl Into<PathBuf>) -> Result<Self, Failure> {
        Self::by(Way::Socket(socket.into()))
    }
    /// A client of the daemon at `url`, whose certificate has this fingerprint, if one is known.
    pub fn elsewhere(url: &str, fingerprint: Option<&str>) -> Result<Self, Failure> {
        Self::by(Way::Url(Remote::new(url, fingerprint)?))
    }
    fn by(way: Way) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| ClientFault::ClientNotStarted { error: e.to_string() })?;
        Ok(Self { way, patience: REQUEST_TIMEOUT, runtime })
    }
    /// The same, for one who cannot wait long.
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }
    /// The socket.
    #[cfg(test)]
    pub fn socket(&self) -> &std::path::Path {
        match &self.way {
            Way::Socket(path) => path,
            Way::Url(_) => panic!("no socket"),
        }
    }
    /// GET below `/api/v1`.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.call(Method::GET, path, None, self.patience)
    }
    /// GET below `/api/v1` for one who cannot wait long.
    pub fn get_within<T: DeserializeOwned>(&self, path: &str, patience: Duration) -> Result<T, Failure> {
        self.call(Method::GET, path, None, patience)
    }
    /// The metrics, as the daemon writes them.
    pub fn metrics(&self) -> Result<String, Failure> {
        let (status, bytes) = self.answer(Method::GET, "/metrics".into(), None, self.patience)?;
        match status {
            200 => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            status => Err(ClientFault::NoReason { status }.into()),
        }
    }
    /// POST below `/api/v1`.
    pub fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, Failure> {
        self.call(Method::POST, path, Some(json(body)), self.patience)
    }
    /// PUT below `/api/v1`.
    pub fn put(&self, path: &str, body: &impl Serialize) -> Result<(), Failure> {
        self.call::<Nothing>(Method::PUT, path, Some(json(body)), self.patience).map(|_| ())
    }
    /// PATCH below `/api/v1`.
    pub fn patch(&self, path: &str, body: &impl Serialize) -> Result<(), Failure> {
        self.call::<Nothing>(Method::PATCH, path, Some(json(body)), self.patience).map(|_| ())
    }
    /// POST that only acts.
    pub fn act(&self, path: &str, body: &impl Serialize) -> Result<(), Failure> {
        self.call::<Nothing>(Method::POST, path, Some(json(body)), self.patience).map(|_| ())
    }
    /// DELETE below `/api/v1`.
    pub fn delete(&self, path: &str) -> Result<(), Failure> {
        self.call::<Nothing>(Method::DELETE, path, None, self.patience).map(|_| ())
    }

    /// DELETE below `/api/v1` that has something to say.
    pub fn remove<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.call(Method::DELETE, path, None, self.patience)
    }

    fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
        patience: Duration,
    ) -> Result<T, Failure> {
        let (status, bytes) = self.answer(method, format!("{}{path}", api::BASE), body, patience)?;
        if (200..300).contains(&status) {
            let text = if bytes.is_empty() { &b"null"[..] } else { &bytes[..] };
            return serde_json::from_slice(text)
                .map_err(|e| ClientFault::AnswerNotUnderstood { error: e.to_string() }.into());
        }
        match serde_json::from_slice::<api::ErrorBody>(&bytes) {
            Ok(body) => Err(body.error.into()),
            Err(_) => Err(ClientFault::NoReason { status }.into()),
        }
    }

    /// The daemon's answer within this time: status and body.
    fn answer(
        &self,
        method: Method,
        path: String,
        body: Option<Vec<u8>>,
        patience: Duration,
    ) -> Result<(u16, Bytes), Failure> {
        let answer = self.runtime.block_on(async {
            let sent = tokio::time::timeout(patience, self.send(method, &path, body)).await;
            sent.unwrap_or_else(|_| {
                Err(ClientFault::TimedOut { socket: self.socket_name(), seconds: patience.as_secs() })
            })
        });
        Ok(answer?)
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<(u16, Bytes), ClientFault> {
        let stream: Box<dyn Stream> = match &self.way {
            Way::Socket(path) => {
                Box::new(tokio::net::UnixStream::connect(path).await.map_err(|e| self.unreachable(&e))?)
            }
            Way::Url(remote) => remote.connect().await?,
        };
        let broken = |e: hyper::Error| ClientFault::ConnectionClosed {
            socket: self.socket_name(),
            error: e.to_string(),
        };
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        let driver = tokio::spawn(connection);
        let mut request = Request::builder().method(method).uri(path);
        request = match &self.way {
            Way::Socket(_) => request.header("host", "millrace"),
            Way::Url(remote) => remote.headers(request),
        };
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        let request = request
            .body(Full::new(Bytes::from(body.unwrap_or_default())))
            .map_err(|e| ClientFault::RequestInvalid { path: path.into(), error: e.to_string() })?;
        let answer = sender.send_request(request).await.map_err(broken)?;
        let status = answer.status().as_u16();
        let limited = http_body_util::Limited::new(answer.into_body(), ANSWER_MAX);
        let bytes = limited
            .collect()
            .await
            .map_err(|e| ClientFault::AnswerTruncated { error: e.to_string() })?
            .to_bytes();
        driver.abort();
        Ok((status, bytes))
    }

    fn socket_name(&self) -> String {
        match &self.way {
            Way::Socket(path) => path.display().to_string(),
            Way::Url(remote) => remote.url.clone(),
        }
    }

    fn unreachable(&self, error: &std::io::Error) -> ClientFault {
        let socket = self.socket_name();
        match error.kind() {
            ErrorKind::NotFound => ClientFault::NoDaemon { socket },
            ErrorKind::ConnectionRefused => ClientFault::DaemonGone { socket },
            ErrorKind::PermissionDenied => ClientFault::SocketForbidden { socket },
            ErrorKind::InvalidInput => ClientFault::SocketNameInvalid { socket, error: error.to_string() },
            _ => ClientFault::NotConnected { socket, error: error.to_string() },
        }
    }
}

/// Any answer whose content does not matter.
struct Nothing;

impl<'de> serde::Deserialize<'de> for Nothing {
    fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(input).map(|_| Nothing)
    }
}

/// One segment of a path, percent-encoded (RFC 3986 2.1): drives are named by paths.
pub fn segment(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

fn json(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).expect("plain data without maps of odd keys")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Exit;

    #[test]
    fn a_path_is_one_segment() {
        assert_eq!(segment("/dev/disk/by-id/a b"), "%2Fdev%2Fdisk%2Fby-id%2Fa%20b");
        assert_eq!(segment("vm-1.x_y"), "vm-1.x_y");
    }

    #[test]
    fn without_a_daemon_the_failure_says_where_and_what_next() {
        let folder = tempfile::tempdir().expect("a folder");
        let client = Client::new(folder.path().join("no.sock")).expect("a runtime");
        let failure = client.get::<api::Status>("/status").expect_err("nobody listens");
        assert_eq!((failure.exit, failure.code.as_deref()), (Exit::Unreachable, Some("no_daemon")));
        let text = failure.to_string();
        assert!(text.contains("no.sock") && text.contains("millrace serve"), "{text}");
    }

    #[test]
    fn a_socket_without_its_daemon_is_told_from_no_socket() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("dead.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).expect("bound"));
        let failure = Client::new(&path).expect("a runtime").get::<api::Status>("/status").expect_err("dead");
        assert_eq!(failure.exit, Exit::Unreachable);
        assert!(failure.message.contains("has ended"), "{failure}");
    }
}
