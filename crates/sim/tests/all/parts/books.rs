//! Books of shards: what does not add up is named, with how much.

use head::books::{DriveBooks, FarBooks, ShardBooks};
use sim::world::books::{Wrong, is_quiet, wrong_at_rest, wrong_between};

fn wrong(figure: &str, is: u64, must: u64) -> Wrong {
    Wrong { figure: figure.into(), is, must }
}

/// A shard with a connection of 32 commands, an array, and a far shard that has 1 MiB.
fn shard() -> ShardBooks {
    let far = FarBooks { open: true, granted: 1 << 20, credit: 1 << 20, ..FarBooks::default() };
    ShardBooks {
        promised: 32,
        tags: 32,
        used: 1 << 21,
        kept: 1 << 21,
        far: vec![far],
        ..ShardBooks::default()
    }
}

#[test]
fn a_figure_that_does_not_add_up_is_named() {
    assert_eq!(wrong_at_rest(&shard()), []);
    type Change = fn(&mut ShardBooks);
    let cases: [(Change, Wrong); 7] = [
        (|b| b.tags = 0, wrong("promised slots", 32, 0)),
        (|b| b.flights = 2, wrong("flights", 2, 0)),
        (|b| b.hosts_hold = 4096, wrong("memory that hosts hold", 4096, 0)),
        (|b| b.used += 8192, wrong("memory in use", (1 << 21) + 8192, 1 << 21)),
        (
            |b| b.drives.push(DriveBooks { in_flight: 3, ..DriveBooks::default() }),
            wrong("operations on drive 0", 3, 0),
        ),
        (|b| b.far[0].stale = 1, wrong("commands of far shard 0 by a former connection", 1, 0)),
        (|b| b.far[0].in_use = 4096, wrong("memory in use that is granted to far shard 0", 4096, 0)),
    ];
    for (change, expected) in cases {
        let mut books = shard();
        change(&mut books);
        assert_eq!(wrong_at_rest(&books), [expected]);
    }
    let words = wrong("promised slots", 32, 0).words("server 0, shard 1");
    assert_eq!(words, "books: server 0, shard 1: promised slots is 32, 32 too much: it must be 0");
}

#[test]
fn what_is_granted_is_credit_or_sent_or_kept() {
    let [user, owner] = [(); 2].map(|()| shard().far[0]);
    assert_eq!(wrong_between(&user, &owner), None);
    let (sent, kept) =
        (FarBooks { credit: (1 << 20) - 8192, sent: 4096, ..user }, FarBooks { kept: 4096, ..owner });
    assert_eq!(wrong_between(&sent, &kept), None);
    let lost = FarBooks { credit: (1 << 20) - 4096, ..user };
    let found = wrong_between(&lost, &owner).expect("it is lost");
    assert_eq!((found.is, found.must), ((1 << 20) - 4096, 1 << 20));
    let twice = FarBooks { credit: (1 << 20) + 4096, ..user };
    assert!(wrong_between(&twice, &owner).expect("it is lent twice").words("").contains("4096 too much"));
}

#[test]
fn bytes_on_their_way_are_waited_for() {
    let one = FarBooks { open: true, gone: 10, came: 20, ..FarBooks::default() };
    let other = FarBooks { open: true, gone: 20, came: 10, ..FarBooks::default() };
    assert!(is_quiet(&one, &other));
    for moves in [
        FarBooks { gone: 11, ..one },
        FarBooks { came: 19, ..one },
        FarBooks { unsent: 1, ..one },
        FarBooks { untaken: 1, ..one },
        FarBooks { messages: 1, ..one },
        FarBooks { open: false, ..one },
    ] {
        assert!(!is_quiet(&moves, &other) && !is_quiet(&other, &moves), "{moves:?}");
    }
}
