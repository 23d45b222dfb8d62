//! The API's listeners, on a thread and a tokio of their own, off the data cores.
//!
//! The socket must be there for the daemon to start. The TCP address is tried again until it can be had, as portals are:
//! hosts do not wait for it, and `status` says so.

use crate::access::{Access, Backoff, Certificate, Sessions, Tokens};
use crate::config::{Config, TlsConfig, TlsWord};
use crate::failure::Failure;
use crate::http::{self, Api};
use finding::SystemCause;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::watch;

/// Name of the server's thread: a panic there ends a request, not the head.
pub const THREAD: &str = "api";

/// How long until a TCP address that could not be had is tried again.
const RELISTEN: Duration = Duration::from_secs(5);

/// The open socket and what else to listen at, before the server runs.
pub struct Listeners {
    unix: UnixListener,
    path: PathBuf,
    tcp: Option<(SocketAddr, Arc<Access>)>,
    /// The folder that was made for the socket, where nobody had one.
    pub made: Option<PathBuf>,
}

/// The running server; dropped, it stops.
pub struct Server {
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
    path: PathBuf,
}

/// A signal that ends the daemon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stop(pub &'static str);

/// What decides who may use the API.
pub fn access(config: &Config) -> Result<Arc<Access>, Failure> {
    let api = &config.api;
    let configured = api.token_file.as_deref().map(token).transpose()?;
    let certificate = match (api.tls(), api.tcp) {
        (_, None) | (TlsConfig::Word(TlsWord::Off), _) => None,
        (TlsConfig::Files(files), _) => Some(Certificate::given(&files.cert, &files.key)?),
        (TlsConfig::Word(TlsWord::SelfSigned), Some(address)) => {
            let ip = Some(address.ip()).filter(|ip| !ip.is_unspecified()).map(|ip| ip.to_string());
            let names = core::iter::once("localhost".into()).chain(ip).chain(api.names.clone());
            Some(Certificate::self_signed(&config.state_dir, names.collect())?)
        }
    };
    let tokens = Tokens::new(&config.state_dir, configured.as_deref());
    let backoff = Mutex::new(Backoff::default());
    let sessions = Sessions::default();
    Ok(Arc::new(Access { tokens, sessions, names: api.names.clone(), tcp: api.tcp, certificate, backoff }))
}

/// Listens at the configured places.
pub fn listen(config: &Config, access: &Arc<Access>) -> Result<Listeners, Failure> {
    let path = config.socket.clone();
    let (unix, made) = listen_unix(&path, config.socket_mode)?;
    let tcp = access.tcp.map(|address| (address, Arc::clone(access)));
    Ok(Listeners { unix, path, tcp, made })
}

fn nonblocking(result: std::io::Result<()>) -> Result<(), Failure> {
    result.map_err(|e| Failure::internal(format!("a listener cannot be made non-blocking: {e}")))
}

/// Also the folder that was made for it, if one was.
fn listen_unix(path: &Path, mode: u32) -> Result<(UnixListener, Option<PathBuf>), Failure> {
    let cannot = |what: &str, e: std::io::Error| {
        Failure::usage(format!("{what} {}: {e}", path.display()))
            .with_next("another place: socket = \"…\" in head.toml, or --socket")
    };
    let missing = path.parent().filter(|f| !f.as_os_str().is_empty() && !f.exists());
    if let Some(folder) = missing {
        std::fs::create_dir_all(folder).map_err(|e| cannot("cannot make the folder of the socket", e))?;
    }
    if let Ok(there) = std::fs::symlink_metadata(path) {
        if !there.file_type().is_socket() {
            return Err(Failure::usage(format!("{} is there and is no socket", path.display()))
                .with_next("another place: socket = \"…\" in head.toml, or --socket"));
        }
        // A socket that nobody answers was left by a daemon that died.
        if UnixStream::connect(path).is_ok() {
            return Err(Failure::usage(format!("a daemon listens at {} already", path.display())).with_next(
                format!(
                    "millrace --socket {} status, or another socket and another state_dir for a second one",
                    path.display()
                ),
            ));
        }
        std::fs::remove_file(path).map_err(|e| cannot("cannot remove the old socket", e))?;
    }
    let listener = UnixListener::bind(path).map_err(|e| cannot("cannot listen at", e))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
        .map_err(|e| cannot("cannot set the permissions of", e))?;
    nonblocking(listener.set_nonblocking(true))?;
    Ok((listener, missing.map(Path::to_path_buf)))
}

fn token(file: &Path) -> Result<Arc<str>, Failure> {
    let wrong = |why: String| Failure::usage(format!("api.token_file = {}: {why}", file.display()));
    let text = crate::config::read_text(file).map_err(|e| match e.kind() {
        // Only where there is nothing yet: what somebody keeps in that file is not ours to write over, and with
        // noclobber (-C) the shell does not either.
        std::io::ErrorKind::NotFound => {
            let quoted = |path: &Path| format!("'{}'", path.display().to_string().replace('\'', r"'\''"));
            let make = format!("(umask 077; set -C; head -c 32 /dev/urandom | base64 > {})", quoted(file));
            wrong("there is no such file".into()).with_next(match file.parent().filter(|dir| !dir.exists()) {
                Some(dir) => format!("mkdir -p {} && {make}", quoted(dir)),
                None => make,
            })
        }
        _ => wrong(e.to_string()).with_next("name a file of its own in api.token_file"),
    })?;
    let token = text.trim();
    if token.len() < 16 || token.contains(char::is_whitespace) {
        return Err(wrong("it does not hold one word of at least 16 characters, as a token is".into())
            .with_next("look what it is; if it is not the token's, name another file in api.token_file"));
    }
    Ok(token.into())
}

impl Listeners {
    /// Runs the server, and `beside` on the same runtime. SIGTERM and SIGINT are told to `signals`.
    pub fn run<S: From<Stop> + Send + 'static>(
        self,
        api: Api,
        beside: impl Future<Output = ()> + Send + 'static,
        signals: Sender<S>,
    ) -> Result<Server, Failure> {
        let (stop, mut stopped) = watch::channel(false);
        let path = self.path.clone();
        let internal = |e: std::io::Error| Failure::internal(format!("the API server cannot start: {e}"));
        // Its threads for what blocks have the name, too: a panic there ends a request alone.
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().thread_name(THREAD).build().map_err(internal)?;
        let body = move || {
            runtime.block_on(async move {
                tokio::spawn(beside);
                tokio::spawn(tell_signals(signals));
                let limits = http::Limits::default();
                if let Some((address, access)) = self.tcp {
                    tokio::spawn(serve_tcp(address, access, api.clone(), limits));
                }
                let listener = tokio::net::UnixListener::from_std(self.unix).expect("a listening socket");
                tokio::spawn(http::serve(listener, http::router(api), limits, http::Local));
                let _ = stopped.wait_for(|s| *s).await;
                // Answers that are on their way arrive; long polls and slow readers are not waited for.
                tokio::time::sleep(Duration::from_millis(200)).await;
            });
            // Nor is who looks at the machine meanwhile.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name(THREAD.into()).spawn(body).map_err(internal)?;
        Ok(Server { stop, thread: Some(thread), path })
    }
}

/// Serves at a TCP address, once it can be had.
async fn serve_tcp(address: SocketAddr, access: Arc<Access>, api: Api, limits: http::Limits) {
    let mut told = None;
    let listener = loop {
        match tokio::net::TcpListener::bind(address).await {
            Ok(listener) => break listener,
            Err(e) => {
                let reason = cannot_listen(address, &e);
                if told.as_ref() != Some(&reason.message) {
                    tracing::error!("{}", reason.message);
                    told = Some(reason.message.clone());
                }
                api.set_deaf(Some(reason));
                tokio::time::sleep(RELISTEN).await;
            }
        }
    };
    match &access.certificate {
        Some(certificate) => tracing::info!(
            "the API listens at api.tcp = {address}; the fingerprint of its certificate is {}",
            certificate.fingerprint()
        ),
        None if address.ip().is_loopback() => {
            tracing::info!("the API listens at api.tcp = {address}, without TLS");
        }
        None => tracing::warn!(
            "the API listens at api.tcp = {address}, without TLS: tokens cross the network in clear (api.tls in head.toml)"
        ),
    }
    api.set_deaf(None);
    http::serve(listener, http::router(api), limits, http::Remote(access)).await;
}

/// What is wrong while nobody listens there.
fn cannot_listen(address: SocketAddr, e: &std::io::Error) -> api::Reason {
    use std::io::ErrorKind;
    let cause = match e.kind() {
        ErrorKind::AddrInUse => {
            SystemCause::ApiAddressInUse { address: address.to_string(), port: address.port() }
        }
        ErrorKind::AddrNotAvailable => {
            let ip = address.ip().to_string();
            SystemCause::ApiAddressMissing { address: address.to_string(), ip }
        }
        _ => SystemCause::ApiNotListening { address: address.to_string(), error: e.to_string() },
    };
    crate::words::reason(api::Reason::new(api::State::Degraded, "head", cause))
}

/// The signal that provokes a panic, in builds with debug assertions.
pub const PROVOKED: &str = "SIGUSR1";

async fn tell_signals<S: From<Stop>>(to: Sender<S>) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut term), Ok(mut int)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        tracing::error!("signals cannot be listened to: only kill -9 will stop this daemon");
        return;
    };
    // Builds for tests alone: how a panic of a shard is provoked.
    let mut provoke = if cfg!(debug_assertions) { signal(SignalKind::user_defined1()).ok() } else { None };
    loop {
        let provoked = async {
            match &mut provoke {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        let name = tokio::select! {
            _ = term.recv() => "SIGTERM",
            _ = int.recv() => "SIGINT",
            _ = provoked => PROVOKED,
        };
        if to.send(Stop(name).into()).is_err() {
            return;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_socket_is_replaced_and_a_living_one_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("sub").join("api.sock");
        let (dead, made) = listen_unix(&path, 0o600).expect("listening");
        assert_eq!(made.as_deref(), path.parent(), "it is told");
        drop(dead);
        let (living, made) = listen_unix(&path, 0o660).expect("the dead one is replaced");
        assert_eq!(made, None);
        let mode = std::fs::metadata(&path).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode, 0o660);
        let failure = listen_unix(&path, 0o660).expect_err("somebody lives there");
        assert!(failure.message.contains("already"), "{failure}");
        drop(living);
    }

    #[test]
    fn a_file_in_the_way_is_not_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("api.sock");
        std::fs::write(&path, "precious").expect("written");
        assert!(listen_unix(&path, 0o600).expect_err("in the way").message.contains("no socket"));
        assert_eq!(std::fs::read(&path).expect("still there"), b"precious");
    }

    #[test]
    fn a_short_token_is_refused_by_field() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token");
        for bad in ["", "short\n", "two words that are long enough\n"] {
            std::fs::write(&path, bad).expect("written");
            let failure = token(&path).expect_err(bad);
            assert!(failure.message.contains("api.token_file"), "{bad}");
            assert!(!failure.next.expect("a way on").contains('>'), "nothing writes over what is there");
        }
        let missing = folder.path().join("not there").join("it's new");
        let next = token(&missing).expect_err("missing").next.expect("a way on");
        let ran = |next: &str| {
            std::process::Command::new("sh").args(["-c", next]).stderr(std::process::Stdio::null()).status()
        };
        assert!(ran(&next).expect("a shell").success());
        let made = token(&missing).expect("as was told");
        assert!(!ran(&next).expect("a shell").success(), "twice is refused");
        assert_eq!(token(&missing), Ok(made));
        std::fs::write(&path, "0123456789abcdef\n").expect("written");
        assert_eq!(&*token(&path).expect("good"), "0123456789abcdef");
    }
}
