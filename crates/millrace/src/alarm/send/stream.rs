//! Connections to receivers, with TLS or without.

use super::plain;
use finding::AlarmFault;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// Bytes in both directions.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Connects to the first address of `host` that answers.
pub async fn connect(host: &str, port: u16) -> Result<TcpStream, AlarmFault> {
    let not_reached = |error: String| AlarmFault::NotReached { error };
    let found = tokio::net::lookup_host((host, port)).await;
    let addresses = found.map_err(|e| not_reached(format!("{host}: {}", plain(&e))))?;
    let mut last = not_reached(format!("{host} has no address"));
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(e) => last = not_reached(format!("{address}: {}", plain(&e))),
        }
    }
    Err(last)
}

/// Certificates to trust: those of the file, or the machine's.
fn roots(file: Option<&Path>) -> Result<RootCertStore, AlarmFault> {
    let mut roots = RootCertStore::empty();
    match file {
        Some(path) => {
            let unread = |error: String| AlarmFault::FileUnread { path: path.display().to_string(), error };
            let certificates = CertificateDer::pem_file_iter(path).map_err(|e| unread(e.to_string()))?;
            for certificate in certificates {
                let certificate = certificate.map_err(|e| unread(e.to_string()))?;
                roots.add(certificate).map_err(|e| unread(e.to_string()))?;
            }
            if roots.is_empty() {
                return Err(unread("it holds no certificate".into()));
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    Ok(roots)
}

/// TLS over a connection to `host`. Files are read anew each time: certificates of a machine change.
pub async fn cover(
    stream: impl Stream + 'static,
    host: &str,
    ca_file: Option<PathBuf>,
) -> Result<Box<dyn Stream>, AlarmFault> {
    let no_tls = |error: String| AlarmFault::NoTls { error };
    let name = ServerName::try_from(host.to_string()).map_err(|e| no_tls(e.to_string()))?;
    let roots = tokio::task::spawn_blocking(move || roots(ca_file.as_deref()));
    let roots = roots.await.map_err(|e| no_tls(e.to_string()))??;
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|e| no_tls(e.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let covered = connector.connect(name, stream).await.map_err(|e| no_tls(plain(&e)))?;
    Ok(Box::new(covered))
}
