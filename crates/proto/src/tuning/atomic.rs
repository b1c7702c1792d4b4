//! What groups of ATOMIC topics are tuned by.

use crate::time::Duration;

rows! { ATOMIC: "Groups of ATOMIC topics";
    /// Rows are repeated so often where nobody waits: a tenth of the lease, so that some may be lost.
    ROW_IDLE: Duration = 50, ms;
    /// And first after this where a member waits for others, which may have missed its row; then half as
    /// often each time.
    ROW_PENDING: Duration = 5, ms;
    /// What a member has delivered is told after this at the latest: writers may wait for it.
    ROW_POSITION: Duration = 2, ms;
    /// Who has stopped says so again after this, until it hears how the epoch ended.
    REPORT_AGAIN: Duration = 20, ms;
    /// Without a decision for so long an application is told that its group is suspended.
    SUSPENDED_AFTER: Duration = 2, s;
    /// Who would join asks again after this.
    JOIN_AGAIN: Duration = 50, ms;
    /// And asks another member if the one that it asked does not answer.
    FETCH_AGAIN: Duration = 100, ms;
    /// A part of the agreed history, for who joins.
    TRANSFER_BYTES_MAX: usize = 32, KiB;
    /// Where parts are lost on the way they are halved, down to what fits into one datagram.
    TRANSFER_BYTES_MIN: usize = 1, KiB;
    /// Who gave a part of a state is asked for the next so often, in vain, before another is asked.
    FETCH_TRIES: u32 = 10, requests;
    /// What is kept is not replaced by state until nobody has asked for it for so long.
    SERVE_FOR: Duration = 1, s;
    /// State that takes the place of a history has at most so many octets.
    STATE_BYTES_MAX: usize = 64, MiB;
    /// Of so many of the last positions a member knows which samples are not kept; of those before it takes
    /// all.
    LOST_POSITIONS_KEPT: usize = 1_048_576, positions;
    /// Who would join and needs no more entries than this is taken in: it has the rest in a moment.
    JOIN_ENTRIES_MAX: usize = 1_024, entries;
    /// Ends of epochs that a member remembers for those who have missed them.
    DECISIONS_KEPT: usize = 16, epochs;
    /// Changes of its disk that a member has asked for and that are not durable, at most: it delivers nothing
    /// more until some are.
    UNSYNCED_MAX: usize = 4_096, changes;
    /// Names under which a member that starts again and again has spoken, while its group does not go on.
    CLAIMS_KEPT: usize = 256, names;
    /// The last of these are told by who would join, so that nobody waits for whom it was a moment ago: more
    /// than a process starts in the time for which a wish to join is remembered.
    CLAIMS_TOLD: usize = 8, names;
    /// Voters wait so long for reports of members that others still hear.
    REPORTS_WITHIN: Duration = 200, ms;
    /// And a voter for each that comes before it.
    PROPOSER_PAUSE: Duration = 100, ms;
    /// Voters with names begin a group anew for those who would join when none of its members is heard for so
    /// long: ten leases.
    BEGIN_ANEW_AFTER: Duration = 5, s;
    /// Those who join within this are taken in together.
    JOINERS_WITHIN: Duration = 50, ms;
    /// Members that are to stop are told again after this.
    WEDGE_AGAIN: Duration = 20, ms;
    /// A wish to join that is not repeated for so long is forgotten.
    JOIN_FORGOTTEN: Duration = 500, ms;
}
