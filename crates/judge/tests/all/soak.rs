//! A round or two of the long runs that `make soak` makes.

use judge::soak;
use lab::skipped;
use std::time::Duration;

#[test]
fn soak_ill_drives_cost_nothing_and_status_is_true() {
    if !skipped("ill drives under load") {
        soak::print("ill drives", &soak::mixed(Duration::ZERO));
    }
}

#[test]
fn soak_kills_under_load_lose_nothing() {
    if !skipped("kill -9 under load") {
        soak::print("kill -9", &soak::kills(4));
    }
}

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
