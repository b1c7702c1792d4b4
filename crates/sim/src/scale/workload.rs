//! What each participant of the simulated fleet has: few of its endpoints match others, however many there
//! are.

use plainsong::prelude::*;

/// The type of all topics.
#[derive(DdsType)]
pub(super) struct Pose {
    frame: String,
    stamp_ns: i64,
    position: [f64; 3],
    orientation: [f64; 4],
    covariance: [f64; 36],
}

/// An endpoint of a participant.
pub(super) struct Endpoint {
    pub(super) topic: String,
    pub(super) is_writer: bool,
}

/// Topics of a participant, for its parameters, that nobody else has.
const PARAMETER_TOPICS: usize = 6;

/// The endpoints of a participant: it tells its pose to the next, all their diagnostics to the first, which
/// commands them; the rest are like the services that each node of ROS 2 has.
pub(super) fn endpoints(participant: usize) -> Vec<Endpoint> {
    let writer = |topic: String| Endpoint { topic, is_writer: true };
    let reader = |topic: String| Endpoint { topic, is_writer: false };
    let mut endpoints = vec![
        writer(format!("vehicle/{participant}/pose")),
        writer("diagnostics".to_owned()),
        reader("commands".to_owned()),
    ];
    if let Some(before) = participant.checked_sub(1) {
        endpoints.push(reader(format!("vehicle/{before}/pose")));
    } else {
        endpoints.push(reader("vehicle/none/pose".to_owned()));
        endpoints.push(reader("diagnostics".to_owned()));
        endpoints.push(writer("commands".to_owned()));
    }
    for number in 0..PARAMETER_TOPICS {
        let topic = format!("vehicle/{participant}/parameters/{number}");
        endpoints.push(Endpoint { topic, is_writer: number % 2 == 0 });
    }
    endpoints
}

/// How many pairs of an endpoint of this participant and another match, of `participants` altogether.
pub(super) const fn matches(participant: usize, participants: usize) -> usize {
    // Its diagnostics and its commands; its pose, which the next reads; that of the one before.
    let own = 2 + (participant + 1 < participants) as usize + (participant > 0) as usize;
    if participant == 0 { own + 2 * participants } else { own }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_has_two_more_endpoints_to_hear_and_command_all() {
        assert_eq!((endpoints(0).len(), endpoints(7).len()), (12, 10));
    }

    #[test]
    fn matches_are_those_of_the_topics() {
        const PARTICIPANTS: usize = 5;
        let all: Vec<Vec<Endpoint>> = (0..PARTICIPANTS).map(endpoints).collect();
        for (participant, own) in all.iter().enumerate() {
            let pairs = own.iter().flat_map(|own| {
                let others = all.iter().flatten();
                others.filter(move |other| other.topic == own.topic && other.is_writer != own.is_writer)
            });
            assert_eq!(pairs.count(), matches(participant, PARTICIPANTS));
        }
    }
}
