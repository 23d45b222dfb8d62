use super::*;
use base::HostId;

/// A file with this text, as if an operator had accepted it.
fn signed(name: &str, text: &str) -> Vec<u8> {
    files::sign(name, format!("version = 1\nfile = \"{name}\"\n{text}").as_bytes()).expect("TOML")
}

#[test]
fn identity_portals_and_pools_survive_being_written() {
    let system = new_identity(Uuid::from_random(1, 2));
    assert_eq!(parse_identity(&identity_file(&system)), Ok(Read::all(system.clone())));
    assert_eq!(system.serial.len(), 20);
    let text = "last = 9\n[[portal]]\nnumber = 3\nprotocol = \"iscsi\"\naddress = \"10.1.0.5:3260\"\nhead = \"b\"\nprefix = 24\ninterface = \"eth1\"\n[[portal]]\nnumber = 4\nprotocol = \"nvme\"\naddress = \"[::1]:4420\"\n";
    let read = parse_portals(&signed(PORTALS, text)).expect("good");
    let (rows, last) = read.value.clone();
    assert_eq!((rows[0].id, rows[1].id, last), (PortalId(2), PortalId(3), 9));
    assert_eq!((rows[0].head, rows[1].head, rows[1].moves), (1, 0, None));
    assert_eq!(rows[0].moves.and_then(|m| m.interface), "eth1".parse().ok());
    assert_eq!(parse_portals(&portals_file(&rows, last, &[])), Ok(read));
    let pools = vec![PoolRow {
        uuid: Uuid::from_random(3, 4),
        name: "tank".into(),
        drives: vec!["/a b".into(), "/c".into()],
    }];
    assert_eq!(parse_pools(POOLS, &pools_file(POOLS, &pools, &[])), Ok(Read::all(pools)));
}

#[test]
fn hosts_survive_being_written_and_so_do_rows_that_are_not_understood() {
    let text = "[[host]]\nname = \"esx1\"\nnqn = [\"nqn.2014-08.org.nvmexpress:uuid:36ebf5a9-1df9-47b3-a6d0-e9ba32e428a2\"]\niqn = [\"iqn.1998-01.com.example:a\"]\nchap_secret = \"twelve-bytes!\"\nmutual_secret = \"0x00112233445566778899aabb\"\n[[host]]\nname = \"esx2\"\niqn = [\"iqn.1998-01.com.example:b\"]\nonly_from = \"10.0.0.0/8\"\n";
    let read = parse_hosts(&signed(HOSTS, text), || HostId(1)).expect("good");
    assert_eq!((read.value.iter().count(), read.unknown.len()), (1, 1));
    let again = hosts_file(&read.value, &read.unknown);
    assert_eq!(parse_hosts(&again, || HostId(1)), Ok(read));
    assert!(String::from_utf8(again).expect("text").contains("only_from = \"10.0.0.0/8\""));
}

#[test]
fn what_cannot_be_used_is_named_with_its_row() {
    let row = |r: Result<(), FileFault>| match r {
        Err(FileFault::Content { row, .. }) => row,
        other => panic!("{other:?}"),
    };
    let host = |text: &str| row(check_file(HOSTS, &signed(HOSTS, text)));
    assert_eq!(host("[[host]]\nname = \"a\"\nnqn = [\"x\"]\n"), "a");
    assert_eq!(
        host("[[host]]\nname = \"a\"\niqn = [\"iqn.1998-01.com.x:a\"]\nchap_secret = \"short\"\n"),
        "a"
    );
    let portal = |text: &str| {
        let text = format!("last = 1\n[[portal]]\n{text}");
        row(check_file(PORTALS, &signed(PORTALS, &text)))
    };
    let nvme = "protocol = \"nvme\"\naddress = \"10.1.0.5:4420\"\n";
    assert_eq!(portal("number = 1\nprotocol = \"ftp\"\naddress = \"1.2.3.4:5\"\n"), "1.2.3.4:5");
    assert_eq!(portal("number = 1\nprotocol = \"nvme\"\naddress = \"nowhere\"\n"), "nowhere");
    assert_eq!(portal(&format!("number = 0\n{nvme}")), "10.1.0.5:4420");
    for more in [
        "head = \"c\"",
        "prefix = 33",
        "prefix = 0",
        "interface = \"eth1\"",
        "prefix = 24\ninterface = \"a/b\"",
    ] {
        assert_eq!(portal(&format!("number = 1\n{nvme}{more}\n")), "10.1.0.5:4420", "{more}");
    }
    let twice =
        format!("number = 7\n{nvme}[[portal]]\nnumber = 7\nprotocol = \"nvme\"\naddress = \"1.2.3.4:6\"\n");
    assert_eq!(portal(&twice), "1.2.3.4:6");
    let same = format!(
        "number = 7\n{nvme}[[portal]]\nnumber = 8\nprotocol = \"iscsi\"\naddress = \"10.1.0.5:4420\"\n"
    );
    assert_eq!(portal(&same), "10.1.0.5:4420");
    let identity = String::from_utf8(identity_file(&new_identity(Uuid::from_random(1, 2)))).expect("text");
    let (nil, uuid) = (Uuid::default().to_string(), Uuid::from_random(1, 2).to_string());
    let nobody = files::sign(IDENTITY, identity.replace(&uuid, &nil).as_bytes()).expect("TOML");
    assert_eq!(row(check_file(IDENTITY, &nobody)), "");
    let ways = format!(
        "number = 1\n{nvme}prefix = 24\n[[portal]]\nnumber = 2\nprotocol = \"iscsi\"\naddress = \"10.1.0.5:6\"\nprefix = 16\n"
    );
    assert_eq!(portal(&ways), "10.1.0.5:6");
    assert_eq!(row(check_file(POOLS, &signed(POOLS, "[[pool]]\nuuid = \"tank\"\nname = \"t\"\n"))), "t");
    let missing = check_file(IDENTITY, &signed(IDENTITY, "uuid = \"1\"\n"));
    assert!(matches!(missing, Err(FileFault::Syntax { .. })), "{missing:?}");
}

#[test]
fn a_witness_is_whole_or_none() {
    let leg = array::format::MemberLeg::new(Uuid([3; 16]), array::format::LegState::InSync);
    let row = array::format::RecordArray { epoch: 1, rivals: 0, legs: vec![leg] };
    let record = MembershipRecord::first(Uuid([1; 16]), Uuid([2; 16]), 5, vec![row]);
    let name = witness_name(record.pool);
    let bytes = witness_file(&name, &record.encode());
    assert_eq!(parse_witness(&name, &bytes), Some(record));
    for cut in 0..bytes.len() {
        assert_eq!(parse_witness(&name, &bytes[..cut]), None);
    }
    assert_eq!(parse_witness(&witness_name(Uuid([9; 16])), &bytes), None, "of another pool");
}

#[test]
fn the_log_is_read_back_and_broken_lines_are_passed_over() {
    let e = EventLine {
        number: 7,
        at: 9,
        monotonic: Some(Instant(11)),
        weight: Weight::Warning,
        what: "a\tb".into(),
        event: Event::from_line(Weight::Warning, "c\nd"),
    };
    let text = format!("half a line\n{}x\t", event_text(&e));
    let back = parse_events(text.as_bytes());
    assert_eq!(
        back,
        [EventLine { what: "a b".into(), event: Event::from_line(Weight::Warning, "c d"), ..e.clone() }]
    );
    let older = parse_events(b"7\t9\twarning\ta b\tc d\n");
    assert_eq!(older, [EventLine { monotonic: None, ..back[0].clone() }]);
}
