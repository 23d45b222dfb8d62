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
    /// reached lies behind parts that are full. The shortest way is filled first each time.
    pub(super) fn fill(&mut self, enough: f64) -> (f64, Vec<bool>) {
        // Below this a way counts as full: rates are of the order of 10^2 to 10^9.
        let least = enough * 1e-12;
        let mut passed = 0.0;
        loop {
            let mut by: Vec<Option<usize>> = vec![None; self.from.len()];
            let mut reached = vec![false; self.from.len()];
            reached[SOURCE] = true;
            let mut queue = std::collections::VecDeque::from([SOURCE]);
            while let Some(node) = queue.pop_front() {
                for at in &self.from[node] {
                    let edge = &self.edges[*at];
                    if edge.left > least && !reached[edge.to] {
                        reached[edge.to] = true;
                        by[edge.to] = Some(*at);
                        queue.push_back(edge.to);
                    }
                }
            }
            if !reached[SINK] {
                return (passed, reached);
            }
            let way = || {
                core::iter::successors(by[SINK], |at| by[self.edges[self.edges[*at].back].to])
                    .collect::<Vec<_>>()
            };
            let way = way();
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
    fn what_cannot_come_through_does_not() {
        let mut net = Net::new();
        let a = net.node();
        net.edge(SOURCE, a, UNLIMITED);
        let (passed, reached) = net.fill(100.0);
        assert_eq!((passed, reached), (0.0, vec![true, false, true]));
    }
}
