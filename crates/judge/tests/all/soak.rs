//! A round or two of the long runs that `make soak` makes, of those without guests.

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
