//! A webhook: POST of the message as JSON.

use super::stream::{Stream, connect, cover};
use super::{quoted, secret};
use crate::config::alarm::ReceiverConfig;
use api::AlarmMessage;
use finding::AlarmFault;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;

/// Largest answer that is read.
const BODY_MAX: usize = 64 << 10;

/// Sends a message; any status of success is an answer.
pub async fn send(url: &Uri, config: &ReceiverConfig, message: &AlarmMessage) -> Result<String, AlarmFault> {
    let covered = url.scheme_str() == Some("https");
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    let port = url.port_u16().unwrap_or(if covered { 443 } else { 80 });
    let broken = |e: hyper::Error| AlarmFault::BrokenOff { error: e.to_string() };
    let odd = |error: String| AlarmFault::NotReached { error };

    let path = url.path_and_query().map_or("/", |p| p.as_str());
    let authority = url.authority().map_or("", |a| a.as_str().rsplit('@').next().unwrap_or_default());
    let mut request = Request::post(path)
        .header(HOST, authority)
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, concat!("millrace/", env!("CARGO_PKG_VERSION")));
    if let Some(file) = &config.token_file {
        request = request.header(AUTHORIZATION, format!("Bearer {}", secret(file)?));
    }
    let body = Full::new(Bytes::from(serde_json::to_vec(message).expect("plain data")));
    let request = request.body(body).map_err(|e| odd(e.to_string()))?;

    let stream = connect(host, port).await?;
    let stream: Box<dyn Stream> =
        if covered { cover(stream, host, config.ca_file.clone()).await? } else { Box::new(stream) };
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let driver = Driver(tokio::spawn(connection));
    let answer = sender.send_request(request).await.map_err(broken)?;
    let status = answer.status();
    // What it says counts by its status alone.
    let body = Limited::new(answer.into_body(), BODY_MAX).collect().await.map(|b| b.to_bytes());
    drop(driver);
    if !status.is_success() {
        let answer = quoted(&String::from_utf8_lossy(&body.unwrap_or_default()));
        return Err(AlarmFault::Refused { status: status.as_u16(), answer });
    }
    Ok(status.to_string())
}

/// The task of a connection, which ends with the request, be it that its time is over.
struct Driver<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for Driver<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
