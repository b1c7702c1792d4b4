//! What agreement on epochs is tuned by.

use crate::time::Duration;

rows! { DECIDER: "Decider of epochs";
    /// Voters of a group at most: more make every decision slower and hardly any likelier.
    VOTERS_MAX: usize = 7, voters;
    /// A value that is proposed has at most so many octets.
    VALUE_BYTES_MAX: usize = 64, KiB;
    /// Decisions that voters keep for others that were away.
    DECISIONS_KEPT: usize = 64, decisions;
    /// Long ones are kept only as long as all have no more octets than this.
    DECISIONS_KEPT_BYTES: usize = 1, MiB;
    /// Entries of the log that are not decided: more than one only after leaders have changed.
    UNDECIDED_MAX: usize = 16, entries;
    /// Heartbeats of active voters: a leader is missed after two, and replaced with the next.
    HEARTBEAT: Duration = 20, ms;
    /// Heartbeats leave answers twice the time that they take, and so much at most.
    HEARTBEAT_MAX: Duration = 640, ms;
    /// Answers to so many of the last heartbeats are measured.
    HEARTBEATS_MEASURED: usize = 32, heartbeats;
    /// Heartbeats after which what was not answered is sent again.
    RESEND_HEARTBEATS: u64 = 2, heartbeats;
    /// A voter is active for so long after it had, or heard of, something to decide.
    ACTIVE: Duration = 2, s;
    /// Heartbeats come less often when nothing is decided for so long: most voters are not there.
    PATIENCE: Duration = 5, s;
    /// So often then.
    HEARTBEAT_IN_VAIN: Duration = 250, ms;
    /// Who was silent for so long is news when it is heard again.
    SILENCE: Duration = 1, s;
    /// So many octets of changes are recorded before the whole state is recorded anew.
    RECORDED_BYTES_MAX: usize = 256, KiB;
    /// Messages that wait for a record: whoever writes so slowly loses the oldest ones.
    HELD_MESSAGES_MAX: usize = 256, messages;
}
