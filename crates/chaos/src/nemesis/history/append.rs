//! Lists to which elements are appended, checked as Elle does it: a read shows the order of all elements
//! before it, so the longest read of each list tells which append came after which, and each other read after
//! which it came and before which. If that, and what ended before something else began, form a circle, no
//! order explains what was read: the lists are not strictly serializable. Sorting aside it takes linear time.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::nemesis::history::{Fault, Findings};

/// One operation on some lists at once, by the clock of the host.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) action: Action,
    pub(crate) began_ns: u64,
    /// None: it may yet be carried out. Such a read is no operation.
    pub(crate) ended_ns: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// To the list with that key; each element is appended once.
    Append { key: u64, element: u64 },
    /// Some lists, as they were at one moment.
    Read(Vec<(u64, Vec<u64>)>),
}

/// What is known of one list.
#[derive(Default)]
struct List<'a> {
    /// Which operation appended an element.
    appended: HashMap<u64, usize>,
    reads: Vec<(usize, &'a [u64])>,
    longest: &'a [u64],
}

/// Checks all lists.
pub(crate) fn check(operations: &[Operation]) -> Findings {
    let mut findings = Findings::default();
    let mut lists: BTreeMap<u64, List<'_>> = BTreeMap::new();
    for (index, operation) in operations.iter().enumerate() {
        match &operation.action {
            Action::Append { key, element } => {
                let before = lists.entry(*key).or_default().appended.insert(*element, index);
                if before.is_some() {
                    findings.add(Fault::Duplicate, || format!("{element} is appended twice to list {key}"));
                }
            }
            Action::Read(read) if operation.ended_ns.is_some() => {
                for (key, elements) in read {
                    let list = lists.entry(*key).or_default();
                    list.reads.push((index, elements));
                    if elements.len() > list.longest.len() {
                        list.longest = elements;
                    }
                }
            }
            Action::Read(_) => {}
        }
    }
    let mut graph = Graph::new(operations);
    for (key, list) in &lists {
        check_list(*key, list, operations, &mut findings);
        graph.add_list(list, operations);
    }
    if let Some(circle) = graph.circle() {
        findings.add(Fault::Cycle, || {
            let said: Vec<String> =
                circle.iter().filter_map(|index| operations.get(*index)).map(text).collect();
            said.join(", before ")
        });
    }
    findings
}

fn text(operation: &Operation) -> String {
    match &operation.action {
        Action::Append { key, element } => format!("append {element} to {key}"),
        Action::Read(read) => {
            let of = |(key, elements): &(u64, Vec<u64>)| match elements.last() {
                Some(last) => format!("{key} ({}, the last is {last})", elements.len()),
                None => format!("{key} (empty)"),
            };
            format!("read {}", read.iter().map(of).collect::<Vec<_>>().join(" and "))
        }
    }
}

/// What reads of one list tell without the others.
fn check_list(key: u64, list: &List<'_>, operations: &[Operation], findings: &mut Findings) {
    let mut seen = HashSet::new();
    for element in list.longest {
        if !list.appended.contains_key(element) {
            findings.add(Fault::Phantom, || format!("list {key}: nobody appended {element}"));
        }
        if !seen.insert(element) {
            findings.add(Fault::Duplicate, || format!("list {key} has {element} twice"));
        }
    }
    let mut last_read_ns = None;
    for (index, elements) in &list.reads {
        last_read_ns = last_read_ns.max(Some(operations[*index].began_ns));
        let same = elements.iter().zip(list.longest).take_while(|(a, b)| a == b).count();
        if same < elements.len() {
            findings.add(Fault::IncompatibleOrder, || {
                let (is, other) = (elements.get(same), list.longest.get(same));
                format!("list {key}: element {same} is {is:?} in one read and {other:?} in another")
            });
        }
    }
    for (element, index) in list.appended.iter().filter(|(element, _)| !seen.contains(element)) {
        let ended_ns = operations[*index].ended_ns;
        if ended_ns.is_some() && ended_ns < last_read_ns {
            findings.add(Fault::Lost, || format!("list {key}: {element} was appended and is not read later"));
        }
    }
}

/// Which operation comes before which. After the operations stand the moments at which one ended, in order,
/// and an end of each list.
struct Graph {
    after: Vec<Vec<usize>>,
}

impl Graph {
    /// Of time alone: an operation is before the moment of its end, a moment before the next one, and before
    /// operations that began later.
    fn new(operations: &[Operation]) -> Self {
        let mut ends: Vec<(u64, usize)> =
            operations.iter().enumerate().filter_map(|(index, it)| Some((it.ended_ns?, index))).collect();
        ends.sort_unstable();
        let first = operations.len();
        let mut after = vec![Vec::new(); first + ends.len()];
        for (moment, (_, index)) in ends.iter().enumerate() {
            after[*index].push(first + moment);
            if moment + 1 < ends.len() {
                after[first + moment].push(first + moment + 1);
            }
        }
        for (index, operation) in operations.iter().enumerate() {
            let ended_before = ends.partition_point(|(ended_ns, _)| *ended_ns < operation.began_ns);
            if let Some(moment) = ended_before.checked_sub(1) {
                after[first + moment].push(index);
            }
        }
        Self { after }
    }

    /// What the reads of one list tell: who appended an element comes before who appended the next one, and
    /// before who read it; who read a list, before who appended what it did not have.
    fn add_list(&mut self, list: &List<'_>, operations: &[Operation]) {
        let appender = |at: usize| list.longest.get(at).and_then(|it| list.appended.get(it)).copied();
        let end = self.after.len();
        self.after.push(Vec::new());
        for at in 0..list.longest.len() {
            let Some(index) = appender(at) else { continue };
            self.after[index].push(appender(at + 1).unwrap_or(end));
        }
        for (index, elements) in &list.reads {
            if let Some(last) = elements.len().checked_sub(1).and_then(appender) {
                self.after[last].push(*index);
            }
            let next = if elements.len() < list.longest.len() { appender(elements.len()) } else { Some(end) };
            self.after[*index].extend(next);
        }
        let seen: HashSet<&u64> = list.longest.iter().collect();
        for (_, index) in list.appended.iter().filter(|(element, _)| !seen.contains(element)) {
            if operations[*index].ended_ns.is_some() {
                self.after[end].push(*index);
            }
        }
    }

    /// Operations each of which comes before the next, and the last before the first.
    fn circle(&self) -> Option<Vec<usize>> {
        #[derive(Clone, Copy, PartialEq, Eq)]
        enum Mark {
            New,
            OnPath,
            Done,
        }
        let mut marks = vec![Mark::New; self.after.len()];
        for start in 0..self.after.len() {
            if marks[start] != Mark::New {
                continue;
            }
            marks[start] = Mark::OnPath;
            let mut path = vec![(start, 0)];
            while let Some((node, next)) = path.last_mut() {
                let Some(&to) = self.after[*node].get(*next) else {
                    marks[*node] = Mark::Done;
                    path.pop();
                    continue;
                };
                *next += 1;
                match marks[to] {
                    Mark::New => {
                        marks[to] = Mark::OnPath;
                        path.push((to, 0));
                    }
                    Mark::OnPath => {
                        let from = path.iter().position(|(node, _)| *node == to)?;
                        return Some(path[from..].iter().map(|(node, _)| *node).collect());
                    }
                    Mark::Done => {}
                }
            }
        }
        None
    }
}
