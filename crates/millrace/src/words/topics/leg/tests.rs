//! What is said of drives, legs and spares, and what helps.

use super::*;
use finding::Signature;

fn helps(cause: LegCause) -> String {
    super::cause(&cause).next.expect("something helps")
}

#[test]
fn what_helps_a_drive_that_became_smaller_depends_on_what_it_is() {
    let small = |path: &str, file| LegCause::DriveTooSmall {
        leg: "/dev/b".into(),
        path: path.into(),
        bytes: 40 << 20,
        needed_bytes: 80 << 20,
        file,
    };
    assert_eq!(
        super::cause(&small("/f/b", true)).message,
        "it is too small: 41943040 of its 83886080 bytes are there"
    );
    assert_eq!(helps(small("/f/b", true)), "truncate -s 83886080 /f/b, then millrace drive return /f/b");
    assert_eq!(
        helps(small("/dev/loop2", false)),
        "truncate -s '>83886080' $(losetup -nO BACK-FILE /dev/loop2), losetup -c /dev/loop2, then millrace drive return /dev/loop2; or millrace drive replace /dev/b NEW"
    );
    let next = helps(small("/dev/b", false));
    assert!(
        next.starts_with("make it 83886080 bytes again") && next.contains("replace /dev/b NEW"),
        "{next}"
    );
}

#[test]
fn a_refused_return_names_the_way_that_loses_nothing() {
    let refused = |why: LegCause, instead| {
        let (drive, pool, why) = ("/f/n".into(), "tank".into(), Box::new(why.into()));
        refusal(&LegRefusal::LegMayNotReturn { drive, pool, why, instead })
    };
    let other = || LegCause::DriveLabelOfOther { pool: "one".into() };
    let said = refused(other(), Instead::Import { pool: "one".into(), drive: "/f/n".into() });
    let words = "/f/n cannot return to pool tank: it carries the label of another drive, of pool one";
    assert_eq!(said, Said::new(words).then("millrace pool import one --drive /f/n"));
    let put_back = |place: &str| Instead::PutBack { place: place.into(), drive: "/f/n".into() };
    let next = |said: Said| said.next.expect("a command");
    assert_eq!(
        next(refused(other(), put_back("/f/p"))),
        "put it back to /f/p, then millrace drive return /f/p"
    );
    assert_eq!(next(refused(other(), put_back("/f/n"))), "millrace drive return /f/n");
    let overwrite = Instead::Overwrite { leg: "/f/b".into(), drive: "/f/n".into() };
    assert_eq!(
        next(refused(other(), overwrite)),
        "millrace drive replace /f/b /f/n --force (copies everything to it)"
    );
    let apart = LegCause::DriveDiverged { leg: "/f/b".into(), path: "/f/n".into(), pool: "tank".into() };
    assert_eq!(
        next(refused(apart, Instead::AsItSays)),
        "if what /f/n holds is right: millrace pool release tank --yes, then millrace pool import tank --force --drive /f/n; if what the pool has now is: millrace drive replace /f/b /f/n --force, which overwrites /f/n"
    );
}

#[test]
fn of_legs_that_all_lost_their_labels_the_operator_chooses_one() {
    let lost = |drive: &str, other: &str| LegCause::DriveMetadataLost {
        drive: drive.into(),
        areas: vec![DriveArea::Records],
        last: true,
        others: Some(vec![other.into()]),
    };
    let said = super::cause(&lost("/f/b", "/f/a"));
    assert_eq!(
        said.message,
        "something else overwrote it in use: its label and its membership records are lost, so data may be, too; nor has /f/a its label: the leg that is restored first is believed, and the other is copied from it"
    );
    let next = "do not stop the daemon; copy what its volumes hold elsewhere, then millrace drive restore-label LEG --yes, with the LEG whose data is to survive: /f/a or /f/b";
    assert_eq!(said.next.as_deref(), Some(next));
    // One command for both: the screen prints it once.
    assert_eq!(helps(lost("/f/a", "/f/b")), next);
}

#[test]
fn spares_that_fit_nowhere_are_named_one_by_one() {
    let small = |spare: &str| SpareUnfit::TooSmall {
        spare: spare.into(),
        mirror: "mirror-1".into(),
        bytes: 80 << 20,
        needed_bytes: (200 << 20) + 1,
    };
    let fit = SpareFit::Some { fits: vec!["mirror-0".into()], why: small("/f/s") };
    assert_eq!(spare_fit(&fit), "fits mirror-0 only: it has 80M, and a drive of mirror-1 needs 200.1M");
    let added = LegEvent::SpareAdded { spare: "/f/s".into(), fit: Some(fit) };
    assert!(event(&added).starts_with("/f/s is a spare of it now; it fits mirror-0 only: "));
    let spares = vec![small("/f/s"), SpareUnfit::Blocks { spare: "/f/t".into() }];
    let told = LegEvent::NoSpareFits { leg: "/f/c".into(), mirror: "mirror-1".into(), spares };
    assert_eq!(
        event(&told),
        "no spare fits in the place of /f/c in mirror-1: the spare /f/s: it has 80M, and a drive of mirror-1 needs 200.1M; the spare /f/t: it takes no 512-byte writes, and the pool has volumes of 512-byte blocks"
    );
}

#[test]
fn what_happened_to_legs_is_told_with_its_pool() {
    let why = || Box::new(LegCause::failed(DriveFault::Gone).into());
    let pool = || "tank".to_string();
    for (event, words) in [
        (LegEvent::LegOut { pool: pool(), why: why() }, "it was taken out of pool tank: the drive is gone"),
        (
            LegEvent::LegJoined { pool: pool(), new: false, full: false },
            "it is back in pool tank; what it missed is being copied to it",
        ),
        (
            LegEvent::LegJoined { pool: pool(), new: true, full: true },
            "it is a leg of pool tank; everything is being copied to it",
        ),
        (
            LegEvent::DriveKeepsLabel { pool: pool(), why: why() },
            "it keeps its label of pool tank: the drive is gone",
        ),
        (
            LegEvent::MirrorCompared { mirror: "mirror-1".into(), bytes: 77_594_624, seconds: 42 },
            "the drives of mirror-1 are the same again: 74M were compared in 42 s",
        ),
    ] {
        assert_eq!(super::event(&event), words);
    }
}

#[test]
fn what_helps_a_drive_that_is_ill_is_a_command() {
    let drive = || "/f/a".to_string();
    let gone = |helps| LegCause::DriveFailed { fault: DriveFault::Gone, helps: Some(helps) };
    assert_eq!(helps(gone(DriveHelp::Attach { drive: drive() })), "attach /f/a again; hosts wait for it");
    assert_eq!(helps(gone(DriveHelp::ClearShape { drive: drive() })), "millrace drive shape /f/a --clear");
    assert_eq!(
        helps(LegCause::DriveFileSystemFull { drive: drive(), last: true }),
        "free some space: df /f/a"
    );
    let reserved = LegCause::DriveOperationsFailed { drive: drive(), fault: DriveFault::Reserved };
    assert!(helps(reserved).contains("tells whose key it is"));
    assert_eq!(
        helps(LegCause::DriveFileRemoved { drive: drive() }),
        "millrace drive replace /f/a NEW, another file; it serves until everything is copied"
    );
    let moved = LegCause::SpareFileMoved { spare: "/f/s".into() };
    assert_eq!(helps(moved), "mv the file back to /f/s");
    assert!(helps(gone(DriveHelp::AwaitSpare { spare: drive() })).contains("it is a spare again by itself"));
    assert!(helps(LegCause::LastFileRemoved).starts_with("do not stop the daemon"));
    let silent = LegCause::DriveSilent { drive: drive(), shaped: true };
    assert_eq!(helps(silent), "millrace drive shape /f/a --clear");
    let holds = LegCause::DriveHolds { drive: drive(), holds: Signature::Xfs };
    assert_eq!(super::cause(&holds), Said::new("/f/a holds an XFS file system"));
}
