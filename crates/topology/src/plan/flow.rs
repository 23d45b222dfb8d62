//! The most that passes a net of parts, each of which passes so much.

/// What has no limit that we know.
pub(super) const UNLIMITED: f64 = f64::INFINITY;

/// An edge of the net.
struct Edge {
    to: usize,
    /// What may still pass.
    left: f64,
    /// The edge the other way.
    back: usize,
}

/// A net from node 0, where commands come from, to node 1, where they end.
pub(super) struct Net {
    edges: Vec<Edge>,
    from: Vec<Vec<usize>>,
}

pub(super) const SOURCE: usize = 0;
pub(super) const SINK: usize = 1;

impl Net {
    pub(super) fn new() -> Self {
        Self { edges: Vec::new(), from: vec![Vec::new(), Vec::new()] }
    }

    pub(super) fn node(&mut self) -> usize {
        self.from.push(Vec::new());
        self.from.len() - 1
    }

    pub(super) fn edge(&mut self, from: usize, to: usize, most: f64) {
        let at = self.edges.len();
        self.edges.push(Edge { to, left: most, back: at + 1 });
        self.edges.push(Edge { to: from, left: 0.0, back: at });
        self.from[from].push(at);
        self.from[to].push(at + 1);
    }

    /// Lets as much pass as can: the amount, and for each node whether the source still reaches it. What is not
    /// reached lies behind parts that are full. All shortest ways are filled at a time, then the next longer ones: as many
    /// rounds as there are lengths of ways, however many parts there are.
    pub(super) fn fill(&mut self, enough: f64) -> (f64, Vec<bool>) {
        // Below this a way counts as full: rates are of the order of 10^2 to 10^9.
        let least = enough * 1e-12;
        let mut passed = 0.0;
        loop {
            let far = self.distances(least);
            if far[SINK] == usize::MAX {
                return (passed, far.iter().map(|d| *d < usize::MAX).collect());
            }
            let mut next = vec![0; self.from.len()];
            while let Some(way) = self.way(&far, &mut next, least) {
                let part = way.iter().map(|at| self.edges[*at].left).fold(enough, f64::min);
                for at in way {
                    let back = self.edges[at].back;
                    self.edges[at].left -= part;
                    self.edges[back].left += part;
                }
                passed += part;
            }
        }
    }

    /// How many edges away from the source each node is; what is not reached is as far as can be.
    fn distances(&self, least: f64) -> Vec<usize> {
        let mut far = vec![usize::MAX; self.from.len()];
        far[SOURCE] = 0;
        let mut queue = std::collections::VecDeque::from([SOURCE]);
        while let Some(node) = queue.pop_front() {
            for at in &self.from[node] {
                let edge = &self.edges[*at];
                if edge.left > least && far[edge.to] == usize::MAX {
                    far[edge.to] = far[node] + 1;
                    queue.push_back(edge.to);
                }
            }
        }
        far
    }

    /// A way to the sink of which each step leads one further. `next` is where each node goes on looking: an edge that led
    /// nowhere is not tried again.
    fn way(&self, far: &[usize], next: &mut [usize], least: f64) -> Option<Vec<usize>> {
        let mut way: Vec<usize> = Vec::new();
        let mut node = SOURCE;
        while node != SINK {
            match self.from[node].get(next[node]) {
                Some(at) => {
                    let edge = &self.edges[*at];
                    if edge.left > least && far[edge.to] == far[node] + 1 {
                        way.push(*at);
                        node = edge.to;
                    } else {
                        next[node] += 1;
                    }
                }
                // Nothing leads on from here: one step back, and that step is not taken again.
                None => {
                    let last = way.pop()?;
                    node = self.edges[self.edges[last].back].to;
                    next[node] += 1;
                }
            }
        }
        Some(way)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_is_what_the_narrowest_cut_passes() {
        // Two ways of 5 and 3, of which the second goes on over 2 and over what the first leaves free.
        let mut net = Net::new();
        let [a, b] = [net.node(), net.node()];
        net.edge(SOURCE, a, 5.0);
        net.edge(SOURCE, b, 3.0);
        net.edge(b, a, UNLIMITED);
        net.edge(a, SINK, 6.0);
        net.edge(b, SINK, 1.0);
        let (passed, reached) = net.fill(100.0);
        assert_eq!((passed, reached), (7.0, vec![true, false, true, true]));
    }

    #[test]
    fn a_way_that_was_taken_is_given_back_where_that_lets_more_pass() {
        // The first way through a and d takes what b needs; both pass if a goes by c.
        let mut net = Net::new();
        let [a, b, c, d] = [net.node(), net.node(), net.node(), net.node()];
        net.edge(SOURCE, a, 1.0);
        net.edge(SOURCE, b, 1.0);
        net.edge(a, d, 1.0);
        net.edge(a, c, 1.0);
        net.edge(b, d, 1.0);
        net.edge(c, SINK, 1.0);
        net.edge(d, SINK, 1.0);
        assert_eq!(net.fill(100.0).0, 2.0);
    }

    #[test]
    fn what_cannot_come_through_does_not() {
        let mut net = Net::new();
        let a = net.node();
        net.edge(SOURCE, a, UNLIMITED);
        let (passed, reached) = net.fill(100.0);
        assert_eq!((passed, reached), (0.0, vec![true, false, true]));
    }
}
