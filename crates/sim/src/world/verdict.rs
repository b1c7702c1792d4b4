//! The end of a run: faults stop, promises come true, the silence is measured, the ledger is judged.

use plainsong_proto::time::Duration;

use super::{STEPS_MAX, World};
use crate::check::{self, Violation};
use crate::ledger::{Quiet, Taking};
use crate::mutation::Mutation;
use crate::network::Link;
use crate::node::State;
use crate::sample;

/// Writers that waited for strangers write on.
const RECOVERY: Duration = Duration::from_millis(500);

impl World {
    /// Faults are over: the roads are quiet, stopped processes run, slow readers take.
    pub fn heal(&mut self) {
        self.network.link = Link::QUIET;
        self.network.unblock_all();
        self.faults_over = true;
        self.ledger.calm_since = Some(self.ledger.calm_since.unwrap_or(self.at));
        for node in 0..self.nodes.len() {
            self.resume(node);
        }
        for reader in 0..self.readers.len() {
            let record = &self.ledger.readers[reader];
            if record.endpoint.is_alive() && record.taking != Taking::AtEnd {
                self.take(reader);
            }
        }
    }

    /// Heals, waits `liveness` for all promises to come true, listens to the silence for `quiet`,
    /// and judges.
    pub fn finish(&mut self, liveness: Duration, quiet: Duration) -> Vec<Violation> {
        self.heal();
        self.run_for(liveness);
        self.dismiss_intruders();
        if self.dismiss_strangers() {
            self.run_for(RECOVERY);
        }
        let participants = self.ledger.participants.iter().filter(|one| one.ended.is_none()).count() as u64;
        let participants = participants + self.strangers_known();
        let peers = self.nodes.iter().map(|node| node.options.peers.len().max(1) as u64);
        let destinations = peers.max().unwrap_or(1);
        self.quiet = Some(Quiet { lasting: quiet, participants, destinations, ..Quiet::default() });
        self.run_for(quiet);
        self.ledger.quiet = self.quiet.take();
        self.take_stock();
        let mut violations = check::all(&self.ledger);
        if self.is_livelocked() {
            let what =
                format!("more than {STEPS_MAX} datagrams and timers: the system goes round in circles");
            violations.push(Violation { invariant: "silence", what });
        }
        violations
    }

    /// Reads every status and takes what is left.
    fn take_stock(&mut self) {
        self.ledger.finished_at = self.at;
        for reader in 0..self.readers.len() {
            if self.ledger.readers[reader].endpoint.is_alive() {
                let left = self.take(reader);
                self.ledger.readers[reader].untold = left;
                // What waited for room comes now.
                while self.ledger.readers[reader].taking == Taking::AtEnd && self.take(reader) > 0 {}
            }
        }
        let ledger = &mut self.ledger;
        for node in self.nodes.iter_mut().filter(|node| node.state != State::Gone) {
            let now = node.options.clock.now(self.at);
            for member in &mut node.members {
                let record = &mut ledger.participants[member.record];
                member.participant.look(|participant| {
                    let known = participant.remote_participants();
                    record.knows = known.map(|remote| remote.guid.prefix).collect();
                    let believed = participant.remote_endpoints();
                    record.believes = believed.map(|remote| (remote.guid, remote.qos.clone())).collect();
                    let mismatches = participant.mismatches();
                    record.mismatches =
                        mismatches.map(|it| (it.writer.guid, it.reader.guid, it.reason)).collect();
                });
                for local in member.writers.values_mut() {
                    let record = &mut ledger.writers[local.record];
                    local.writer.edit(now, |writer| {
                        record.liveliness_lost = writer.liveliness_lost_status();
                        let endpoint = &mut record.endpoint;
                        endpoint.incompatible = writer.offered_incompatible_qos_status();
                        endpoint.matched_status = writer.publication_matched_status();
                        endpoint.deadline_missed = writer.offered_deadline_missed_status().count;
                    });
                }
                for local in member.readers.values_mut() {
                    let record = &mut ledger.readers[local.record];
                    local.reader.edit(now, |reader| {
                        record.endpoint.matched_status = reader.subscription_matched_status();
                        record.endpoint.deadline_missed = reader.requested_deadline_missed_status().count;
                        record.liveliness = reader.liveliness_changed_status();
                        record.endpoint.incompatible = reader.requested_incompatible_qos_status();
                    });
                    if self.mutation == Some(Mutation::MatchAgain) {
                        record.endpoint.matched_status.total.total_count += 1;
                    }
                    let mut instances: Vec<u32> =
                        record.deliveries.iter().map(|delivery| delivery.instance).collect();
                    instances.sort_unstable();
                    instances.dedup();
                    instances.retain(|instance| {
                        local.reader.look(|reader| reader.has_instance(sample::handle(*instance)))
                    });
                    record.known_instances = instances;
                }
            }
        }
    }
}
