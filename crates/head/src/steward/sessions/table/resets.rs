//! Cross-Controller Reset: a host has one of its controllers ended by another one, at either head, and hears of it once
//! nothing of that is left (NVMe Base 5.1, TP 8028).

use super::{Identity, OTHER, Other, Place, Session, Sessions, Word};
use crate::mail::{Mail, ShardMail, to_shard};
use base::front::{Close, ControllerLife, Intervention};
use base::{Bug, Effects, planted};

impl Session {
    /// The name of the host whose controller it is, and which takes I/O.
    fn nqn(&self) -> Option<&str> {
        match &self.identity {
            Identity::Controller { nqn, discovery: false, .. } => Some(nqn),
            Identity::Controller { .. } | Identity::Session { .. } => None,
        }
    }
}

impl Sessions {
    /// An admin queue wants the end of another controller of its host: what must be over first.
    pub(super) fn reset(&mut self, asker: Place, life: ControllerLife, fx: &mut Effects<Mail>) -> Vec<Place> {
        let own = self.controllers.values().find(|s| s.places.first() == Some(&asker));
        // The asker's controller may have ended meanwhile.
        let Some(name) = own.and_then(Session::nqn).map(str::to_owned) else { return vec![] };
        let targets = match self.end_controller(&name, life, fx) {
            Some(here) => here,
            None => {
                let there = self.reset_there(name, life);
                self.parting.iter().copied().chain(there).collect()
            }
        };
        if !targets.is_empty() && planted(Bug::CcrAnsweredEarly) { vec![] } else { targets }
    }
    /// A host wants that at the other head.
    pub fn reset_for_other(&mut self, number: u64, name: &str, life: ControllerLife, fx: &mut Effects<Mail>) {
        // What the other head had sent here in a former life may be of that controller.
        let targets = self.end_controller(name, life, fx).unwrap_or_else(|| self.parting.clone());
        self.interventions.begin_for_other(number, Intervention::ResetController { life }, targets, fx);
    }
    /// Ends a controller of the host, if it is here: the connections that are to be gone. Who has its id and another life came
    /// after it, and lives on; but what of it ends already is waited for.
    fn end_controller(
        &mut self,
        name: &str,
        life: ControllerLife,
        fx: &mut Effects<Mail>,
    ) -> Option<Vec<Place>> {
        let session = self.controllers.get_mut(&life.id).filter(|s| s.nqn() == Some(name))?;
        if session.life != Some(life) {
            return Some(session.leaving().to_vec());
        }
        session.ending = true;
        for p in &session.places {
            let mail = ShardMail::Drop { connection: p.connection, why: Close::Reset };
            fx.push(to_shard(p.shard, mail));
        }
        Some(session.places.clone())
    }
    /// What stands for the other head, which may have it.
    fn reset_there(&mut self, name: String, life: ControllerLife) -> Option<Place> {
        match self.other {
            Other::Nothing => None,
            Other::Gone => Some(OTHER),
            Other::Serves if planted(Bug::CcrHereAlone) => None,
            Other::Serves => Some(self.ask_there(|number| Word::Reset { number, name, life })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{admin, enable, place, told};
    use super::*;
    use base::{Ask, PortalId};

    /// A host with a controller at place 1, and one at place 2 with an I/O queue at 3: what that one is known by.
    fn two_controllers() -> (Sessions, ControllerLife) {
        let (mut s, mut fx) = (Sessions::default(), vec![]);
        s.on_ask(place(1), PortalId(0), admin(1), &mut fx);
        s.on_ask(place(2), PortalId(0), admin(1), &mut fx);
        enable(&mut s, 1);
        let life = enable(&mut s, 2);
        assert_eq!(life.id, 2);
        s.on_ask(place(3), PortalId(0), io(2), &mut fx);
        assert_eq!(told(&mut fx).last().expect("it is let in"), "3 Admitted { id: 2 }");
        (s, life)
    }
    fn io(controller: u16) -> Ask {
        Ask::NvmeIo { principal: None, controller, nqn: "nqn.a".into(), host_id: [1; 16], queue: 1 }
    }
    fn reset(s: &mut Sessions, n: u32, life: ControllerLife) -> Vec<String> {
        let mut fx = vec![];
        s.on_intervene(place(n), 7, Intervention::ResetController { life }, &mut fx);
        told(&mut fx)
    }
    fn gone(s: &mut Sessions, n: u32) -> Vec<String> {
        let mut fx = vec![];
        s.on_gone(place(n), &mut fx);
        told(&mut fx)
    }
    const DONE: &str = "1: 7 is done, false";

    #[test]
    fn a_reset_ends_a_controller_and_is_answered_when_all_of_it_is_over() {
        let (mut s, life) = two_controllers();
        assert_eq!(reset(&mut s, 1, life), ["drop 2", "drop 3"]);
        let mut fx = vec![];
        s.on_ask(place(4), PortalId(0), io(2), &mut fx);
        assert_eq!(told(&mut fx), ["4 Unknown"], "it takes no queues any more");
        s.on_ask(place(5), PortalId(0), admin(1), &mut fx);
        assert_eq!(told(&mut fx), [""; 0], "who comes next waits for it, too");
        assert_eq!(gone(&mut s, 2), [""; 0], "its I/O queue has writes at the drives");
        assert_eq!(gone(&mut s, 3), ["5 Admitted { id: 3 }", DONE]);
        assert_eq!(reset(&mut s, 1, life), [DONE], "it is over");
    }

    #[test]
    fn a_controller_whose_connections_are_lost_is_not_over_while_its_commands_are_under_way() {
        let (mut s, life) = two_controllers();
        let mut fx = vec![];
        s.on_ending(place(2), true, &mut fx);
        assert_eq!(told(&mut fx), ["drop 3"]);
        gone(&mut s, 2);
        // What lingers has no time left for that.
        assert_eq!(reset(&mut s, 1, life), ["drop 3"]);
        assert_eq!(gone(&mut s, 3), [DONE]);
    }

    #[test]
    fn who_has_the_id_and_another_life_or_another_host_lives_on() {
        let (mut s, life) = two_controllers();
        for other in [
            ControllerLife { uniquifier: 2, ..life },
            ControllerLife { random: 8, ..life },
            ControllerLife { id: 3, ..life },
        ] {
            assert_eq!(reset(&mut s, 1, other), [DONE]);
        }
        // What of it ends already may have been begun before.
        let mut fx = vec![];
        s.on_ending(place(3), false, &mut fx);
        assert_eq!(reset(&mut s, 1, ControllerLife { random: 8, ..life }), [""; 0]);
        assert_eq!(gone(&mut s, 3), [DONE]);
        let stranger =
            Ask::NvmeAdmin { principal: None, nqn: "nqn.b".into(), host_id: [1; 16], discovery: false };
        s.on_ask(place(9), PortalId(0), stranger, &mut fx);
        told(&mut fx);
        enable(&mut s, 9);
        assert_eq!(reset(&mut s, 9, life), ["9: 7 is done, false"]);
        assert_eq!(s.all().count(), 3, "all are there");
    }

    fn asked(s: &mut Sessions) -> (u64, ControllerLife) {
        match &s.take_words()[..] {
            [Word::Reset { number, name, life }] if name == "nqn.a" => (*number, *life),
            other => panic!("the other head is asked, and nothing else: {other:?}"),
        }
    }
    const FAR: ControllerLife = ControllerLife { id: 8193, uniquifier: 1, random: 5 };

    #[test]
    fn what_is_not_here_may_be_at_the_other_head() {
        let (mut s, _) = two_controllers();
        s.other_serves();
        assert_eq!(reset(&mut s, 1, FAR), [""; 0]);
        let (number, life) = asked(&mut s);
        assert_eq!(life, FAR);
        let mut fx = vec![];
        s.other_has_nothing(number, &mut fx);
        assert_eq!(told(&mut fx), [DONE]);
        // What is here is nobody else's.
        let life = s.controllers[&2].life.expect("it was enabled");
        reset(&mut s, 1, life);
        assert_eq!(s.take_words(), []);
    }

    #[test]
    fn the_other_head_is_told_when_a_controller_of_one_of_its_hosts_is_over() {
        let (mut s, life) = two_controllers();
        s.other_serves();
        let mut fx = vec![];
        s.reset_for_other(6, "nqn.a", life, &mut fx);
        assert_eq!(told(&mut fx), ["drop 2", "drop 3"]);
        gone(&mut s, 2);
        assert_eq!(s.take_words(), []);
        gone(&mut s, 3);
        assert_eq!(s.take_words(), [Word::Done { number: 6 }]);
        s.reset_for_other(7, "nqn.a", life, &mut fx);
        assert_eq!(s.take_words(), [Word::Done { number: 7 }], "and at once if there is none");
        s.reset_for_other(8, "nqn.b", ControllerLife { id: 1, ..life }, &mut fx);
        assert_eq!((s.take_words(), s.all().count()), (vec![Word::Done { number: 8 }], 1), "it is another's");
    }

    #[test]
    fn if_the_other_head_goes_its_fence_and_what_it_had_sent_here_are_waited_for() {
        for asked_before in [true, false] {
            let (mut s, _) = two_controllers();
            s.other_serves();
            if asked_before {
                reset(&mut s, 1, FAR);
                asked(&mut s);
            }
            s.other_is_gone();
            let parting = s.parts(2);
            if !asked_before {
                assert_eq!(reset(&mut s, 1, FAR), [""; 0]);
                assert_eq!(s.take_words(), [], "nobody is there to be asked");
            }
            let mut fx = vec![];
            s.has_parted(0, parting, &mut fx);
            s.other_is_shut_out(&mut fx);
            assert_eq!(told(&mut fx), [""; 0], "a write of it may be at a drive of shard 1");
            s.has_parted(1, parting, &mut fx);
            assert_eq!(told(&mut fx), [DONE]);
            assert_eq!(reset(&mut s, 1, FAR), [DONE], "nothing of it is left");
        }
        // It is back before what its former life had sent here is over.
        let (mut s, _) = two_controllers();
        s.other_serves();
        s.other_is_gone();
        let parting = s.parts(1);
        let mut fx = vec![];
        s.other_is_shut_out(&mut fx);
        s.other_serves();
        s.reset_for_other(1, "nqn.a", FAR, &mut fx);
        assert_eq!(s.take_words(), []);
        s.has_parted(0, parting, &mut fx);
        assert_eq!(s.take_words(), [Word::Done { number: 1 }]);
    }
}
