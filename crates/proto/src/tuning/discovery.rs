//! What discovery is tuned by.

use crate::time::Duration;

rows! { ANNOUNCEMENTS: "Discovery: announcements of participants";
    /// Pauses between the first announcements, before the period sets in: most losses are made good in a
    /// blink.
    ANNOUNCEMENT_BURST_MS: [i64; 3] = [20, 100, 500], milliseconds;
    /// No setting makes participants announce themselves more often than this.
    ANNOUNCEMENT_PERIOD_MIN: Duration = 20, ms;
    /// The announcement of the burst, from 0, that goes to the group for those who cannot read the others, so
    /// that they answer at once. Participants of this make skip it. It is the second: whoever reads the first
    /// has most often heard it.
    ANNOUNCEMENT_FOR_OTHERS: usize = 1, index;
    /// After the burst, one announcement in this many goes to where participants of this host may listen,
    /// while those to the group do not come back.
    SCAN_EVERY: usize = 10, announcements;
    /// Participants of this host that should hear the group are sent announcements by unicast as well, this
    /// often within the lease that is announced, while there is no sign that the group works here.
    REMINDERS_PER_LEASE: i64 = 3, times;
    /// Participants of one host that announce themselves each period. Of more, each does it more rarely:
    /// every announcement wakes all of them.
    HOST_PARTICIPANTS_PER_PERIOD: i64 = 20, participants;
    /// But never more rarely than that often in this many leases: three pauses and their jitter are less than
    /// one.
    ANNOUNCEMENTS_PER_LEASES: (i64, i64) = (10, 3), announcements_leases;
    /// Announcements vary by up to this part of their interval, lest participants march in step.
    ANNOUNCEMENT_JITTER_DIVISOR: u64 = 10, parts;
    /// Largest datagram of an announcement.
    ANNOUNCEMENT_BYTES_MAX: usize = 65_000, octets;
}

rows! { ADDRESSES: "Discovery: proof of addresses";
    /// Octets sent to an unproven address for each octet received, at most.
    AMPLIFICATION_FACTOR: u64 = 3, times;
    /// Octets that may be saved up: a stranger that sends for long does not earn a burst.
    AMPLIFICATION_SAVED_BYTES_MAX: u64 = 4_096, octets;
    /// Datagrams to an unproven address with the shortest pause: who is real answers one of them.
    UNPROVEN_PROMPT_DATAGRAMS: u32 = 4, datagrams;
    /// The pause between these.
    UNPROVEN_PROMPT_PAUSE: Duration = 2, ms;
    /// The pause after the next; it doubles with each.
    UNPROVEN_PAUSE: Duration = 10, ms;
    /// The longest pause between answers to an unproven address.
    UNPROVEN_PAUSE_MAX: Duration = 60, s;
    /// The same for who sends more than announcements.
    UNPROVEN_PAUSE_MAX_HEARD: Duration = 500, ms;
    /// The pause between probes to a participant that has proven its address.
    PROVEN_PROBE_PAUSE: Duration = 100, ms;
    /// Above the numbers of all challenges: the changes of built-in writers come after it.
    CHALLENGE_NUMBER_MAX: i64 = 4_096, changes;
    /// Below all of them: numbers that readers come to by themselves.
    CHALLENGE_NUMBER_MIN: i64 = 128, changes;
    /// The next number of a writer is one of so many above its last: readers never go back.
    CHALLENGE_NUMBERS_DRAWN: i64 = 512, changes;
    /// Answers that make a proof: 18 bits to guess.
    PROOF_ANSWERS: u32 = 2, answers;
    /// Challenges of one participant that wait to be answered: one for each address that it has.
    CHALLENGES_PENDING_MAX: usize = 8, challenges;
    /// Answers after this are not believed.
    CHALLENGE_LIFETIME: Duration = 60, s;
    /// Wrong numbers after which a challenge is void. Who forges an address needs about 2^15 challenges, some
    /// megabytes that it sends.
    WRONG_ANSWERS_MAX: u32 = 4, answers;
    /// Addresses one participant can prove, and from which it can answer; a host with more interfaces proves
    /// the latest.
    PROVEN_ADDRESSES_MAX: usize = 8, addresses;
    /// The pause before who says nothing is challenged again; it doubles each time.
    CHALLENGE_PAUSE: Duration = 20, ms;
    /// It is longer where more than so many have not answered, as all of a host that start at once keep each
    /// other waiting: of twice as many twice as long.
    CHALLENGED_AT_ONCE: usize = 4, participants;
    /// A newcomer is answered at once by participants that know fewer than so many.
    ANSWERED_AT_ONCE: usize = 32, participants;
    /// Those that know more answer within this time for each that they know, at a time drawn by chance: all
    /// heard the newcomer at the same time, and it has to read what all of them send.
    ANSWER_SPREAD_OF_EACH: Duration = 100, us;
    /// A participant that was sent our announcement is not sent it again with the next challenges.
    INTRODUCTION_PAUSE: Duration = 400, ms;
    /// A participant that has proven its address, but did not challenge us so far, is sent our endpoints
    /// after this time. It takes nothing of them before it has challenged us, unless it knew us before we
    /// knew it.
    CHALLENGED_WITHIN: Duration = 100, ms;
    /// Challenges for what was heard once: all participants of a process may have heard it.
    CHALLENGES_UNHEARD: u32 = 2, challenges;
    /// A participant that did not answer for so long is reported.
    UNANSWERED_AFTER: Duration = 3, s;
}

rows! { PARTICIPANTS: "Discovery: participants";
    /// A participant that may be gone is asked so often before it counts as gone.
    PEER_PROBES: u32 = 4, probes;
    /// With this pause after each.
    PEER_PROBE_PAUSE: Duration = 250, ms;
    /// A participant of ours that was silent for this part of its lease is asked, once, whether it is there:
    /// the group may not lead here.
    ASKED_AFTER_LEASE: (i64, i64) = (3, 4), parts_of_lease;
    /// Who was heard for certain in this time is there.
    RECENTLY_HEARD: Duration = 1, s;
    /// Leases shorter than this would only make a participant come and go.
    LEASE_MIN: Duration = 100, ms;
    /// An unproven participant is forgotten after this long, whatever lease it announced.
    UNPROVEN_LEASE_MAX: Duration = 30, s;
    /// Unproven participants from one address beyond which newcomers from there replace their like.
    UNPROVEN_PER_ADDRESS_MAX: usize = 64, participants;
    /// The part of all places that participants from one address can have.
    PLACES_OF_ADDRESS_DIVISOR: usize = 4, parts;
    /// Longer leases count only for participants with matched endpoints.
    UNMATCHED_LEASE_MAX: Duration = 300, s;
    /// Where all places are taken, those that were silent for so long are asked whether they are there.
    PLACE_PROBE_SILENCE: Duration = 30, s;
    /// So many of them for each newcomer that finds no place.
    PLACE_PROBES_AT_ONCE: usize = 16, participants;
    /// Endpoints forgotten in one call; the others follow with the next timeout, which is due at once.
    DEPARTURES_PER_CALL: usize = 500, endpoints;
    /// Participants without endpoints count, too, each as so many.
    DEPARTURE_COST_OF_PARTICIPANT: usize = 25, endpoints;
    /// Participants, topics and endpoints ignored, of each sort.
    IGNORED_MAX: usize = 65_536, entities;
    /// AUTOMATIC writers are asserted this often in the shortest of their leases.
    ASSERTIONS_PER_LEASE: i64 = 3, times;
    /// Manual assertions are passed on at most this often in the shortest lease.
    MANUAL_ASSERTIONS_PER_LEASE: i64 = 10, times;
    /// No lease makes participants send assertions more often than this.
    ASSERTION_INTERVAL_MIN: Duration = 1, ms;
    /// Octets of the data of a participant message; 128 is what everyone must take (RTPS 2.5 §9.6.3.1).
    PARTICIPANT_MESSAGE_BYTES_MAX: usize = 1_024, octets;
    /// Locators kept of each sort; more are ignored.
    LOCATORS_MAX: usize = 16, locators;
    /// Endpoints of a participant of this host are matched when it is known whether its process shares
    /// memory, at the latest after this time.
    LINK_WAIT_MAX: Duration = 50, ms;
    /// The pause before a node is asked again with which no memory is shared; it doubles each time.
    LINK_PAUSE_FIRST: Duration = 1, s;
    /// The longest.
    LINK_PAUSE_MAX: Duration = 60, s;
    /// Nodes of this host with which memory is shared.
    LINKS_MAX: usize = 256, nodes;
}

rows! { ENDPOINTS: "Discovery: endpoints and types";
    /// Up to so many writers of a publisher, each change of the set is announced at once.
    GROUP_AT_ONCE_MAX: usize = 32, writers;
    /// Of publishers with more, changes are announced once in so long.
    GROUP_PAUSE: Duration = 20, ms;
    /// Of each endpoint so many things are known that take memory of their own.
    ENDPOINT_ALLOCATIONS: usize = 5, allocations;
    /// Largest announcement of an endpoint; vendors put type objects and user data in.
    ENDPOINT_DATA_BYTES_MAX: usize = 1, MiB;
    /// First pause before a built-in reader is asked again that owes an answer.
    BUILTIN_HEARTBEAT_SHORTEST: Duration = 100, ms;
    /// The longest.
    BUILTIN_HEARTBEAT_LONGEST: Duration = 800, ms;
    /// Type lookup requests, or replies, that wait to be acknowledged.
    TYPE_MESSAGES_MAX: i32 = 64, samples;
    /// How long a pair stays undecided at most after each type lookup request.
    TYPE_REPLY_WITHIN: Duration = 1, s;
    /// Requests for one type at most: each reply may name types that it depends on.
    TYPE_REQUESTS_MAX: u8 = 16, requests;
    /// Types of one participant that are looked up.
    TYPE_LOOKUPS_PER_PARTICIPANT_MAX: usize = 256, types;
    /// Octets of replies in a second at most.
    TYPE_REPLY_BYTES_PER_SECOND: usize = 1, MiB;
}
