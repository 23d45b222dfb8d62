//! Alarms: who is told, and whether they answer. They are those of the head that is asked: each has its own configuration.

use super::extract::Body;
use super::resources::Answer;
use super::{Api, Refused};
use api::{AlarmTest, AlarmTested, Alarms, ErrorBody};
use axum::Json;
use axum::extract::State;
use finding::RequestRefusal;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// All resources of alarms.
pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(list_alarms)).routes(routes!(test_alarms))
}

/// The receivers of this head's alarms, and what stands
#[utoipa::path(get, path = "/alarms", tag = "alarms",
    responses((status = 200, description = "As it is now", body = Alarms), (status = "default", description = "Why not", body = ErrorBody)))]
async fn list_alarms(State(api): State<Api>) -> Answer<Alarms> {
    match &api.process.alarms {
        Some(alarms) => Ok(Json(alarms.list().await)),
        None => Err(RequestRefusal::AlarmsOff.into()),
    }
}

/// Send a test alarm to a receiver, or to all of this head
#[utoipa::path(post, path = "/alarms/test", tag = "alarms", request_body = AlarmTest,
    responses((status = 200, description = "What each answered", body = Vec<AlarmTested>), (status = "default", description = "Why not", body = ErrorBody)))]
async fn test_alarms(State(api): State<Api>, Body(b): Body<AlarmTest>) -> Answer<Vec<AlarmTested>> {
    let alarms = api.process.alarms.as_ref().ok_or(RequestRefusal::AlarmsOff)?;
    match (alarms.test(b.receiver.clone()).await, b.receiver) {
        (Some(tested), _) => Ok(Json(tested)),
        (None, Some(name)) => Err(RequestRefusal::ReceiverUnknown { receiver: name }.into()),
        (None, None) => Err(Refused::from(RequestRefusal::AlarmsOff)),
    }
}

#[cfg(test)]
mod tests {
    use crate::http::tests::fake;
    use api::{AlarmTest, AlarmTested, Alarms, Events};

    #[test]
    fn without_a_receiver_the_way_to_one_is_told() {
        let fake = fake();
        let listed = fake.client.get::<Alarms>("/alarms").map(drop);
        let tested = fake.client.post::<Vec<AlarmTested>>("/alarms/test", &AlarmTest::default()).map(drop);
        for answer in [listed, tested] {
            let failure = answer.expect_err("nobody is told");
            assert_eq!(failure.code.as_deref(), Some("alarms_off"));
            assert!(failure.next.expect("a way").contains("millrace serve --example"));
        }
    }

    #[test]
    fn events_are_chosen_by_time_weight_and_number() {
        let fake = fake();
        let numbers = |query: &str| {
            let found: Events = fake.client.get(&format!("/events?{query}")).expect(query);
            (found.events.iter().map(|e| e.number).collect::<Vec<_>>(), found.next, found.events)
        };
        let (all, next, events) = numbers("since=0");
        assert_eq!((&all[..], next), (&[118, 119, 120][..], 121));
        let from = format!("from={}", events[1].at);
        for (query, wanted) in [
            ("level=warning", &[119, 120][..]),
            ("level=error", &[119]),
            ("last=2", &[119, 120]),
            ("last=1&level=error", &[119]),
            ("last=0", &[]),
            (&from, &[119, 120]),
        ] {
            let (found, next, _) = numbers(query);
            assert_eq!((&found[..], next), (wanted, 121), "{query}: the next one is none of those seen");
        }
        for query in ["level=loud", "from=yesterday", "last=-1"] {
            let failure = fake.client.get::<Events>(&format!("/events?{query}")).expect_err(query);
            assert_eq!(failure.code.as_deref(), Some("parameter_invalid"), "{query}");
        }
    }
}
