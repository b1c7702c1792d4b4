//! One fuzzing run over QoS profiles: whatever the text, no panic, and a refusal names a place inside of it.

use plainsong::qos_provider::QosProvider;

/// Reads `text` and all that it defines; tells whether it was accepted.
pub(crate) fn run(text: &str) -> bool {
    let profiles = match QosProvider::from_text(text) {
        Ok(profiles) => profiles,
        Err(error) => {
            let lines = text.split('\n').count() as u32;
            let line = error.line().expect("what is wrong with a text is wrong somewhere");
            let column = error.column().expect("a line has columns");
            assert!((1..=lines).contains(&line) && column >= 1, "{error}");
            let longest = text.split('\n').map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(column as usize <= longest + 1, "{error}");
            return false;
        }
    };
    for name in profiles.profiles() {
        // Without a topic all was checked when it was read.
        let all = [
            profiles.participant_qos(name),
            profiles.publisher_qos(name),
            profiles.subscriber_qos(name),
            profiles.topic_qos(name),
            profiles.writer_qos(name),
            profiles.reader_qos(name),
        ];
        assert!(all.iter().all(Result::is_ok), "{all:?}");
        // With one, filters may choose what does not fit together; that is an error, no panic.
        let _ = profiles.topic_qos_for_topic(name, "Square");
        let _ = profiles.writer_qos_for_topic(name, "Square");
        let _ = profiles.reader_qos_for_topic(name, "");
    }
    true
}
