//! From the first PDU to a queue that takes commands: ICReq, Connect and its data, and the Steward's answer.

use super::{Connection, Queue, Role, Stage};
use crate::pdu::{ALIGNMENT_FIELD_MAX, IcReq, IcResp, Violation, encode, fes};
use crate::spec::fabrics::fctype;
use crate::spec::{ConnectFields, Cqe, Sgl, Sqe, StatusField, admin};
use crate::subsystem::connect::{self, Login};
use crate::subsystem::controller::{Birth, Controller};
use crate::subsystem::io::IoQueue;
use crate::subsystem::namespaces::Namespaces;
use crate::subsystem::rx::{Payload, Rx, To};
use crate::subsystem::table::{Completion, Table};
use crate::subsystem::{ASYNC_EVENTS_MAX, H2C_DATA_MAX};
use base::front::Close;
use base::view::LoginName;
use base::{Answer, Bug, FrontIo, Instant, NvmeFault, planted};
use std::collections::VecDeque;

impl Connection {
    /// NVMe/TCP 3.6.2.2: ICReq.
    pub(super) fn initialize(&mut self, request: IcReq, io: &mut impl FrontIo) -> Result<(), Violation> {
        if request.pfv != 0 {
            return Err(Violation { fes: fes::UNSUPPORTED, fei: 8, why: NvmeFault::FormatVersion });
        }
        if request.hpda > ALIGNMENT_FIELD_MAX {
            return Err(Violation::field(10, NvmeFault::Hpda));
        }
        self.digests = request.digests;
        self.hpda = request.hpda;
        self.decoder.negotiated(self.digests, 0);
        let response = IcResp { pfv: 0, cpda: 0, digests: self.digests, maxh2cdata: H2C_DATA_MAX };
        io.header(&encode::ic_resp(response));
        self.stage = Stage::AwaitingConnect;
        Ok(())
    }

    /// A command on a queue that does not exist yet.
    pub(super) fn before_connect(&mut self, sqe: Sqe, data: u32, digest: bool, io: &mut impl FrontIo) {
        let refuse = |status: StatusField| Completion::failed(status.dnr());
        let mut payload = Payload::to_nobody(data, digest);
        let refused = if sqe.opcode != admin::FABRICS || sqe.fctype() != fctype::CONNECT {
            refuse(StatusField::COMMAND_SEQUENCE)
        } else if sqe.sgl.kind != Sgl::IN_CAPSULE {
            refuse(StatusField::SGL_TYPE_INVALID)
        } else if sqe.sgl.length.get() != 1024 {
            refuse(StatusField::SGL_LENGTH_INVALID)
        } else if sqe.sgl.address.get().checked_add(1024).is_none_or(|end| end > u64::from(data)) {
            refuse(StatusField::SGL_OFFSET_INVALID)
        } else {
            let skip = sqe.sgl.address.get() as u32;
            payload = Payload { to: To::Connect, skip, left: 1024, tail: data - skip - 1024, ..payload };
            self.stage = Stage::AwaitingConnectData(Login::new(ConnectFields::of(&sqe)));
            self.rx = Rx::Payload(payload);
            return;
        };
        self.rx = Rx::Payload(payload);
        self.respond(io, sqe.cid.get(), refused);
    }

    pub(super) fn connect_data_here(&mut self, sound: bool, io: &mut impl FrontIo) {
        let stage = std::mem::replace(&mut self.stage, Stage::AwaitingConnect);
        let Stage::AwaitingConnectData(mut login) = stage else {
            unreachable!("data of Connect follow Connect")
        };
        let asked = if sound {
            login.check(&self.config, io.view())
        } else {
            Err(Completion::failed(StatusField::TRANSIENT_TRANSPORT))
        };
        match asked {
            Ok(ask) => {
                self.stage = Stage::AwaitingAnswer(login);
                io.ask(ask);
            }
            Err(refused) => {
                io.refused(login.hostnqn(), connect::why(&refused).into());
                self.respond(io, login.fields.cid.get(), refused);
            }
        }
    }

    /// The Steward has answered: the queue exists, or not.
    pub(super) fn connected(&mut self, now: Instant, login: &Login, answer: Answer, io: &mut impl FrontIo) {
        let cid = login.fields.cid.get();
        let name = LoginName::Nqn(login.hostnqn());
        let changed = !io.view().admits(name, login.principal) && !planted(Bug::LoginOutlives);
        let id = match if changed { Answer::Changed } else { answer } {
            Answer::Admitted { id } => id,
            Answer::Changed => {
                let gone = io.view().principal(name).is_none();
                let status = if gone { StatusField::CONNECT_HOST.dnr() } else { StatusField::CONNECT_BUSY };
                io.refused(login.hostnqn(), NvmeFault::ChangedMeanwhile.into());
                self.respond(io, cid, Completion::failed(status));
                return self.close(io, Close::Refused(NvmeFault::ChangedMeanwhile.into()));
            }
            Answer::Unknown => {
                io.refused(login.hostnqn(), NvmeFault::ControllerGone.into());
                return self.respond(io, cid, Login::unknown_controller());
            }
            Answer::Disabled => {
                io.refused(login.hostnqn(), NvmeFault::ControllerDisabled.into());
                return self.respond(io, cid, Completion::failed(StatusField::COMMAND_SEQUENCE));
            }
            // The news of the end of an older one may be on its way: the host may try again.
            Answer::Taken => {
                io.refused(login.hostnqn(), NvmeFault::QueueTaken.into());
                return self.respond(io, cid, Completion::failed(StatusField::COMMAND_SEQUENCE));
            }
            Answer::Full => {
                io.refused(login.hostnqn(), NvmeFault::ControllersFull.into());
                return self.respond(io, cid, Completion::failed(StatusField::CONNECT_BUSY));
            }
        };
        let is_admin = login.fields.qid.get() == 0;
        let commands_max = login.entries() + if is_admin { ASYNC_EVENTS_MAX } else { 0 };
        let host = login.principal.map(|p| p.host);
        if let Err(why) = io.admit(commands_max) {
            io.refused(login.hostnqn(), why);
            self.respond(io, cid, Completion::failed(StatusField::CONNECT_BUSY));
            return self.close(io, Close::Refused(why));
        }
        self.table = Table::new(commands_max);
        self.out = VecDeque::with_capacity(usize::from(commands_max));
        let flow_control = login.flow_control();
        let entries = u32::from(login.entries());
        // Connect was the queue's first command. SQHD FFFFh says that flow control is off
        // (NVMe Base 6.3, Connect response).
        self.queue = Queue { entries, head: 1 % entries, flow_control };
        self.role = match (is_admin, host) {
            (true, host) => {
                let birth = Birth {
                    id,
                    discovery: login.discovery,
                    host,
                    hostnqn: login.hostnqn().to_owned(),
                    host_id: login.data.hostid,
                    kato: login.fields.kato.get(),
                };
                Role::Admin(Box::new(Controller::new(birth, &self.config, io.view(), now)))
            }
            (false, Some(host)) => {
                let namespaces = Namespaces::of(io.view().host(host));
                let hostnqn = login.hostnqn().to_owned();
                // ACRE comes by an intervention, if the host has set it.
                Role::Io(Box::new(IoQueue { host, hostnqn, namespaces, retry_delay: false }))
            }
            (false, None) => unreachable!("a discovery controller has no I/O queues"),
        };
        self.stage = Stage::Live;
        self.login_deadline = None;
        let head = if flow_control { self.queue.head as u16 } else { 0xffff };
        let cqe = Cqe { dw0: u32::from(id).into(), cid: cid.into(), sqhd: head.into(), ..Cqe::default() };
        io.header(&encode::response(&cqe, self.digests));
    }
}
