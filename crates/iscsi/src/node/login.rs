//! The login phase (RFC 7143 6.3, 12, 13): from the first PDU to the question to the Steward.
//!
//! ```text
//! Security: Start ─AuthMethod=None─▶ Proven ──┐
//!             └─AuthMethod=CHAP─▶ Algorithm ─CHAP_A─▶ Response ─CHAP_N,CHAP_R─▶ Proven
//! Operational: each key once ─────────────────┴─▶ Finish (ask the Steward) ─▶ full feature phase
//! ```

use super::{ConnectionConfig, FIRST_BURST, MAX_BURST, MAX_OUTSTANDING_R2T, MAX_RECV, TEXT_BYTES_MAX};
use crate::chap::{self, Algorithm};
use crate::pdu::{LoginRequest, Stage, login_status as status};
use crate::text::{self, LENGTH_RANGE, Parameters, key};
use base::view::{Host, LoginName, Principal, View};
use base::{IscsiFault, Prng};

/// Login PDUs of one login: more is a loop.
const REQUESTS_MAX: u32 = 64;

/// Where the proof of identity stands.
#[derive(Debug)]
enum Proof {
    /// Waits for AuthMethod.
    Start,
    /// CHAP was chosen; waits for CHAP_A.
    Algorithm,
    /// The challenge is out; waits for CHAP_N and CHAP_R.
    Response { algorithm: Algorithm, id: u8, challenge: Vec<u8> },
    /// Nothing more to prove.
    Proven,
}

/// What to do after a login request.
#[derive(Debug)]
pub(super) enum Outcome {
    /// Answer with this; `transit` as far as we agree.
    Reply { transit: bool },
    /// The initiator goes to full feature phase, if the Steward agrees.
    Finish,
    /// It is over: the status, and a word for `status`.
    Fail(u16, IscsiFault),
}

/// One login.
#[derive(Debug)]
pub(super) struct Login {
    pub stage: Stage,
    pub first: Option<LoginRequest>,
    pub initiator: String,
    pub discovery: bool,
    /// What it is let in by, as of its first request.
    pub principal: Option<Principal>,
    pub parameters: Parameters,
    /// Our MaxRecvDataSegmentLength is declared.
    pub declared_max_recv: bool,
    target: Option<String>,
    session_type: Option<bool>,
    proof: Proof,
    seen: u64,
    text: Vec<u8>,
    requests: u32,
    answered: bool,
    /// The initiator's MaxBurstLength, from the request in which it comes on.
    offered_burst: Option<u64>,
    /// An offer that we refuse: the login goes on, but the initiator may end it for that.
    pub(super) declined: Option<IscsiFault>,
}

type Failure = (u16, IscsiFault);

fn error<T>(why: IscsiFault) -> Result<T, Failure> {
    Err((status::INITIATOR_ERROR, why))
}

/// The security keys of one request.
#[derive(Default)]
struct Security<'a> {
    method: Option<&'a str>,
    algorithm: Option<&'a str>,
    name: Option<&'a str>,
    response: Option<&'a str>,
    id: Option<&'a str>,
    challenge: Option<&'a str>,
}

impl Login {
    pub(super) fn new() -> Self {
        Self {
            stage: Stage::Security,
            first: None,
            initiator: String::new(),
            discovery: false,
            principal: None,
            parameters: Parameters::default(),
            declared_max_recv: false,
            target: None,
            session_type: None,
            proof: Proof::Start,
            seen: 0,
            text: Vec::new(),
            requests: 0,
            answered: false,
            offered_burst: None,
            declined: None,
        }
    }

    /// A whole login request with its text; keys of the answer are appended to `out`.
    pub(super) fn on_request(
        &mut self,
        request: &LoginRequest,
        data: &[u8],
        config: &ConnectionConfig,
        view: &View,
        prng: &mut Prng,
        out: &mut Vec<u8>,
    ) -> Outcome {
        match self.judge(request, data, config, view, prng, out) {
            Ok(outcome) => outcome,
            Err((status, why)) => Outcome::Fail(status, why),
        }
    }

    fn judge(
        &mut self,
        request: &LoginRequest,
        data: &[u8],
        config: &ConnectionConfig,
        view: &View,
        prng: &mut Prng,
        out: &mut Vec<u8>,
    ) -> Result<Outcome, Failure> {
        self.requests += 1;
        if self.requests > REQUESTS_MAX {
            return error(IscsiFault::LoginEndless);
        }
        self.header(request)?;
        if self.text.len() + data.len() > TEXT_BYTES_MAX {
            return error(IscsiFault::LoginTextLong);
        }
        self.text.extend_from_slice(data);
        if request.continues {
            // RFC 7143 11.12.2: an empty answer asks for the rest.
            return Ok(Outcome::Reply { transit: false });
        }
        let whole = core::mem::take(&mut self.text);
        let first = !core::mem::replace(&mut self.answered, true);
        let mut security = Security::default();
        if first {
            self.names(&whole, view)?;
            if !self.discovery {
                // RFC 7143 13.9: declared in the first answer.
                text::put_number(out, key::TARGET_PORTAL_GROUP_TAG, u64::from(config.port()));
            }
        }
        let mut said = 0;
        for pair in text::pairs(&whole) {
            let Ok(pair) = pair else { return error(IscsiFault::LoginTextPairs) };
            if pair.key == key::MAX_BURST_LENGTH && self.offered_burst.is_none() {
                self.offered_burst = text::number(pair.value).filter(|n| LENGTH_RANGE.contains(n));
            }
            // RFC 7143 6.1: no key twice in one request, whatever it says.
            if let Some(index) = NAMES.iter().position(|k| *k == pair.key) {
                if said & 1 << index != 0 {
                    return error(IscsiFault::NameTwice);
                }
                said |= 1 << index;
            }
        }
        for pair in text::pairs(&whole).filter_map(Result::ok) {
            self.pair(pair.key, pair.value, &mut security, out)?;
        }
        if self.stage == Stage::Security {
            self.security(&security, request.transit, view, prng, out)?;
        } else if matches!(self.proof, Proof::Start) {
            // The initiator began with operational keys: that is AuthMethod None.
            self.without_proof(view)?;
        }
        if self.stage == Stage::Operational && !self.declared_max_recv {
            self.declared_max_recv = true;
            text::put_number(out, key::MAX_RECV_DATA_SEGMENT_LENGTH, u64::from(MAX_RECV));
        }
        if !request.transit || !matches!(self.proof, Proof::Proven) {
            return Ok(Outcome::Reply { transit: false });
        }
        self.stage = request.next;
        if self.stage == Stage::FullFeature {
            // RFC 7143 13.14: a first burst longer than a burst means nothing.
            self.parameters.first_burst = self.parameters.first_burst.min(self.parameters.max_burst);
            return Ok(Outcome::Finish);
        }
        Ok(Outcome::Reply { transit: true })
    }

    /// RFC 7143 11.12: what headers of one login must have in common, and which stages may follow.
    fn header(&mut self, r: &LoginRequest) -> Result<(), Failure> {
        if r.version_min > 0 {
            return Err((status::UNSUPPORTED_VERSION, IscsiFault::Version));
        }
        match &self.first {
            None => {
                self.first = Some(*r);
                self.stage = r.current;
            }
            Some(first) if first.isid != r.isid || first.tsih != r.tsih || first.cid != r.cid => {
                return error(IscsiFault::LoginOtherSession);
            }
            Some(_) => {}
        }
        let order = match (r.current, r.next) {
            (Stage::Security, Stage::Operational | Stage::FullFeature) => true,
            (Stage::Operational, Stage::FullFeature) => true,
            (Stage::Security | Stage::Operational, _) => !r.transit,
            (Stage::Reserved | Stage::FullFeature, _) => false,
        };
        if r.current != self.stage || !order || r.transit && r.continues {
            return Err((status::INVALID_REQUEST, IscsiFault::LoginStages));
        }
        Ok(())
    }

    /// RFC 7143 6.3: initiator, session type and target, all in the first request.
    fn names(&mut self, whole: &[u8], view: &View) -> Result<(), Failure> {
        let find = |wanted: &str| text::pairs(whole).filter_map(Result::ok).find(|p| p.key == wanted);
        let missing = |why| Err((status::MISSING_PARAMETER, why));
        match find(key::INITIATOR_NAME) {
            Some(p) if (1..=223).contains(&p.value.len()) => self.initiator = p.value.to_owned(),
            Some(_) => return error(IscsiFault::InitiatorNameLength),
            None => return missing(IscsiFault::NoInitiatorName),
        }
        self.discovery = match find(key::SESSION_TYPE).map(|p| p.value) {
            None | Some("Normal") => false,
            Some("Discovery") => true,
            Some(_) => return Err((status::SESSION_TYPE, IscsiFault::SessionType)),
        };
        self.session_type = Some(self.discovery);
        let target = find(key::TARGET_NAME).map(|p| p.value);
        self.target = target.map(str::to_owned);
        self.principal = view.principal(LoginName::Iqn(&self.initiator));
        match (target, self.discovery) {
            (None, false) => return missing(IscsiFault::NoTargetName),
            (Some(name), _) if !name.eq_ignore_ascii_case(&view.system.iqn) => {
                return Err((status::NOT_FOUND, IscsiFault::OtherTarget));
            }
            _ => {}
        }
        if self.principal.is_none() && !self.discovery {
            return Err((status::FORBIDDEN, IscsiFault::NotLetIn));
        }
        Ok(())
    }

    fn host<'v>(&self, view: &'v View) -> Option<&'v Host> {
        view.host(self.principal?.host)
    }

    fn without_proof(&mut self, view: &View) -> Result<(), Failure> {
        if self.host(view).is_some_and(|h| h.chap_secret.is_some()) {
            return Err((status::AUTHENTICATION_FAILURE, IscsiFault::SecretUnproven));
        }
        if self.host(view).is_none() && !self.discovery {
            return Err((status::FORBIDDEN, IscsiFault::NotLetIn));
        }
        self.proof = Proof::Proven;
        Ok(())
    }

    /// RFC 7143 12.1.
    fn security(
        &mut self,
        keys: &Security<'_>,
        transit: bool,
        view: &View,
        prng: &mut Prng,
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        const REFUSED: u16 = status::AUTHENTICATION_FAILURE;
        let chap_keys = [keys.algorithm, keys.name, keys.response, keys.id, keys.challenge];
        match &self.proof {
            Proof::Start => {
                if chap_keys.iter().any(Option::is_some) {
                    return error(IscsiFault::ChapUnchosen);
                }
                let Some(offer) = keys.method else {
                    return if transit { self.without_proof(view) } else { Ok(()) };
                };
                let secret = self.host(view).is_some_and(|h| h.chap_secret.is_some());
                let ours = if secret { "CHAP" } else { "None" };
                if text::choose(offer, &[ours]).is_none() {
                    return Err((REFUSED, IscsiFault::NoCommonMethod));
                }
                text::put(out, key::AUTH_METHOD, ours);
                if secret {
                    self.proof = Proof::Algorithm;
                    Ok(())
                } else {
                    self.without_proof(view)
                }
            }
            _ if keys.method.is_some() => error(IscsiFault::MethodChosen),
            Proof::Algorithm => {
                let Some(list) = keys.algorithm else { return error(IscsiFault::NoChapAlgorithm) };
                if chap_keys[1..].iter().any(Option::is_some) {
                    return error(IscsiFault::ChapBeforeChallenge);
                }
                let Some(algorithm) = Algorithm::choose(list) else {
                    return Err((REFUSED, IscsiFault::NoCommonAlgorithm));
                };
                let id = prng.next_u64() as u8;
                let mut challenge = vec![0; algorithm.bytes()];
                prng.fill(&mut challenge);
                text::put(out, key::CHAP_A, algorithm.value());
                text::put_number(out, key::CHAP_I, u64::from(id));
                text::put_binary(out, key::CHAP_C, &challenge);
                self.proof = Proof::Response { algorithm, id, challenge };
                Ok(())
            }
            Proof::Response { algorithm, id, challenge } => {
                if keys.algorithm.is_some() {
                    return error(IscsiFault::AlgorithmChosen);
                }
                let (Some(name), Some(response)) = (keys.name, keys.response) else {
                    return Err((REFUSED, IscsiFault::ChallengeUnanswered));
                };
                // The host may have gone, or its secret changed, since the login began.
                let Some(host) = self.host(view) else {
                    return Err((status::FORBIDDEN, IscsiFault::NotLetIn));
                };
                let Some(secret) = &host.chap_secret else {
                    return Err((REFUSED, IscsiFault::SecretGone));
                };
                let right_name = match host.chap_user.as_str() {
                    "" => name.eq_ignore_ascii_case(&self.initiator),
                    user => name == user,
                };
                let want = algorithm.response(*id, &secret.0, challenge);
                let got = text::binary(response, 64).unwrap_or_default();
                // Both are looked at, so that time does not show which was wrong.
                if !(chap::same(&want, &got) & right_name) {
                    return Err((REFUSED, IscsiFault::SecretWrong));
                }
                match (keys.id, keys.challenge) {
                    (None, None) => {}
                    (Some(their_id), Some(theirs)) => {
                        let their_id = text::number(their_id).and_then(|n| u8::try_from(n).ok());
                        let theirs = text::binary(theirs, chap::CHALLENGE_BYTES_MAX);
                        let (Some(their_id), Some(theirs)) = (their_id, theirs) else {
                            return error(IscsiFault::ChallengeInvalid);
                        };
                        // RFC 7143 12.1.3: an initiator that sends our own challenge back wants the target to compute its response.
                        if theirs == *challenge {
                            return Err((REFUSED, IscsiFault::ChallengeReflected));
                        }
                        let Some(mutual) = &host.mutual_secret else {
                            return Err((REFUSED, IscsiFault::NoMutualSecret));
                        };
                        // One secret for both directions would let a response be replayed.
                        if mutual == secret {
                            return Err((REFUSED, IscsiFault::SecretsSame));
                        }
                        text::put(out, key::CHAP_N, &view.system.iqn);
                        let answer = algorithm.response(their_id, &mutual.0, &theirs);
                        text::put_binary(out, key::CHAP_R, &answer);
                    }
                    _ => return error(IscsiFault::ChallengeHalf),
                }
                self.proof = Proof::Proven;
                Ok(())
            }
            Proof::Proven if chap_keys.iter().any(Option::is_some) => error(IscsiFault::ChapOver),
            Proof::Proven => Ok(()),
        }
    }

    /// One key: RFC 7143 13 says of each what it may be and how the two offers become one.
    fn pair<'a>(
        &mut self,
        name: &'a str,
        value: &'a str,
        security: &mut Security<'a>,
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        // Declarations that some initiators repeat in every stage: the same again says nothing new.
        let repeated = match name {
            key::INITIATOR_NAME => Some(self.initiator == value),
            key::TARGET_NAME => Some(self.target.as_deref() == Some(value)),
            key::SESSION_TYPE => Some(self.session_type == Some(value == "Discovery")),
            key::INITIATOR_ALIAS => Some(true),
            _ => None,
        };
        match repeated {
            Some(true) => return Ok(()),
            Some(false) => return error(IscsiFault::LoginOtherNames),
            None => {}
        }
        let slot = match name {
            key::AUTH_METHOD => Some(&mut security.method),
            key::CHAP_A => Some(&mut security.algorithm),
            key::CHAP_N => Some(&mut security.name),
            key::CHAP_R => Some(&mut security.response),
            key::CHAP_I => Some(&mut security.id),
            key::CHAP_C => Some(&mut security.challenge),
            _ => None,
        };
        if let Some(slot) = slot {
            if self.stage != Stage::Security {
                return error(IscsiFault::SecurityKeysLate);
            }
            return if slot.replace(value).is_some() { error(IscsiFault::KeyTwice) } else { Ok(()) };
        }
        let Some(index) = OPERATIONAL.iter().position(|k| *k == name) else {
            if [key::TARGET_ALIAS, key::TARGET_ADDRESS, key::TARGET_PORTAL_GROUP_TAG, key::SEND_TARGETS]
                .contains(&name)
            {
                return error(IscsiFault::KeyMisplaced);
            }
            if value != text::NOT_UNDERSTOOD {
                text::put(out, name, text::NOT_UNDERSTOOD);
            }
            return Ok(());
        };
        // RFC 7143 6.2: each key is negotiated once.
        if self.seen & 1 << index != 0 {
            return error(IscsiFault::KeyNegotiatedTwice);
        }
        self.seen |= 1 << index;
        self.operational(name, value, out)
    }

    fn operational(&mut self, name: &str, value: &str, out: &mut Vec<u8>) -> Result<(), Failure> {
        let p = &mut self.parameters;
        if self.discovery && SESSION_ONLY.contains(&name) {
            text::put(out, name, text::IRRELEVANT);
            return Ok(());
        }
        let number =
            |range: core::ops::RangeInclusive<u64>| text::number(value).filter(|n| range.contains(n));
        let mut answer_number = |n: Option<u64>| match n {
            Some(n) => text::put_number(out, name, n),
            None => text::put(out, name, text::REJECT),
        };
        match name {
            key::MAX_RECV_DATA_SEGMENT_LENGTH => match number(LENGTH_RANGE) {
                Some(n) => p.peer_max_recv = n as u32, // a declaration: no answer
                None => return error(IscsiFault::MaxRecvRange),
            },
            key::HEADER_DIGEST | key::DATA_DIGEST => match text::choose(value, &["CRC32C", "None"]) {
                Some(chosen) => {
                    let on = chosen == "CRC32C";
                    if name == key::HEADER_DIGEST {
                        p.header_digest = on;
                    } else {
                        p.data_digest = on;
                    }
                    text::put(out, name, chosen);
                }
                None => {
                    self.declined = Some(IscsiFault::DigestUnknown);
                    text::put(out, name, text::REJECT);
                }
            },
            key::MAX_CONNECTIONS => answer_number(number(1..=65535).map(|_| 1)),
            key::ERROR_RECOVERY_LEVEL => answer_number(number(0..=2).map(|_| 0)),
            key::PROTOCOL_LEVEL => answer_number(number(0..=31).map(|n| n.min(1))),
            key::MAX_BURST_LENGTH => {
                let n = number(LENGTH_RANGE).map(|n| n.min(u64::from(MAX_BURST)));
                p.max_burst = n.map_or(p.max_burst, |n| n as u32);
                answer_number(n);
            }
            key::FIRST_BURST_LENGTH => {
                // RFC 7143 13.14: no longer than a burst, which may stand behind it in the same request.
                let burst = self.offered_burst.unwrap_or(u64::from(p.max_burst));
                let n = number(LENGTH_RANGE).map(|n| n.min(u64::from(FIRST_BURST)).min(burst));
                p.first_burst = n.map_or(p.first_burst, |n| n as u32);
                answer_number(n);
            }
            key::MAX_OUTSTANDING_R2T => {
                let n = number(1..=65535).map(|n| n.min(u64::from(MAX_OUTSTANDING_R2T)));
                p.max_outstanding_r2t = n.map_or(p.max_outstanding_r2t, |n| n as u16);
                answer_number(n);
            }
            key::DEFAULT_TIME2WAIT => {
                let n = number(0..=3600).map(|n| n.max(2));
                p.time2wait = n.map_or(p.time2wait, |n| n as u16);
                answer_number(n);
            }
            key::DEFAULT_TIME2RETAIN => {
                // No task outlives its connection.
                let n = number(0..=3600).map(|_| 0);
                p.time2retain = n.map_or(p.time2retain, |n| n as u16);
                answer_number(n);
            }
            key::INITIAL_R2T | key::IMMEDIATE_DATA => match (text::boolean(value), name) {
                // OR with our No, AND with our Yes: as the initiator likes.
                (Some(on), key::INITIAL_R2T) => {
                    p.initial_r2t = on;
                    text::put_bool(out, name, on);
                }
                (Some(on), _) => {
                    p.immediate_data = on;
                    text::put_bool(out, name, on);
                }
                (None, _) => text::put(out, name, text::REJECT),
            },
            key::DATA_PDU_IN_ORDER | key::DATA_SEQUENCE_IN_ORDER => match text::boolean(value) {
                // OR with our Yes.
                Some(_) => text::put_bool(out, name, true),
                None => text::put(out, name, text::REJECT),
            },
            // RFC 7143 13.25: markers are obsolete.
            key::OF_MARKER | key::IF_MARKER => text::put_bool(out, name, false),
            key::OF_MARK_INT | key::IF_MARK_INT => text::put(out, name, text::IRRELEVANT),
            _ => match text::choose(value, &["FastAbort", "ResponseFence", "RFC3720"]) {
                Some(chosen) => text::put(out, name, chosen),
                None => text::put(out, name, text::REJECT),
            },
        }
        Ok(())
    }
}

/// Who speaks to whom, for what: each request may say these, once.
const NAMES: [&str; 4] = [key::INITIATOR_NAME, key::TARGET_NAME, key::SESSION_TYPE, key::INITIATOR_ALIAS];

const OPERATIONAL: &[&str] = &[
    key::HEADER_DIGEST,
    key::DATA_DIGEST,
    key::MAX_RECV_DATA_SEGMENT_LENGTH,
    key::MAX_CONNECTIONS,
    key::ERROR_RECOVERY_LEVEL,
    key::PROTOCOL_LEVEL,
    key::MAX_BURST_LENGTH,
    key::FIRST_BURST_LENGTH,
    key::MAX_OUTSTANDING_R2T,
    key::DEFAULT_TIME2WAIT,
    key::DEFAULT_TIME2RETAIN,
    key::INITIAL_R2T,
    key::IMMEDIATE_DATA,
    key::DATA_PDU_IN_ORDER,
    key::DATA_SEQUENCE_IN_ORDER,
    key::OF_MARKER,
    key::IF_MARKER,
    key::OF_MARK_INT,
    key::IF_MARK_INT,
    key::TASK_REPORTING,
];

/// RFC 7143 13: keys that mean nothing in a discovery session.
const SESSION_ONLY: &[&str] = &[
    key::MAX_CONNECTIONS,
    key::MAX_BURST_LENGTH,
    key::FIRST_BURST_LENGTH,
    key::MAX_OUTSTANDING_R2T,
    key::INITIAL_R2T,
    key::IMMEDIATE_DATA,
    key::DATA_PDU_IN_ORDER,
    key::DATA_SEQUENCE_IN_ORDER,
    key::TASK_REPORTING,
];
