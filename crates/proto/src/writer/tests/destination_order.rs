//! DESTINATION_ORDER on the writer's side.

use super::*;
use crate::qos::DestinationOrder;

fn story(order: DestinationOrder) -> Story {
    Story::new(QosSet { destination_order: order, ..QosSet::writer() })
}

fn write_at(story: &mut Story, instance: u8, timestamp: Time) -> Result<SequenceNumber, WriteError> {
    let payload = Payload::from_vec(b"data".to_vec());
    story.writer.write(story.now, ChangeKind::Alive, handle(instance), payload, timestamp, &mut story.out)
}

#[test]
fn by_source_timestamps_of_an_instance_never_go_back() {
    let mut story = story(DestinationOrder::BySourceTimestamp);
    let noon = story.now.wall;
    let earlier = noon.plus(Duration(-1));
    assert_eq!(write_at(&mut story, 1, noon), Ok(SequenceNumber(1)));
    assert_eq!(write_at(&mut story, 1, earlier), Err(WriteError::TimestampBack));
    assert_eq!(write_at(&mut story, 1, noon), Ok(SequenceNumber(2)), "the same time is no step back");
    assert_eq!(write_at(&mut story, 2, earlier), Ok(SequenceNumber(3)), "another instance has its own time");
}

#[test]
fn a_clock_that_is_set_back_does_not_stop_a_writer_by_source() {
    let mut story = story(DestinationOrder::BySourceTimestamp);
    let noon = story.now.wall;
    write_at(&mut story, 1, noon).unwrap();
    story.now.wall = noon.plus(Duration::from_secs(-3600));
    assert_eq!(story.writer.source_timestamp(story.now, handle(1)), noon);
    assert_eq!(story.writer.source_timestamp(story.now, handle(2)), story.now.wall);
    story.now.wall = noon.plus(Duration::from_secs(1));
    assert_eq!(story.writer.source_timestamp(story.now, handle(1)), story.now.wall);
}

#[test]
fn by_reception_any_timestamp_will_do() {
    let mut story = story(DestinationOrder::ByReceptionTimestamp);
    let noon = story.now.wall;
    write_at(&mut story, 1, noon).unwrap();
    assert_eq!(write_at(&mut story, 1, noon.plus(Duration(-1))), Ok(SequenceNumber(2)));
    assert_eq!(story.writer.source_timestamp(story.now, handle(1)), noon);
}

#[test]
fn samples_of_one_microsecond_have_the_time_of_the_first() {
    let mut story = story(DestinationOrder::ByReceptionTimestamp);
    let noon = story.now.wall;
    let mut told = |nanos: i64| {
        story.now.wall = noon.plus(Duration(nanos));
        story.writer.source_timestamp(story.now, handle(1)).since(noon).0
    };
    assert_eq!([0, 1, 999, 1_000, 1_001, 1_999, 2_500].map(&mut told), [0, 0, 0, 1_000, 1_000, 1_000, 2_500]);
    assert_eq!(told(1_000_000), 1_000_000, "after a pause it is exact");
    assert_eq!(told(-5), -5, "a clock that was set back is followed");
}

#[test]
fn by_source_each_sample_has_its_own_time() {
    let mut story = story(DestinationOrder::BySourceTimestamp);
    for _ in 0..3 {
        let timestamp = story.writer.source_timestamp(story.now, handle(1));
        assert_eq!(timestamp, story.now.wall);
        write_at(&mut story, 1, timestamp).unwrap();
        story.now.wall = story.now.wall.plus(Duration(1));
    }
}
