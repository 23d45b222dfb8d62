//! Counters for whoever keeps a history of them.

use super::*;
use crate::order::{Counters, Figures};
use crate::report::{self, DriveReport};

fn figures(w: &mut World) -> Figures {
    match w.good(Order::Figures) {
        Reply::Figures(figures) => *figures,
        other => panic!("{other:?}"),
    }
}

#[test]
fn counters_of_volumes_and_drives_are_those_of_status() {
    let mut w = usual();
    let none = figures(&mut w);
    assert!(none.fresh && none.volumes.len() == 1, "{none:?}");
    assert!(none.volumes.iter().chain(&none.drives).all(|x| x.counters == Counters::default()), "{none:?}");
    let did = |reads, writes| report::Counters {
        reads,
        writes,
        read_bytes: 4096 * reads,
        write_bytes: 512 * writes,
        ..report::Counters::default()
    };
    w.volumes = vec![(w.layout.volumes[0].id, did(7, 3))];
    let leg = w.layout.arrays[0].membership.legs.iter().flatten().nth(1).expect("a second leg").drive;
    w.figures = vec![DriveReport { drive: leg, counters: did(5, 3), ..DriveReport::default() }];
    let (some, status) = (figures(&mut w), w.status());
    let counters =
        |uuid| some.volumes.iter().chain(&some.drives).find(|x| x.uuid == uuid).map(|x| x.counters);
    assert_eq!((some.volumes[0].counters.reads, some.volumes[0].counters.write_bytes), (7, 1536));
    assert_eq!(some.drives.len(), status.drives.len());
    for v in &status.volumes {
        assert_eq!(counters(v.uuid), Some(v.counters));
    }
    for d in &status.drives {
        assert_eq!(counters(d.uuid.expect("a leg")), Some(d.counters), "{}", d.path);
    }
    assert!(some.drives.iter().any(|d| d.counters.reads == 5));
    assert!(some.basis == none.basis && some.at >= none.at);
    // A head that stops tells nothing more.
    w.good(Order::Shutdown);
    assert!(w.order(Order::Figures).is_err());
}
