//! The login phase (RFC 7143 6 and 12): what to offer, and what the target accepted.

use super::{Config, Error};
use crate::pdu::{LoginRequest, LoginResponse, Stage, login_status};
use crate::text::{self, Parameters, key};
use base::IscsiFault;
use base::Prng;
use sha2::Digest;

/// Where the login stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// The first request is out: names and AuthMethod.
    Method,
    /// CHAP_A is out.
    Challenge,
    /// CHAP_N and CHAP_R are out.
    Proof,
    /// The operational keys are out.
    Operational,
    /// Full feature phase.
    Done,
}

/// The login of one connection.
#[derive(Debug)]
pub struct Login {
    phase: Phase,
    rounds: u8,
    /// Text of responses with the C bit, so far.
    text: Vec<u8>,
    parameters: Parameters,
    tsih: u16,
    /// Mutual CHAP: our identifier, challenge, and the algorithm in use.
    ours: (u8, [u8; 16], u64),
    rng: Prng,
}

/// What to do after a response.
#[derive(Debug)]
pub enum Next {
    /// Send this request with this text.
    Send(LoginRequest, Vec<u8>),
    /// Logged in.
    Done(Parameters),
}

const ROUNDS_MAX: u8 = 16;
const TEXT_MAX: usize = 64 << 10;
const CHAP_BYTES_MAX: usize = 1024;
const MD5: u64 = 5;
const SHA256: u64 = 7;

impl Login {
    /// A login that has not begun.
    pub fn new(config: &Config) -> Self {
        Self {
            phase: Phase::Method,
            rounds: 0,
            text: vec![],
            parameters: Parameters::default(),
            tsih: 0,
            ours: (0, [0; 16], 0),
            rng: Prng::new(config.seed),
        }
    }
    /// The first request. Logging in again keeps the generator's place, so that challenges differ.
    pub fn first(&mut self, config: &Config) -> (LoginRequest, Vec<u8>) {
        self.phase = Phase::Method;
        self.rounds = 0;
        self.tsih = 0;
        self.text.clear();
        self.parameters = Parameters::default();
        let mut out = vec![];
        text::put(&mut out, key::INITIATOR_NAME, &config.initiator);
        match &config.target {
            Some(target) => {
                text::put(&mut out, key::SESSION_TYPE, "Normal");
                text::put(&mut out, key::TARGET_NAME, target);
            }
            None => text::put(&mut out, key::SESSION_TYPE, "Discovery"),
        }
        text::put(&mut out, key::AUTH_METHOD, if config.chap.is_some() { "CHAP" } else { "None" });
        // With CHAP the target cannot agree to leave the stage yet, and may not like to be asked.
        (self.request(config, Stage::Security, config.chap.is_none()), out)
    }
    /// A response and its text.
    pub fn on_response(&mut self, config: &Config, r: &LoginResponse, data: &[u8]) -> Result<Next, Error> {
        if r.status != login_status::SUCCESS {
            return Err(Error::LoginRefused(r.status));
        }
        self.rounds += 1;
        if self.rounds > ROUNDS_MAX {
            return Err(Error::Protocol(IscsiFault::LoginEndless));
        }
        if self.text.len() + data.len() > TEXT_MAX {
            return Err(Error::Protocol(IscsiFault::LoginTextEndless));
        }
        self.text.extend_from_slice(data);
        let stage = match self.phase {
            Phase::Method | Phase::Challenge | Phase::Proof => Stage::Security,
            Phase::Operational => Stage::Operational,
            Phase::Done => return Err(Error::Protocol(IscsiFault::LoginResponseLate)),
        };
        if r.current != stage {
            return Err(Error::Protocol(IscsiFault::LoginResponseStage));
        }
        if r.continues {
            // RFC 7143 6.2: an empty request fetches the rest.
            if r.transit {
                return Err(Error::Protocol(IscsiFault::StageInText));
            }
            return Ok(Next::Send(self.request(config, stage, false), vec![]));
        }
        let whole = core::mem::take(&mut self.text);
        let next = match self.phase {
            Phase::Method => self.on_method(config, r, &whole),
            Phase::Challenge => self.on_challenge(config, r, &whole),
            Phase::Proof => self.on_proof(config, r, &whole),
            Phase::Operational | Phase::Done => self.on_operational(config, r, &whole),
        };
        self.text = whole;
        self.text.clear();
        next
    }

    fn request(&self, config: &Config, current: Stage, transit: bool) -> LoginRequest {
        let next = if current == Stage::Security { Stage::Operational } else { Stage::FullFeature };
        LoginRequest {
            transit,
            current,
            next,
            isid: config.isid,
            tsih: self.tsih,
            task_tag: 0,
            ..LoginRequest::default()
        }
    }
    fn on_method(&mut self, config: &Config, r: &LoginResponse, data: &[u8]) -> Result<Next, Error> {
        let method = find(data, key::AUTH_METHOD)?;
        let wanted = if config.chap.is_some() { "CHAP" } else { "None" };
        match method {
            Some(m) if m == wanted => {}
            // A target that has nothing to say of AuthMethod and lets us go on chose None.
            None if config.chap.is_none() && r.transit => {}
            _ => return Err(Error::LoginRefused(login_status::AUTHENTICATION_FAILURE)),
        }
        if config.chap.is_none() {
            return self.leave_security(config, r);
        }
        if r.transit {
            return Err(Error::Protocol(IscsiFault::ChapSkipped));
        }
        self.phase = Phase::Challenge;
        let mut out = vec![];
        text::put(&mut out, key::CHAP_A, if config.chap_md5_only { "5" } else { "7,5" });
        Ok(Next::Send(self.request(config, Stage::Security, false), out))
    }
    fn on_challenge(&mut self, config: &Config, r: &LoginResponse, data: &[u8]) -> Result<Next, Error> {
        let chap = config.chap.as_ref().expect("a challenge comes only after CHAP was offered");
        let algorithm = find(data, key::CHAP_A)?.and_then(text::number);
        let id = find(data, key::CHAP_I)?.and_then(text::number).and_then(|n| u8::try_from(n).ok());
        let challenge = find(data, key::CHAP_C)?.and_then(|v| text::binary(v, CHAP_BYTES_MAX));
        let (Some(algorithm @ (MD5 | SHA256)), Some(id), Some(challenge)) = (algorithm, id, challenge) else {
            return Err(Error::Protocol(IscsiFault::ChallengeInvalid));
        };
        if r.transit {
            return Err(Error::Protocol(IscsiFault::ChapSkipped));
        }
        if config.chap_md5_only && algorithm != MD5 {
            return Err(Error::Protocol(IscsiFault::AlgorithmUnoffered));
        }
        // RFC 7143 12.1.3: a peer that returns our own challenge uses us to compute its response.
        if challenge == self.ours.1 {
            return Err(Error::NotTheTarget);
        }
        let mut out = vec![];
        text::put(&mut out, key::CHAP_N, &chap.name);
        text::put_binary(&mut out, key::CHAP_R, &chap_response(algorithm, id, &chap.secret.0, &challenge));
        self.ours = (self.rng.next_u64() as u8, [0; 16], algorithm);
        if config.mutual.is_some() {
            self.rng.fill(&mut self.ours.1);
            text::put_number(&mut out, key::CHAP_I, u64::from(self.ours.0));
            text::put_binary(&mut out, key::CHAP_C, &self.ours.1);
        }
        self.phase = Phase::Proof;
        Ok(Next::Send(self.request(config, Stage::Security, true), out))
    }
    fn on_proof(&mut self, config: &Config, r: &LoginResponse, data: &[u8]) -> Result<Next, Error> {
        if let Some(mutual) = &config.mutual {
            let name = find(data, key::CHAP_N)?;
            let proof = find(data, key::CHAP_R)?.and_then(|v| text::binary(v, CHAP_BYTES_MAX));
            let (id, challenge, algorithm) = self.ours;
            let wanted = chap_response(algorithm, id, &mutual.secret.0, &challenge);
            if name != Some(mutual.name.as_str()) || proof.as_deref() != Some(&wanted[..]) {
                return Err(Error::NotTheTarget);
            }
        }
        self.leave_security(config, r)
    }
    fn leave_security(&mut self, config: &Config, r: &LoginResponse) -> Result<Next, Error> {
        if !r.transit {
            // The target wants another round before it agrees.
            return Ok(Next::Send(self.request(config, Stage::Security, true), vec![]));
        }
        if r.next != Stage::Operational {
            return match r.next {
                Stage::FullFeature => self.finish(r),
                _ => Err(Error::Protocol(IscsiFault::StageUnasked)),
            };
        }
        self.phase = Phase::Operational;
        let mut out = vec![];
        let digest = |on| if on { "CRC32C,None" } else { "None" };
        text::put(&mut out, key::HEADER_DIGEST, digest(config.header_digest));
        text::put(&mut out, key::DATA_DIGEST, digest(config.data_digest));
        text::put_number(&mut out, key::MAX_RECV_DATA_SEGMENT_LENGTH, u64::from(config.max_recv));
        text::put_number(&mut out, key::DEFAULT_TIME2WAIT, 2);
        text::put_number(&mut out, key::DEFAULT_TIME2RETAIN, 0);
        text::put_number(&mut out, key::ERROR_RECOVERY_LEVEL, 0);
        if config.target.is_some() {
            text::put_number(&mut out, key::MAX_CONNECTIONS, 1);
            text::put_bool(&mut out, key::INITIAL_R2T, config.initial_r2t);
            text::put_bool(&mut out, key::IMMEDIATE_DATA, config.immediate_data);
            text::put_number(&mut out, key::MAX_BURST_LENGTH, u64::from(config.max_burst));
            text::put_number(&mut out, key::FIRST_BURST_LENGTH, u64::from(config.first_burst));
            text::put_number(&mut out, key::MAX_OUTSTANDING_R2T, 1);
            text::put_bool(&mut out, key::DATA_PDU_IN_ORDER, true);
            text::put_bool(&mut out, key::DATA_SEQUENCE_IN_ORDER, true);
            self.parameters.initial_r2t = config.initial_r2t;
            self.parameters.immediate_data = config.immediate_data;
            self.parameters.max_burst = config.max_burst;
            self.parameters.first_burst = config.first_burst;
        }
        Ok(Next::Send(self.request(config, Stage::Operational, true), out))
    }
    fn on_operational(&mut self, config: &Config, r: &LoginResponse, data: &[u8]) -> Result<Next, Error> {
        let mut echo = vec![];
        for pair in text::pairs(data) {
            let pair = pair.map_err(|_| Error::Protocol(IscsiFault::LoginTextInvalid))?;
            self.agree(config, pair, &mut echo)?;
        }
        if !r.transit {
            return Ok(Next::Send(self.request(config, Stage::Operational, true), echo));
        }
        match r.next {
            Stage::FullFeature => self.finish(r),
            _ => Err(Error::Protocol(IscsiFault::StageUnasked)),
        }
    }
    /// RFC 7143 13: one key's result. What differs from our offer must be one that the rule allows.
    fn agree(&mut self, config: &Config, pair: text::Pair<'_>, echo: &mut Vec<u8>) -> Result<(), Error> {
        const BAD: Error = Error::Protocol(IscsiFault::LoginValue);
        if matches!(pair.value, text::NOT_UNDERSTOOD | text::REJECT | text::IRRELEVANT) {
            return Ok(());
        }
        let length = || {
            let n = text::number(pair.value).filter(|n| text::LENGTH_RANGE.contains(n)).ok_or(BAD)?;
            Ok(n as u32)
        };
        let digest = |offered: bool| match pair.value {
            "CRC32C" if offered => Ok(true),
            "None" => Ok(false),
            _ => Err(BAD),
        };
        let p = &mut self.parameters;
        match pair.key {
            key::HEADER_DIGEST => p.header_digest = digest(config.header_digest)?,
            key::DATA_DIGEST => p.data_digest = digest(config.data_digest)?,
            key::MAX_RECV_DATA_SEGMENT_LENGTH => p.peer_max_recv = length()?,
            key::MAX_BURST_LENGTH => p.max_burst = length()?.min(config.max_burst),
            key::FIRST_BURST_LENGTH => p.first_burst = length()?.min(config.first_burst),
            key::INITIAL_R2T => p.initial_r2t = text::boolean(pair.value).ok_or(BAD)? || config.initial_r2t,
            key::IMMEDIATE_DATA => {
                p.immediate_data = text::boolean(pair.value).ok_or(BAD)? && config.immediate_data;
            }
            key::MAX_OUTSTANDING_R2T if pair.value != "1" => return Err(BAD),
            key::ERROR_RECOVERY_LEVEL if pair.value != "0" => return Err(BAD),
            key::DATA_PDU_IN_ORDER | key::DATA_SEQUENCE_IN_ORDER if pair.value != "Yes" => return Err(BAD),
            key::MAX_OUTSTANDING_R2T
            | key::ERROR_RECOVERY_LEVEL
            | key::DATA_PDU_IN_ORDER
            | key::DATA_SEQUENCE_IN_ORDER
            | key::MAX_CONNECTIONS
            | key::DEFAULT_TIME2WAIT
            | key::DEFAULT_TIME2RETAIN
            | key::TARGET_ALIAS
            | key::TARGET_ADDRESS
            | key::TARGET_PORTAL_GROUP_TAG => {}
            // An offer of the target's own that we do not know.
            other => text::put(echo, other, text::NOT_UNDERSTOOD),
        }
        Ok(())
    }
    fn finish(&mut self, r: &LoginResponse) -> Result<Next, Error> {
        if r.tsih == 0 {
            return Err(Error::Protocol(IscsiFault::NoSessionHandle));
        }
        self.tsih = r.tsih;
        self.phase = Phase::Done;
        // RFC 7143 13.14: FirstBurstLength must not exceed MaxBurstLength.
        self.parameters.first_burst = self.parameters.first_burst.min(self.parameters.max_burst);
        Ok(Next::Done(self.parameters))
    }
}

fn find<'a>(data: &'a [u8], key: &str) -> Result<Option<&'a str>, Error> {
    let mut found = None;
    for pair in text::pairs(data) {
        let pair = pair.map_err(|_| Error::Protocol(IscsiFault::LoginTextInvalid))?;
        if pair.key == key {
            found = Some(pair.value);
        }
    }
    Ok(found)
}

/// RFC 1994 4.1: the hash of identifier, secret and challenge.
fn chap_response(algorithm: u64, id: u8, secret: &[u8], challenge: &[u8]) -> Vec<u8> {
    fn hash<D: Digest>(parts: [&[u8]; 3]) -> Vec<u8> {
        let mut d = D::new();
        parts.iter().for_each(|p| d.update(p));
        d.finalize().to_vec()
    }
    let parts = [&[id][..], secret, challenge];
    if algorithm == MD5 { hash::<md5::Md5>(parts) } else { hash::<sha2::Sha256>(parts) }
}
