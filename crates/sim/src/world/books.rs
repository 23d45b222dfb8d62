//! What the books of heads add up to once nothing is under way: what was given is back. Each figure is named that is not what it must be.

use super::World;
use super::actor::{Body, Books};
use head::books::{FarBooks, ShardBooks};

/// A figure that is not what it must be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wrong {
    /// Which one.
    pub figure: String,
    /// What it is.
    pub is: u64,
    /// What it must be.
    pub must: u64,
}

impl Wrong {
    /// One sentence.
    pub fn words(&self, whose: &str) -> String {
        let Self { figure, is, must } = self;
        let way = if is > must { "much" } else { "little" };
        format!("books: {whose}: {figure} is {is}, {} too {way}: it must be {must}", is.abs_diff(*must))
    }
}

/// What is wrong with a shard that has nothing under way.
pub fn wrong_at_rest(books: &ShardBooks) -> Vec<Wrong> {
    let mut all = vec![];
    let mut must = |figure: String, is: u64, must: u64| {
        if is != must {
            all.push(Wrong { figure, is, must });
        }
    };
    must("promised slots".into(), books.promised.into(), books.tags.into());
    for (figure, is) in [
        ("requests", books.requests),
        ("flights", books.flights),
        ("parked commands", books.parked),
        ("early commands", books.early),
        ("peers' commands in line", books.peers),
        ("queued requests", books.turns),
        ("requests that wait for far shards", books.far_waits),
        ("limiters that hold something back", books.held_back),
        ("requests that wait for memory", books.waiting),
        ("commands of gone far shards", books.far_left_stale),
    ] {
        must(figure.into(), is.into(), 0);
    }
    for array in &books.arrays {
        must(format!("commands under way on array {}", array.id), array.busy.into(), 0);
        must(format!("commands in line for array {}", array.id), array.waiting.into(), 0);
    }
    for drive in &books.drives {
        let id = drive.drive.0;
        must(format!("operations on drive {id}"), drive.in_flight.into(), 0);
        must(format!("operations given up on drive {id}"), drive.hung.into(), 0);
    }
    must("memory that hosts hold".into(), books.hosts_hold, 0);
    must("memory that connections hold".into(), books.connections_hold, 0);
    must("memory in use".into(), books.used, books.kept);
    for (far, link) in books.far.iter().enumerate() {
        must(format!("commands of far shard {far} by a former connection"), link.stale.into(), 0);
        must(format!("memory in use that is granted to far shard {far}"), link.in_use, link.kept);
    }
    all
}

/// What is wrong between two far shards with nothing on its way between them: what is granted is in the user's hands, or kept by drives.
pub fn wrong_between(user: &FarBooks, owner: &FarBooks) -> Option<Wrong> {
    let (is, must) = (user.credit + user.sent + owner.kept, owner.granted);
    let figure = format!("the sum of credit {}, sent {} and kept {}", user.credit, user.sent, owner.kept);
    (is != must).then_some(Wrong { figure, is, must })
}

/// They have a connection, and nothing is on its way by it.
pub fn is_quiet(one: &FarBooks, other: &FarBooks) -> bool {
    let says_nothing = |b: &FarBooks| b.messages == 0 && b.unsent == 0 && b.untaken == 0;
    let both = [one, other].into_iter().all(|b| b.open && says_nothing(b));
    both && one.gone == other.came && other.gone == one.came
}

/// A shard that uses memory of a shard of the other head, and what both keep account of.
struct Pair<'a> {
    user: (usize, u16),
    owner: (usize, u16),
    books: [&'a FarBooks; 2],
}

impl Pair<'_> {
    fn words(&self) -> String {
        let [(user, own), (owner, far)] = [self.user, self.owner];
        format!("server {user}, shard {own}, with memory of server {owner}, shard {far}")
    }
}

fn pairs(all: &[(usize, ShardBooks)]) -> Vec<Pair<'_>> {
    let mut found = vec![];
    for (server, own) in all {
        for (there, other) in all.iter().filter(|(there, _)| there != server) {
            let books = own.far.get(usize::from(other.shard)).zip(other.far.get(usize::from(own.shard)));
            let Some((user, owner)) = books else { continue };
            let (user_at, owner_at) = ((*server, own.shard), (*there, other.shard));
            found.push(Pair { user: user_at, owner: owner_at, books: [user, owner] });
        }
    }
    found
}

impl World {
    /// What the machines of a server's head keep account of, if a process of it runs.
    pub fn books_of(&self, server: usize) -> Vec<Books> {
        if !self.runs(server) {
            return vec![];
        }
        let machines = self.servers[server].addresses.values().map(|id| &self.actors[*id].body);
        let books = machines.map(|body| match body {
            Body::Head(machine) => machine.books(),
            Body::Host(_) => None,
        });
        books.flatten().collect()
    }
    pub(super) fn shards_of(&self, servers: &[usize]) -> Vec<(usize, ShardBooks)> {
        let of = |server: usize| self.books_of(server).into_iter().map(move |books| (server, books));
        let shards = servers.iter().copied().flat_map(of).filter_map(|(server, books)| match books {
            Books::Shard(books) => Some((server, *books)),
            Books::Steward(_) => None,
        });
        shards.collect()
    }
    /// Nothing is on its way between shards of these servers that have a connection.
    pub fn far_links_at_rest(&self, servers: &[usize]) -> Result<(), String> {
        let all = self.shards_of(servers);
        let moves =
            |pair: &Pair<'_>| pair.books.iter().all(|b| b.open) && !is_quiet(pair.books[0], pair.books[1]);
        match pairs(&all).iter().find(|pair| moves(pair)) {
            Some(pair) => Err(format!("{}: something is on its way: {:?}", pair.words(), pair.books)),
            None => Ok(()),
        }
    }
    /// The books of these servers add up. To be asked when nothing is under way.
    ///
    /// # Errors
    /// The first figure that is not what it must be, and by how much.
    pub fn check_books(&self, servers: &[usize]) -> Result<(), String> {
        let all = self.shards_of(servers);
        for (server, books) in &all {
            let whose = format!("server {server}, shard {}", books.shard);
            if let Some(wrong) = wrong_at_rest(books).first() {
                return Err(wrong.words(&whose));
            }
        }
        for pair in pairs(&all).iter().filter(|pair| is_quiet(pair.books[0], pair.books[1])) {
            if let Some(wrong) = wrong_between(pair.books[0], pair.books[1]) {
                return Err(wrong.words(&pair.words()));
            }
        }
        Ok(())
    }
}
