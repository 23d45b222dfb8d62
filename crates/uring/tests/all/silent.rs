//! Peers whose path is cut, and peers that live and take nothing.

// The socket option that cuts a path has no safe wrapper.
#![allow(unsafe_code)]

use crate::common::{Note, PATIENCE, echo};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::thread;
use std::time::{Duration, Instant};

/// From here on the kernel drops what comes to this socket, before TCP sees it: to the other end as if the path were cut.
fn cut(peer: &TcpStream) {
    let nothing = libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: 0 };
    let program = libc::sock_fprog { len: 1, filter: (&raw const nothing).cast_mut() };
    let len = size_of_val(&program) as libc::socklen_t;
    // SAFETY: the kernel reads the program, which is of one instruction, during the call.
    let result = unsafe {
        let option = (&raw const program).cast();
        libc::setsockopt(peer.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, option, len)
    };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

#[test]
fn a_cut_path_is_given_up_in_4_s_whether_bytes_are_under_way_or_not() {
    for asks in [false, true] {
        let (house, letters, at) = echo(false, 4);
        let mut peer = TcpStream::connect(at).unwrap();
        peer.write_all(b"before").unwrap();
        peer.read_exact(&mut [0; 6]).unwrap();
        cut(&peer);
        if asks {
            peer.write_all(b"answer me").unwrap();
        }
        let began = Instant::now();
        assert_eq!(letters.recv_timeout(PATIENCE).expect("it is given up").1, Note::Closed(1));
        let took = began.elapsed();
        // It is looked once a second whether something under way is acknowledged; the rest is for a machine under load.
        assert!((2500..6500).contains(&took.as_millis()), "given up after {took:?} (asks: {asks})");
        house.stop().unwrap();
    }
}

#[test]
fn a_peer_that_lives_and_takes_nothing_is_not_given_up() {
    let (house, letters, at) = echo(false, 4);
    let peer = TcpStream::connect(at).unwrap();
    let (mut writer, mut reader) = (peer.try_clone().unwrap(), peer);
    writer.set_nonblocking(true).unwrap();
    // As much as fits: until both windows are shut, so that the echo waits for this peer.
    let (mut sent, mut stuck) = (0, 0);
    while stuck < 20 {
        match writer.write(&[7; 65536]) {
            Ok(n) => {
                sent += n;
                stuck = 0;
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                stuck += 1;
                thread::sleep(Duration::from_millis(10));
            }
            Err(e) => panic!("{e}"),
        }
    }
    thread::sleep(Duration::from_secs(7));
    reader.set_nonblocking(false).unwrap();
    reader.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut left = sent;
    let mut buf = vec![0; 65536];
    while left > 0 {
        let n = reader.read(&mut buf).expect("the echo goes on");
        assert!(n > 0, "the connection was ended with {left} of {sent} bytes to come");
        left -= n;
    }
    assert!(letters.try_recv().is_err());
    house.stop().unwrap();
}
