//! Who takes part in an epoch, and how an epoch ends: pure functions.

use crate::atomic::{MEMBERS_MAX, MemberId, VoterId};

/// A set of members by their ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ranks(pub u32);

impl Ranks {
    /// Ranks below `count`.
    #[must_use]
    pub const fn first(count: usize) -> Self {
        if count >= 32 { Self(u32::MAX) } else { Self((1 << count) - 1) }
    }

    /// Whether it has a rank.
    #[must_use]
    pub const fn has(self, rank: usize) -> bool {
        rank < 32 && self.0 >> rank & 1 == 1
    }

    /// Adds a rank below [`MEMBERS_MAX`].
    pub const fn add(&mut self, rank: usize) {
        if rank < 32 {
            self.0 |= 1 << rank;
        }
    }

    /// Takes a rank out.
    pub const fn remove(&mut self, rank: usize) {
        if rank < 32 {
            self.0 &= !(1 << rank);
        }
    }

    /// How many it has.
    #[must_use]
    pub const fn count(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether it has none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Those of both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Those of either.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those of this one that the other has not.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// All, from the lowest.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..32).filter(move |&rank| self.has(rank))
    }
}

/// What a member keeps so that it outlives its process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Storage {
    /// Nothing.
    #[default]
    None,
    /// What it has, some time later: it vouches for what it received. When all members fail at once, what
    /// they delivered last may be lost.
    Stable,
    /// What it has, before it vouches for it: what is delivered is on the disks of all such members.
    Durable,
}

/// One member of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Who.
    pub id: MemberId,
    /// Whether it had, when the epoch began, everything that the durability of the group asks for.
    pub caught_up: bool,
    /// What it keeps on its disk.
    pub storage: Storage,
}

/// Who takes part in an epoch, by rank, and where it begins.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct View {
    /// Of which of the groups that were ever made of the topic.
    pub instance: u64,
    /// One more each time that all members failed and some of what was delivered may be lost: what others
    /// have of before is void.
    pub lineage: u64,
    /// Number of the epoch, from 1.
    pub epoch: u64,
    /// Who takes part; the place in this list is the rank.
    pub members: Vec<Place>,
    /// Who decides how the epoch ends.
    pub voters: Vec<VoterId>,
    /// The epoch with which these voters began to vote.
    pub voters_since: u64,
    /// Entries delivered before.
    pub base_position: u64,
    /// Stamps of the epoch are larger.
    pub base_clock: u64,
}

impl View {
    /// The rank of a member.
    #[must_use]
    pub fn rank_of(&self, id: MemberId) -> Option<usize> {
        self.members.iter().position(|it| it.id == id)
    }

    /// All ranks.
    #[must_use]
    pub fn ranks(&self) -> Ranks {
        Ranks::first(self.members.len())
    }
}

/// How an epoch ended, and the next view.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decision {
    /// Which epoch ends.
    pub base: u64,
    /// Entries of each lane, by the ranks of that epoch, that are delivered in it; no others are.
    pub cut: Vec<u64>,
    /// Who goes on, by the ranks of that epoch.
    pub incumbents: Ranks,
    /// Who takes part from now on.
    pub next: View,
}

impl Decision {
    /// The first epoch of a group, with these members.
    #[must_use]
    pub fn first(
        instance: u64,
        members: impl IntoIterator<Item = (MemberId, Storage)>,
        voters: &Voters,
    ) -> Self {
        let place = |(id, storage)| Place { id, caught_up: true, storage };
        let members: Vec<Place> = members.into_iter().map(place).collect();
        let none = View {
            instance,
            lineage: 0,
            epoch: 0,
            members: Vec::new(),
            voters: Vec::new(),
            voters_since: 0,
            base_position: 0,
            base_clock: 0,
        };
        let (voters, voters_since) = voters.of(&none, &members);
        let next = View { epoch: 1, members, voters, voters_since, ..none };
        Self { base: 0, cut: Vec::new(), incumbents: Ranks::default(), next }
    }

    /// Another beginning, with these members: none of those of this view is there any more, and what they
    /// had is lost. Whoever comes back all the same finds that this one is older, and so goes on.
    #[must_use]
    pub fn anew(
        view: &View,
        members: impl IntoIterator<Item = (MemberId, Storage)>,
        voters: &Voters,
    ) -> Self {
        let first = Self::first(view.instance.saturating_sub(1), members, voters);
        let next = View { epoch: view.epoch + 1, ..first.next };
        Self { base: view.epoch, next, ..first }
    }
}

/// What a member has when it has stopped. It changes no more in this epoch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Report {
    /// Who reports.
    pub id: MemberId,
    /// The incarnation that speaks for it, after its process has started again, and goes on in its place.
    pub successor: Option<MemberId>,
    /// Which epoch it has stopped in.
    pub epoch: u64,
    /// Entries of each lane that it holds.
    pub holds: Vec<u64>,
    /// Entries that it has delivered, of all epochs.
    pub position: u64,
    /// It started again, and may have lost what it vouched for last.
    pub is_partial: bool,
    /// Its Lamport clock.
    pub clock: u64,
    /// Whether it has everything that came before the epoch.
    pub caught_up: bool,
    /// Whom it hears.
    pub hears: Ranks,
    /// Who keeps the others waiting, by its account.
    pub accuses: Ranks,
    /// Whether it wishes to leave.
    pub leaves: bool,
}

impl Report {
    /// Who goes on, if this member does.
    #[must_use]
    pub fn speaker(&self) -> MemberId {
        self.successor.unwrap_or(self.id)
    }
}

/// Who wishes to join.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Joiner {
    /// Who.
    pub id: MemberId,
    /// Whether it has all up to the epoch to come whatever happens: nothing is kept in this group.
    pub caught_up: bool,
    /// What it keeps on its disk.
    pub storage: Storage,
}

/// How an epoch may end by these reports of its members; `None` if nobody reported who can go on.
///
/// Only who reported goes on, as nobody else is known to hold what is cut to (and at least one does who has
/// what came before). The cut is the least of what those hold who go on: what anybody has delivered, all of
/// them hold. Those go on who hear one another, as many as a greedy choice finds.
///
/// Partial reports count only when nobody else has what came before, and will not come: then the one that has
/// delivered most goes on alone with what it has, and the others join it again.
#[must_use]
pub fn decide(view: &View, reports: &[Report], joiners: &[Joiner], voters: &Voters) -> Option<Decision> {
    let lanes = view.members.len();
    let is_of = |report: &&Report| report.epoch == view.epoch && report.holds.len() == lanes;
    let last_resort = last_resort(view, reports);
    if let Some(report) = last_resort
        && !report.caught_up
    {
        return Some(go_on_alone(view, report, joiners, voters));
    }
    let last_resort = last_resort.map(|it| it.id);
    // What anybody has delivered all vouched for. Who has less started again with an old copy.
    let delivered = reports.iter().filter(is_of).map(|it| it.position).max().unwrap_or(0);
    let has_delivered = |it: &Report| view.base_position + it.holds.iter().sum::<u64>() >= delivered;
    let counts = |report: &&Report| {
        is_of(report)
            && match last_resort {
                Some(id) => report.id == id,
                None => !report.is_partial && has_delivered(report),
            }
    };
    let report_of = |rank: usize| {
        let place = view.members.get(rank)?;
        reports.iter().filter(counts).find(|it| it.id == place.id)
    };
    let mut reported = Ranks::default();
    let mut accused = Ranks::default();
    let mut leaving = Ranks::default();
    for rank in 0..lanes {
        if let Some(report) = report_of(rank) {
            reported.add(rank);
            accused.0 |= report.accuses.0;
            if report.leaves {
                leaving.add(rank);
            }
        }
    }
    let is_caught_up = |rank: usize| report_of(rank).is_some_and(|it| it.caught_up);
    let stays = reported.without(leaving);
    // Of those who leave one stays where it has to: if all do, they would end epochs until none is there.
    let mut with_one = stays;
    leaving.iter().find(|rank| is_caught_up(*rank)).into_iter().for_each(|rank| with_one.add(rank));
    let incumbents = [stays.without(accused), stays, with_one]
        .into_iter()
        .map(|candidates| {
            connected(candidates, |rank| report_of(rank).map(|it| it.hears).unwrap_or_default(), is_caught_up)
        })
        .find(|ranks| ranks.iter().any(is_caught_up))?;
    let held =
        |lane: usize| incumbents.iter().filter_map(|rank| report_of(rank)?.holds.get(lane).copied()).min();
    let cut: Vec<u64> = (0..lanes).map(|lane| held(lane).unwrap_or(0)).collect();
    let clock = reports.iter().filter(|it| it.epoch == view.epoch).map(|it| it.clock).max().unwrap_or(0);
    let members: Vec<Place> = incumbents
        .iter()
        .filter_map(|rank| {
            let (id, storage) = (report_of(rank)?.speaker(), view.members[rank].storage);
            Some(Place { id, caught_up: is_caught_up(rank), storage })
        })
        .collect();
    let members = with_joiners(members, joiners);
    let (voters, voters_since) = voters.of(view, &members);
    let next = View {
        instance: view.instance,
        lineage: view.lineage + u64::from(last_resort.is_some()),
        epoch: view.epoch + 1,
        members,
        voters,
        voters_since,
        base_position: view.base_position + cut.iter().sum::<u64>(),
        base_clock: clock.max(view.base_clock) + 1,
    };
    Some(Decision { base: view.epoch, cut, incumbents, next })
}

/// Who goes on alone where all members that had everything started again, and each may have lost something:
/// who has delivered most, since what the others had delivered is the beginning of that.
fn last_resort<'a>(view: &View, reports: &'a [Report]) -> Option<&'a Report> {
    let is_of = |it: &&Report| it.epoch == view.epoch && it.holds.len() == view.members.len();
    let of = |id: MemberId| reports.iter().filter(is_of).find(|it| it.id == id);
    let all: Vec<&Report> = view.members.iter().map(|it| of(it.id)).collect::<Option<_>>()?;
    let nobody_has_all = all.iter().all(|it| it.is_partial || !it.caught_up);
    let partial = all.into_iter().filter(|it| nobody_has_all && it.is_partial);
    partial.max_by_key(|it| (it.position, it.caught_up, std::cmp::Reverse(it.id)))
}

/// Nobody has what came before the epoch: the group goes on with what is left of that.
fn go_on_alone(view: &View, report: &Report, joiners: &[Joiner], voters: &Voters) -> Decision {
    let rank = view.rank_of(report.id);
    let mut incumbents = Ranks::default();
    rank.into_iter().for_each(|rank| incumbents.add(rank));
    let storage = rank.map_or(Storage::None, |rank| view.members[rank].storage);
    let members = with_joiners(vec![Place { id: report.speaker(), caught_up: true, storage }], joiners);
    let (voters, voters_since) = voters.of(view, &members);
    let next = View {
        instance: view.instance,
        lineage: view.lineage + 1,
        epoch: view.epoch + 1,
        members,
        voters,
        voters_since,
        base_position: report.position,
        base_clock: report.clock.max(view.base_clock) + 1,
    };
    Decision { base: view.epoch, cut: vec![0; view.members.len()], incumbents, next }
}

/// These members and those who join, as far as there is room.
fn with_joiners(mut members: Vec<Place>, joiners: &[Joiner]) -> Vec<Place> {
    for Joiner { id, caught_up, storage } in joiners.iter().copied() {
        let is_there = members.iter().any(|it| it.id.prefix == id.prefix);
        if !is_there && members.len() < MEMBERS_MAX {
            members.push(Place { id, caught_up, storage });
        }
    }
    members
}

/// Of those the most that hear one another, found greedily: who hears the fewest of them goes first, then who
/// has not caught up, then the higher rank. One who has caught up stays.
fn connected(
    mut ranks: Ranks,
    hears: impl Fn(usize) -> Ranks,
    is_caught_up: impl Fn(usize) -> bool,
) -> Ranks {
    let both = |ranks: Ranks, rank: usize| {
        let heard =
            ranks.iter().filter(|&other| other == rank || hears(other).has(rank) && hears(rank).has(other));
        heard.count()
    };
    loop {
        let all = ranks.count();
        let last_caught_up = (ranks.iter().filter(|&rank| is_caught_up(rank)).count() == 1)
            .then(|| ranks.iter().find(|&rank| is_caught_up(rank)))
            .flatten();
        let worst = ranks
            .iter()
            .filter(|&rank| Some(rank) != last_caught_up)
            .map(|rank| (both(ranks, rank), is_caught_up(rank), std::cmp::Reverse(rank)))
            .min();
        match worst {
            Some((heard, _, std::cmp::Reverse(rank))) if heard < all => ranks.remove(rank),
            _ => return ranks,
        }
    }
}

/// Who votes in a group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Voters {
    /// Always these.
    Fixed(Vec<VoterId>),
    /// The members of lowest rank, of those with a disk if there are any: one of two, three of up to four,
    /// five of more.
    Members,
}

impl Voters {
    /// Who votes on the end of an epoch that these members begin, and since when.
    #[must_use]
    pub fn of(&self, before: &View, members: &[Place]) -> (Vec<VoterId>, u64) {
        let voters = match self {
            Self::Fixed(voters) => voters.clone(),
            Self::Members => {
                // Those whose votes outlive their processes, if there are any.
                let lasts = |place: &&Place| place.storage != Storage::None;
                let any = members.iter().any(|it| lasts(&it));
                let able: Vec<&Place> = members.iter().filter(|it| !any || lasts(it)).collect();
                let count = match able.len() {
                    0..=2 => 1,
                    3..=4 => 3,
                    _ => 5,
                };
                able.iter().take(count).map(|it| it.id.voter()).collect()
            }
        };
        let since = if voters == before.voters { before.voters_since } else { before.epoch + 1 };
        (voters, since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guid::GuidPrefix;

    fn id(number: u8) -> MemberId {
        MemberId { prefix: GuidPrefix([number; 12]), nonce: 5 }
    }

    fn view(count: u8) -> View {
        View {
            instance: 1,
            lineage: 0,
            epoch: 8,
            members: (1..=count)
                .map(|it| Place { id: id(it), caught_up: true, storage: Storage::None })
                .collect(),
            voters: vec![id(1).voter()],
            voters_since: 1,
            base_position: 100,
            base_clock: 1_000,
        }
    }

    fn report(view: &View, number: u8, holds: &[u64], hears: u32) -> Report {
        Report {
            id: id(number),
            successor: None,
            epoch: view.epoch,
            holds: holds.to_vec(),
            position: view.base_position,
            is_partial: false,
            clock: 1_000 + u64::from(number),
            caught_up: true,
            hears: Ranks(hears),
            accuses: Ranks::default(),
            leaves: false,
        }
    }

    fn end(view: &View, reports: &[Report]) -> Option<Decision> {
        decide(view, reports, &[], &Voters::Members)
    }

    #[test]
    fn the_cut_is_the_least_of_what_those_hold_who_go_on() {
        let view = view(3);
        let reports = [report(&view, 1, &[5, 2, 9], 0b011), report(&view, 2, &[4, 3, 9], 0b011)];
        let decision = end(&view, &reports).unwrap();
        assert_eq!((decision.base, decision.incumbents), (8, Ranks(0b011)));
        assert_eq!(decision.cut, [4, 2, 9]);
        let next = decision.next;
        assert_eq!((next.epoch, next.base_position, next.base_clock), (9, 115, 1_003));
        assert_eq!(next.members.iter().map(|it| it.id).collect::<Vec<_>>(), [id(1), id(2)]);
    }

    #[test]
    fn without_a_report_of_this_epoch_by_a_member_that_had_everything_nothing_ends() {
        let view = view(2);
        assert_eq!(end(&view, &[]), None);
        let old = Report { epoch: 7, ..report(&view, 1, &[0, 0], 0b11) };
        assert_eq!(end(&view, &[old]), None);
        let stranger = Report { id: id(9), ..report(&view, 1, &[0, 0], 0b11) };
        assert_eq!(end(&view, &[stranger]), None);
        let partial = Report { caught_up: false, ..report(&view, 1, &[0, 0], 0b11) };
        assert_eq!(end(&view, &[partial]), None);
    }

    #[test]
    fn those_go_on_who_hear_one_another() {
        let view = view(4);
        let holds = [1, 1, 1, 1];
        // 1 and 4 do not hear each other, 4 is heard by the others.
        let hears = [0b0111, 0b1111, 0b1111, 0b1110];
        let reports: Vec<Report> =
            (1..=4).zip(hears).map(|(number, hears)| report(&view, number, &holds, hears)).collect();
        assert_eq!(end(&view, &reports).unwrap().incumbents, Ranks(0b0111));
        // Two halves: the one of lower ranks.
        let hears = [0b0011, 0b0011, 0b1100, 0b1100];
        let reports: Vec<Report> =
            (1..=4).zip(hears).map(|(number, hears)| report(&view, number, &holds, hears)).collect();
        assert_eq!(end(&view, &reports).unwrap().incumbents, Ranks(0b0011));
    }

    #[test]
    fn somebody_who_has_everything_goes_on_whoever_else_does() {
        let view = view(3);
        let mut reports: Vec<Report> =
            (1..=3).map(|number| report(&view, number, &[0, 0, 0], 0b111)).collect();
        reports[0].caught_up = false;
        reports[1].caught_up = false;
        reports[2].hears = Ranks(0b100);
        let decision = end(&view, &reports).unwrap();
        assert!(decision.incumbents.has(2), "{decision:?}");
    }

    #[test]
    fn who_is_accused_or_leaves_does_not_go_on_unless_nobody_else_can() {
        let view = view(2);
        let mut reports = [report(&view, 1, &[0, 0], 0b11), report(&view, 2, &[0, 0], 0b11)];
        reports[0].accuses = Ranks(0b10);
        assert_eq!(end(&view, &reports).unwrap().incumbents, Ranks(0b01));
        reports[0].caught_up = false;
        assert!(end(&view, &reports).unwrap().incumbents.has(1));
        reports[0].caught_up = true;
        reports[0].accuses = Ranks::default();
        reports[0].leaves = true;
        assert_eq!(end(&view, &reports).unwrap().incumbents, Ranks(0b10));
    }

    #[test]
    fn of_those_who_all_leave_one_stays_the_first_that_has_everything() {
        let view = view(3);
        let mut reports = [1, 2, 3].map(|number| report(&view, number, &[0; 3], 0b111));
        reports.iter_mut().for_each(|report| report.leaves = true);
        assert_eq!(end(&view, &reports).unwrap().incumbents, Ranks(0b001));
        reports[0].caught_up = false;
        assert_eq!(end(&view, &reports).unwrap().incumbents, Ranks(0b010));
        // Who stays, and needs it, has it there.
        reports[2] = Report { caught_up: false, leaves: false, ..report(&view, 3, &[0; 3], 0b111) };
        assert_eq!(end(&view, &reports).unwrap().incumbents, Ranks(0b110));
    }

    #[test]
    fn who_joins_has_a_rank_after_those_who_go_on() {
        let view = view(2);
        let reports = [report(&view, 1, &[0, 0], 0b11), report(&view, 2, &[0, 0], 0b11)];
        let joiner = |id, caught_up| Joiner { id, caught_up, storage: Storage::None };
        let joiners = [joiner(id(2).next_incarnation(), true), joiner(id(7), false)];
        let next = decide(&view, &reports, &joiners, &Voters::Members).unwrap().next;
        // A participant is a member once.
        assert_eq!(next.members.iter().map(|it| it.id).collect::<Vec<_>>(), [id(1), id(2), id(7)]);
        assert_eq!(next.voters, [id(1).voter(), id(2).voter(), id(7).voter()]);
        assert_eq!(next.voters_since, 9);
    }

    #[test]
    fn who_started_again_and_may_have_lost_something_goes_on_only_where_nobody_has_more() {
        let view = view(3);
        let partial = |number, position| {
            let report = report(&view, number, &[position, 0, 0], 0b111);
            Report { is_partial: true, position: 100 + position, successor: Some(id(number + 10)), ..report }
        };
        let all = [partial(1, 4), partial(2, 6), partial(3, 5)];
        assert_eq!(end(&view, &all[..2]), None);
        let whole =
            end(&view, &[all[0].clone(), report(&view, 2, &[5, 0, 0], 0b111), all[2].clone()]).unwrap();
        assert_eq!((whole.incumbents, whole.next.lineage, whole.next.base_position), (Ranks(0b010), 0, 105));
        let rest = end(&view, &all).unwrap();
        assert_eq!((rest.incumbents, &rest.cut[..]), (Ranks(0b010), &[6, 0, 0][..]));
        assert_eq!((rest.next.lineage, rest.next.base_position), (1, 106));
        assert_eq!(rest.next.members.iter().map(|it| it.id).collect::<Vec<_>>(), [id(12)]);
        // Who joined and has not caught up is of no use.
        let young = Report { caught_up: false, ..report(&view, 2, &[5, 1, 0], 0b111) };
        let rest = end(&view, &[all[0].clone(), young, all[2].clone()]).unwrap();
        assert_eq!((rest.incumbents, &rest.cut[..]), (Ranks(0b100), &[5, 0, 0][..]));
        assert_eq!((rest.next.lineage, rest.next.base_position), (1, 105));
        // What came before the epoch is lost, too.
        let none = all.map(|it| Report { caught_up: false, position: it.position - 50, ..it });
        let rest = end(&view, &none).unwrap();
        assert_eq!((&rest.cut[..], rest.next.base_position), (&[0, 0, 0][..], 56));
        assert!(rest.next.members[0].caught_up);
    }

    #[test]
    fn those_with_a_disk_vote_if_there_are_any() {
        let mut view = view(4);
        view.members[1].storage = Storage::Durable;
        let voters = |view: &View| Voters::Members.of(view, &view.members).0;
        assert_eq!(voters(&view), [id(2).voter()]);
        view.members[3].storage = Storage::Stable;
        view.members[2].storage = Storage::Durable;
        assert_eq!(voters(&view), [id(2).voter(), id(3).voter(), id(4).voter()]);
    }
}
