//! TLS 1.3 between two heads that know each other's certificate, and nothing else of TLS.

use super::identity::{Fingerprint, Identity};
use core::fmt;
use finding::SystemRefusal;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::SingleCertAndKey;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, PeerMisbehaved,
    ServerConfig, SignatureScheme, version,
};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsStream;

/// What a connection is for, by the name of its protocol in the handshake (ALPN).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// A path of the link.
    Path,
    /// To join.
    Join,
}

impl Purpose {
    /// The name in the handshake.
    pub fn protocol(self) -> &'static [u8] {
        match self {
            Self::Path => b"millrace-path",
            Self::Join => b"millrace-join",
        }
    }
}

/// The kind of signature of all keys of heads.
const SCHEME: SignatureScheme = SignatureScheme::ED25519;

const SECRET_LABEL: &[u8] = b"EXPORTER-millrace-link-path";

/// A secret that both ends of a connection have, and nobody else: exported from its TLS session (RFC 8446, section 7.5).
///
/// It authenticates data connections that are made beside the path. It is of this one session and says nothing about who is in:
/// whoever uses it binds it to the incarnations of both heads and to the epoch.
#[derive(Clone, PartialEq, Eq)]
pub struct PathSecret([u8; 32]);

impl PathSecret {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Of the session of `stream`, for path number `path`.
    pub(super) fn of(stream: &TlsStream<Metered>, path: usize) -> Result<Self, Error> {
        let context = [path as u8];
        let exported = match stream {
            TlsStream::Client(s) => {
                s.get_ref().1.export_keying_material([0; 32], SECRET_LABEL, Some(&context))
            }
            TlsStream::Server(s) => {
                s.get_ref().1.export_keying_material([0; 32], SECRET_LABEL, Some(&context))
            }
        };
        exported.map(Self)
    }
}

impl fmt::Debug for PathSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PathSecret(not shown)")
    }
}

/// One group for the key exchange and ring's suites of TLS 1.3: both ends are ours, so there is nothing to negotiate.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider { kx_groups: vec![ring::kx_group::X25519], ..ring::default_provider() })
}

/// Fills `bytes` from the operating system's entropy.
pub fn random(bytes: &mut [u8]) -> Result<(), SystemRefusal> {
    let filled = ring::default_provider().secure_random.fill(bytes);
    filled.map_err(|_| SystemRefusal::RandomUnavailable)
}

/// Takes a certificate by what it is, not by who says so, and makes its holder show the key.
///
/// No CA: of two heads each knows the other's certificate itself, and nobody else could vouch for it. No names: an address is no
/// identity. No expiry: a certificate is taken back by pinning another one, and a storage system that stops serving because of a date
/// or of a wrong clock harms its owner more than an old key does.
#[derive(Debug)]
struct Pinned {
    /// Whose certificate; None takes any, for somebody who wants to join and is not known yet.
    peer: Option<Fingerprint>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Pinned {
    fn new(peer: Option<Fingerprint>) -> Arc<Self> {
        Arc::new(Self { peer, algorithms: ring::default_provider().signature_verification_algorithms })
    }

    fn check(&self, certificate: &CertificateDer<'_>, others: &[CertificateDer<'_>]) -> Result<(), Error> {
        let known = self.peer.is_none_or(|peer| peer == Fingerprint::of(certificate));
        // A head has one certificate; more would be memory for nothing.
        if known && others.is_empty() {
            Ok(())
        } else {
            Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
        }
    }

    /// Without this, whoever saw the certificate once could show it.
    fn check_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if signed.scheme != SCHEME {
            return Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into());
        }
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }
}

/// There is no TLS 1.2 here.
fn no_tls12() -> Result<HandshakeSignatureValid, Error> {
    Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into())
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(end_entity, intermediates).map(|()| ServerCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        no_tls12()
    }
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, cert, dss)
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SCHEME]
    }
}

impl ClientCertVerifier for Pinned {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }
    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(end_entity, intermediates).map(|()| ClientCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        no_tls12()
    }
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, cert, dss)
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SCHEME]
    }
}

/// For whoever listens. `peer` is None only for those who want to join.
pub fn server(identity: &Identity, purpose: Purpose, peer: Option<Fingerprint>) -> Arc<ServerConfig> {
    assert!(peer.is_some() || purpose == Purpose::Join, "a path has a pinned peer");
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&version::TLS13])
        .expect("ring speaks TLS 1.3")
        .with_client_cert_verifier(Pinned::new(peer))
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(identity.certified())));
    config.alpn_protocols = vec![purpose.protocol().to_vec()];
    // A resumed session shows no certificate: a peer that is pinned no more would come in by its ticket.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Arc::new(config)
}

/// For whoever connects to `peer`.
pub fn client(identity: &Identity, purpose: Purpose, peer: Fingerprint) -> Arc<ClientConfig> {
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&version::TLS13])
        .expect("ring speaks TLS 1.3")
        .dangerous()
        .with_custom_certificate_verifier(Pinned::new(Some(peer)))
        .with_client_cert_resolver(Arc::new(SingleCertAndKey::from(identity.certified())));
    config.alpn_protocols = vec![purpose.protocol().to_vec()];
    config.enable_sni = false;
    config.resumption = Resumption::disabled();
    Arc::new(config)
}

/// The certificate that the peer showed, and whose key it showed to have.
pub fn shown(stream: &TlsStream<Metered>) -> Option<Fingerprint> {
    let certificates = stream.get_ref().1.peer_certificates()?;
    certificates.first().map(|certificate| Fingerprint::of(certificate))
}

/// More was read than may be.
#[derive(Debug)]
pub struct TooMuch;

impl fmt::Display for TooMuch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("too many bytes before authentication")
    }
}

impl std::error::Error for TooMuch {}

/// A connection of which so many bytes can be read, until it is lifted.
#[derive(Debug)]
pub struct Metered {
    tcp: TcpStream,
    left: u64,
}

impl Metered {
    /// `bytes` can be read at most. What is read at one time, a few KiB, may exceed it, and is not handed on.
    pub fn new(tcp: TcpStream, bytes: u64) -> Self {
        Self { tcp, left: bytes }
    }
    /// No limit any more: the peer is authenticated.
    pub fn lift(&mut self) {
        self.left = u64::MAX;
    }
}

impl AsyncRead for Metered {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.tcp).poll_read(cx, buf))?;
        let read = (buf.filled().len() - before) as u64;
        match self.left {
            u64::MAX => {}
            left if read > left => {
                buf.set_filled(before);
                return Poll::Ready(Err(io::Error::other(TooMuch)));
            }
            left => self.left = left - read,
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Metered {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tcp).poll_write(cx, buf)
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tcp).poll_write_vectored(cx, bufs)
    }
    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }
}
