//! A pool's name means one pool, here or away.

use super::*;

/// What another system's pool of that name is on, released.
fn strangers(seed: u64, names: [&str; 2]) -> Rest {
    let mut other = World::start(drives(&names), seed);
    other.good(create("tank", vec![mirror(names[0], names[1])]));
    other.good(Order::PoolRelease { pool: "tank".into(), force: false, disconnect: false });
    other.rest
}
fn release(w: &mut World) {
    w.good(Order::PoolRelease { pool: "tank".into(), force: false, disconnect: false });
}

#[test]
fn a_name_on_record_is_not_taken_by_another_pool_while_its_own_is_away() {
    let mut w = usual();
    let own = w.status().pools[0].uuid;
    w.good(Order::Shutdown);
    let mut rest = w.rest;
    let away = std::mem::take(&mut rest.drives);
    rest.drives = strangers(9, ["/g/a", "/g/b"]).drives;
    let mut w = World::start(rest, 2);
    for force in [false, true] {
        let (kind, _, words) = w.refused(import(&["/g/a", "/g/b"], force));
        assert!(kind == RefusalKind::Conflict && words.contains(&own.to_string()), "{words}");
        let unnamed = Order::PoolImport { pool: None, drives: vec!["/g/a".into(), "/g/b".into()], force };
        assert_eq!(w.refused(unnamed).0, RefusalKind::Conflict);
    }
    assert!(w.open.is_empty(), "drives that are refused are let go of");
    let list = Order::PoolImportable { drives: vec!["/g/a".into(), "/g/b".into()] };
    let Reply::Importable(list) = w.good(list) else { panic!("a list") };
    assert!(list[0].reason.contains(&own.to_string()), "{:?}", list[0]);
    assert!(list[0].next.as_ref().is_some_and(|n| n.contains("millrace pool release tank")), "{:?}", list[0]);

    // Beside the stranger's the name finds its own.
    w.rest.drives.extend(away);
    w.good(import(&["/g/a", "/g/b"], false));
    let s = w.status();
    assert_eq!((s.pools.len(), s.pools[0].uuid, s.pools[0].state), (1, own, State::Optimal));
    let unnamed = Order::PoolImport { pool: None, drives: vec!["/g/a".into()], force: true };
    let (kind, _, words) = w.refused(unnamed);
    assert!(kind == RefusalKind::Conflict && words.contains(&own.to_string()), "{words}");
}

#[test]
fn a_name_is_free_once_the_pool_that_is_away_is_forgotten() {
    let mut w = usual();
    let own = w.status().pools[0].uuid;
    w.good(Order::Shutdown);
    let mut rest = w.rest;
    rest.drives = strangers(9, ["/g/a", "/g/b"]).drives;
    let mut w = World::start(rest, 2);
    release(&mut w);
    w.good(import(&["/g/a", "/g/b"], false));
    let s = w.status();
    assert!(s.pools.len() == 1 && s.pools[0].uuid != own);
}
