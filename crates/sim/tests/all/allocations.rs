//! Nothing is allocated on the data path after start.

use base::machine::Machine;
use base::{ConnectionId, Dma, Effects, Event, Instant, Slice};
use head::Shard;
use head::mail::{Mail, ShardMail};
use sim::memory::SimMemory;
use sim::run::{Options, run};
use sim::world::{Books, HeadMachine};
use std::cell::Cell;
use uring::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static EVENTS: Cell<u64> = const { Cell::new(0) };
    static FOUND: Cell<u64> = const { Cell::new(0) };
}

/// Events after which every table has its size: connections are up, rings and queues have been deep.
const WARM: u64 = 12_000;

struct Watched {
    shard: Shard<SimMemory>,
    fx: Effects<Mail>,
    cold: bool,
}

impl Watched {
    fn watch(
        &mut self,
        fx: &mut Effects<Mail>,
        turn: impl FnOnce(&mut Shard<SimMemory>, &mut Effects<Mail>),
    ) {
        let ((), count) = Counting::watch(|| turn(&mut self.shard, &mut self.fx));
        if !self.cold && EVENTS.get() > WARM {
            FOUND.set(FOUND.get() + count);
        }
        fx.append(&mut self.fx);
    }
}

impl Machine for Watched {
    type Mail = Mail;
    fn on_event(&mut self, now: Instant, event: Event<Mail>, fx: &mut Effects<Mail>) {
        EVENTS.set(EVENTS.get() + 1);
        // Connections come and go, and configurations change, with allocations: the data path is the rest.
        self.cold = matches!(
            event,
            Event::Accepted { .. }
                | Event::Closed { .. }
                | Event::Listening { .. }
                | Event::Mail {
                    mail: Mail::Shard(
                        ShardMail::Configure { .. } | ShardMail::Report | ShardMail::Answer { .. }
                    ),
                    ..
                }
        );
        self.watch(fx, |shard, fx| shard.on_event(now, event, fx));
    }
    fn on_timer(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        self.cold = false;
        self.watch(fx, |shard, fx| shard.on_timer(now, fx));
    }
    fn end_of_turn(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        self.watch(fx, |shard, fx| shard.end_of_turn(now, fx));
    }
    fn next_deadline(&self) -> Option<Instant> {
        self.shard.next_deadline()
    }
    fn segments(&self, connection: ConnectionId, max: usize, out: &mut Vec<Slice>) {
        self.shard.segments(connection, max, out);
    }
}

impl Dma for Watched {
    fn dma(&mut self, data: Slice, with: &mut dyn FnMut(&mut [u8])) -> bool {
        self.shard.dma(data, with)
    }
}

impl HeadMachine for Watched {
    fn at_rest(&self) -> Result<(), String> {
        self.shard.at_rest()
    }
    fn books(&self) -> Option<Books> {
        HeadMachine::books(&self.shard)
    }
}

fn wrap(shard: Shard<SimMemory>) -> Box<dyn HeadMachine> {
    Box::new(Watched { shard, fx: Vec::with_capacity(4096), cold: false })
}

#[test]
fn the_data_path_allocates_nothing_once_it_is_warm() {
    let mut options = Options::usual(1);
    options.hosts = vec![base::view::Protocol::Nvme, base::view::Protocol::Iscsi];
    options.shards = 2;
    options.troubles = vec![];
    options.commands = 6000;
    options.habits.depth = 16;
    options.habits.reset_ppm = 0;
    options.habits.abort_permille = 0;
    options.wrap = Some(wrap);
    run(options).unwrap_or_else(|f| panic!("{f:?}"));
    assert!(EVENTS.get() > 2 * WARM, "enough happened to judge: {} events", EVENTS.get());
    assert_eq!(FOUND.get(), 0, "allocations on the data path");
}
