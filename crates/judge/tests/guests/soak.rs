//! A round or two of the long runs that `make soak` makes, of those with guests.

use judge::soak;
use lab::skipped;

#[test]
fn soak_a_kernel_host_outlives_kills_of_the_daemon_by_both_protocols() {
    if !skipped("a kernel host over kills") {
        soak::print("kernel host", &soak::guest(2));
    }
}

#[test]
fn soak_what_was_flushed_survives_a_power_cut() {
    if !skipped("power cuts of drives with caches") {
        soak::print("power cuts", &soak::cuts(2));
    }
}

#[test]
fn soak_a_head_takes_over_on_real_reservations_and_kernel_hosts_see_no_error() {
    if !skipped("takeovers on persistent reservations") {
        soak::print("takeovers", &soak::takeovers(2));
    }
}
