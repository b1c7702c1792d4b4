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
    assert_eq!(story.writer.source_timestamp(story.now, handle(1).into()), noon);
    assert_eq!(story.writer.source_timestamp(story.now, handle(2).into()), story.now.wall);
    story.now.wall = noon.plus(Duration::from_secs(1));
    assert_eq!(story.writer.source_timestamp(story.now, handle(1).into()), story.now.wall);
}

#[test]
fn by_reception_any_timestamp_will_do() {
    let mut story = story(DestinationOrder::ByReceptionTimestamp);
    let noon = story.now.wall;
    write_at(&mut story, 1, noon).unwrap();
    assert_eq!(write_at(&mut story, 1, noon.plus(Duration(-1))), Ok(SequenceNumber(2)));
    assert_eq!(story.writer.source_timestamp(story.now, handle(1).into()), noon);
}
