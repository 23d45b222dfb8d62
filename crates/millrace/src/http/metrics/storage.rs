//! Metrics of pools, their arrays, volumes and drives.

use super::{Labels, Out, healths, label, seconds};
use crate::cli::drive::name_among;
use api::{Array, Counters, Drive, DriveHealth, Pool, Stages, Status, Times, Volume};
use core::fmt;

/// A figure: its name, its help and how to read it.
type Field<T> = (&'static str, &'static str, fn(&T) -> u64);

fn of_pool(p: &Pool) -> Labels<'_> {
    vec![label("pool", &*p.name)]
}

pub fn pools(status: &Status, out: &mut Out<'_>) -> fmt::Result {
    let all = || status.pools.iter();
    out.states(
        "pool_state",
        "A pool's state: 1 for the one it is in.",
        &healths(),
        all().map(|p| (of_pool(p), Some(p.state))),
    )?;
    let gauges: [Field<Pool>; 10] = [
        ("pool_bytes", "Space for volumes.", |p| p.bytes),
        ("pool_used_bytes", "Space given to volumes.", |p| p.used_bytes),
        ("pool_no_spare", "1 if a spare took the place of a drive and none is left.", |p| p.no_spare.into()),
        ("pool_freeing_bytes", "What of that was given back and becomes free soon.", |p| p.freeing_bytes),
        ("pool_scrub_running", "1 while the legs of a pool's mirrors are compared.", |p| {
            p.scrub.running.into()
        }),
        ("pool_scrub_done_bytes", "What the scrub under way has compared.", |p| p.scrub.done_bytes),
        ("pool_scrub_size_bytes", "What the scrub under way has to compare.", |p| p.scrub.total_bytes),
        (
            "pool_scrub_differed_bytes",
            "What differed in legs, in the scrub under way or the last one.",
            |p| p.scrub.differed_bytes,
        ),
        ("pool_scrub_repaired_bytes", "What of that was written again.", |p| p.scrub.repaired_bytes),
        ("pool_scrub_unreadable_bytes", "What that scrub could not compare.", |p| p.scrub.unreadable_bytes),
    ];
    for (name, help, read) in gauges {
        out.gauge(name, help, all().map(|p| (of_pool(p), read(p))))?;
    }
    let ended = all().filter_map(|p| Some((of_pool(p), p.scrub.last_ended?.0)));
    out.gauge("pool_scrub_ended_timestamp_seconds", "When the last scrub ended, seconds since 1970.", ended)?;
    let left = |p: &Pool| p.clearing.as_ref().map_or(0, |c| c.left_bytes);
    out.gauge(
        "pool_clearing_left_bytes",
        "Space that is still to be cleared of what was there before.",
        all().map(|p| (of_pool(p), left(p))),
    )?;
    let spares = all().flat_map(|p| {
        [("ready", true), ("missing", false)].map(|(state, ready)| {
            let count = p.spares.iter().filter(|s| s.ready == ready).count() as u64;
            (vec![label("pool", &*p.name), label("state", state)], count)
        })
    });
    out.gauge("pool_spares", "Hot spares: ready ones, and those that are not there.", spares)?;
    arrays(status, out)
}

fn arrays(status: &Status, out: &mut Out<'_>) -> fmt::Result {
    let all = || {
        let of = |p: &'_ Pool| p.arrays.len();
        status.pools.iter().flat_map(move |p| {
            (0..of(p))
                .map(move |i| (vec![label("pool", &*p.name), label("array", i.to_string())], &p.arrays[i]))
        })
    };
    out.states(
        "array_state",
        "An array's state: 1 for the one it is in.",
        &healths(),
        all().map(|(l, a)| (l, Some(a.state))),
    )?;
    let gauges: [Field<Array>; 3] = [
        ("array_legs", "Legs.", |a| a.legs.len() as u64),
        ("array_legs_optimal", "Legs that are in sync and work.", |a| {
            a.legs.iter().filter(|l| l.state == api::State::Optimal).count() as u64
        }),
        ("array_dirty_regions", "Regions marked in the bitmap.", |a| a.regions_dirty),
    ];
    for (name, help, read) in gauges {
        out.gauge(name, help, all().map(|(l, a)| (l, read(a))))?;
    }
    let counters: [Field<Array>; 6] = [
        ("array_hedged_reads_total", "Reads that were late and were sent to another leg too.", |a| {
            a.hedged_reads
        }),
        ("array_hedged_reads_won_total", "Late reads that were answered from another leg.", |a| {
            a.hedged_reads_won
        }),
        ("array_warm_writes_total", "Writes that found their region marked in the bitmap.", |a| {
            a.warm_writes
        }),
        ("array_cold_writes_total", "Writes that waited until their region was marked.", |a| a.cold_writes),
        ("array_bitmap_sets_total", "Bitmap blocks written to mark regions, to all legs at once.", |a| {
            a.bitmap_sets
        }),
        ("array_bitmap_clears_total", "Bitmap blocks written only to clear marks.", |a| a.bitmap_clears),
    ];
    for (name, help, read) in counters {
        out.counter(name, help, all().map(|(l, a)| (l, read(a))))?;
    }
    out.counter(
        "array_bitmap_wait_seconds_total",
        "Time that cold writes waited for the bitmap, summed.",
        all().map(|(l, a)| (l, seconds(a.bitmap_wait_ns))),
    )?;
    let resyncs = || all().filter_map(|(l, a)| Some((l, a.resync.as_ref()?)));
    out.gauge(
        "array_resync_done_bytes",
        "What the resync under way has made the same.",
        resyncs().map(|(l, r)| (l, r.done_bytes)),
    )?;
    out.gauge(
        "array_resync_size_bytes",
        "What the resync under way has to make the same.",
        resyncs().map(|(l, r)| (l, r.total_bytes)),
    )
}

/// The counters of volumes and drives, without the prefix of either.
const COUNTERS: [Field<Counters>; 5] = [
    ("reads_total", "Reads.", |c| c.reads),
    ("read_bytes_total", "Bytes read.", |c| c.read_bytes),
    ("writes_total", "Writes.", |c| c.writes),
    ("written_bytes_total", "Bytes written.", |c| c.write_bytes),
    ("other_commands_total", "Flushes, deallocations and comparisons.", |c| c.flushes),
];

/// A kind of command and how to find its times.
type Way<T, S> = (&'static str, fn(&T) -> Option<&S>);

pub fn volumes(status: &Status, out: &mut Out<'_>) -> fmt::Result {
    let of = |v: &'_ Volume| vec![label("volume", v.name.clone())];
    let all = || status.volumes.iter();
    for (name, help, read) in COUNTERS {
        out.counter(&format!("volume_{name}"), help, all().map(|v| (of(v), read(&v.counters))))?;
    }
    let counters: [Field<Volume>; 2] = [
        ("volume_errors_total", "Commands that ended in an error.", |v| v.counters.errors),
        ("volume_capped_total", "Commands that waited for a cap.", |v| v.capped),
    ];
    for (name, help, read) in counters {
        out.counter(name, help, all().map(|v| (of(v), read(v))))?;
    }
    out.states(
        "volume_state",
        "A volume's state: 1 for the one it is in.",
        &healths(),
        all().map(|v| (of(v), Some(v.state))),
    )?;
    let gauges: [Field<Volume>; 5] = [
        ("volume_bytes", "Size of a volume.", |v| v.bytes),
        ("volume_space_bytes", "Space of its pool that a volume takes.", |v| v.space_bytes),
        ("volume_iops_max", "Commands a second that a volume is capped at, 0 for none.", |v| {
            v.iops_max.into()
        }),
        ("volume_throughput_max", "Bytes a second that a volume is capped at, 0 for none.", |v| {
            u64::from(v.mbps_max) * 1_000_000
        }),
        ("volume_weight", "A volume's part of what drives do, beside that of other volumes.", |v| {
            v.weight.into()
        }),
    ];
    for (name, help, read) in gauges {
        out.gauge(name, help, all().map(|v| (of(v), read(v))))?;
    }
    let ways: [Way<Volume, Stages>; 2] =
        [("read", |v| v.read_times.as_ref()), ("write", |v| v.write_times.as_ref())];
    let timed = || {
        all().flat_map(move |v| {
            let of = move |op: &'static str| vec![label("volume", &*v.name), label("op", op)];
            ways.into_iter().filter_map(move |(op, find)| Some((of(op), find(v)?)))
        })
    };
    out.histogram(
        "volume_latency_seconds",
        "From a command's arrival until its answer was gone; of commands that were timed, which is one in 64.",
        timed().map(|(labels, stages)| (labels, &stages.all)),
    )?;
    let parts = timed().flat_map(|(labels, stages)| {
        stages.parts().map(|(stage, times)| {
            let labels = labels.iter().cloned().chain([label("stage", stage)]).collect::<Labels<'_>>();
            (labels, seconds(times.total_ns))
        })
    });
    out.counter(
        "volume_stage_seconds_total",
        "The same, by stage: the sum of what each of these commands spent there.",
        parts,
    )
}

pub fn drives(status: &Status, out: &mut Out<'_>) -> fmt::Result {
    // Drives in memory of one size have one path.
    let name = |d: &Drive| name_among(d, &status.drives);
    let of = |d: &Drive| vec![label("drive", name(d))];
    let all = || status.drives.iter();
    out.gauge(
        "drive_info",
        "What a drive is, and for what; always 1.",
        all().map(|d| {
            let pool = d.pool.as_deref().unwrap_or_default();
            let what = [
                label("model", &*d.model),
                label("serial", &*d.serial),
                label("pool", pool),
                label("role", d.role.word()),
            ];
            (of(d).into_iter().chain(what).collect::<Labels<'_>>(), 1u64)
        }),
    )?;
    for (name, help, read) in COUNTERS {
        out.counter(&format!("drive_{name}"), help, all().map(|d| (of(d), read(&d.counters))))?;
    }
    out.counter(
        "drive_errors_total",
        "Operations that failed or were late.",
        all().map(|d| (of(d), d.errors)),
    )?;
    out.states(
        "drive_state",
        "A drive's state: 1 for the one it is in.",
        &healths(),
        all().map(|d| (of(d), d.state)),
    )?;
    out.gauge("drive_bytes", "Size of a drive, 0 if it is not known.", all().map(|d| (of(d), d.bytes)))?;
    out.gauge(
        "drive_slow",
        "1 if the drive's reads take far longer than those of its mirror's other legs.",
        all().map(|d| (of(d), u64::from(d.slow))),
    )?;
    let ways: [Way<Drive, Times>; 2] =
        [("read", |d| d.read_times.as_ref()), ("write", |d| d.write_times.as_ref())];
    out.histogram(
        "drive_latency_seconds",
        "How long a drive took; of operations that were timed, which is one in 64.",
        all().flat_map(|d| {
            let name = name(d);
            let of = move |op: &'static str| vec![label("drive", name.clone()), label("op", op)];
            ways.into_iter().filter_map(move |(op, find)| Some((of(op), find(d)?)))
        }),
    )?;
    let say = || all().filter_map(|d| Some((of(d), d.health.as_ref()?)));
    type Said = (&'static str, &'static str, fn(&DriveHealth) -> Option<f64>);
    let gauges: [Said; 4] = [
        ("drive_temperature_celsius", "How warm a drive is.", |h| h.celsius.map(f64::from)),
        (
            "drive_wear_ratio",
            "Part of its rated life that a drive has used: 1 and more when it is over.",
            |h| h.used_percent.map(|p| f64::from(p) / 100.0),
        ),
        ("drive_spare_ratio", "Spare blocks that a drive has left.", |h| {
            h.spare_percent.map(|p| f64::from(p) / 100.0)
        }),
        ("drive_warns", "1 if a drive warns of its health.", |h| Some(f64::from(u8::from(h.warns)))),
    ];
    for (name, help, read) in gauges {
        out.gauge(name, help, say().filter_map(|(l, h)| Some((l, read(h)?))))?;
    }
    let counters: [Said; 3] = [
        ("drive_media_errors_total", "Times that a drive could not read or keep data, in its life.", |h| {
            h.media_errors.map(|n| n as f64)
        }),
        (
            "drive_throttled_seconds_total",
            "Time in which a drive made itself slower because of heat, in its life.",
            |h| h.throttled_seconds.map(|n| n as f64),
        ),
        ("drive_power_on_seconds_total", "Time with power, in a drive's life.", |h| {
            h.hours.map(|n| n as f64 * 3600.0)
        }),
    ];
    for (name, help, read) in counters {
        out.counter(name, help, say().filter_map(|(l, h)| Some((l, read(h)?))))?;
    }
    Ok(())
}
