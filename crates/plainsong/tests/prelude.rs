//! A listener, and a derived type, with nothing but the prelude.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use plainsong::prelude::*;

#[derive(DdsType, Debug, Default, PartialEq)]
struct Reading {
    #[dds(key)]
    sensor: u32,
    celsius: f64,
}

/// Hears everything.
struct All;

impl DataReaderListener for All {
    fn on_subscription_matched(&self, _: &AnyDataReader, _: &MatchedStatus) {}
    fn on_requested_incompatible_qos(&self, _: &AnyDataReader, _: &IncompatibleQosStatus) {}
    fn on_requested_deadline_missed(&self, _: &AnyDataReader, _: &DeadlineMissedStatus) {}
    fn on_liveliness_changed(&self, _: &AnyDataReader, _: &LivelinessChangedStatus) {}
    fn on_sample_lost(&self, _: &AnyDataReader, _: &CountStatus) {}
    fn on_sample_rejected(&self, _: &AnyDataReader, status: &SampleRejectedStatus) {
        let _: RejectReason = status.last_reason;
    }
}

impl DataWriterListener for All {
    fn on_publication_matched(&self, _: &AnyDataWriter, _: &MatchedStatus) {}
    fn on_liveliness_lost(&self, _: &AnyDataWriter, _: &CountStatus) {}
}

impl TopicListener for All {
    fn on_inconsistent_topic(&self, _: &AnyTopic, _: &CountStatus) {}
}

impl DomainParticipantListener for All {}

#[test]
fn a_listener_and_a_type_need_nothing_but_the_prelude() {
    let _: &dyn DomainParticipantListener = &All;
    let qos = QosSet { deadline: Duration::from_millis(20), ..QosSet::reader() };
    assert_eq!(qos.deadline, Duration::from_millis(20));
    let options = WriteOptions::new().max_blocking_time(Duration::from_secs(1)).source_timestamp(Time::now());
    assert_eq!(options, options.max_blocking_time(std::time::Duration::from_secs(1)));
    assert!(Time::now().since(std::time::SystemTime::now().into()) < Duration::from_secs(1));
    assert!((StatusKind::SampleLost | StatusKind::DataAvailable).contains(StatusKind::SampleLost));
    assert_eq!((Time(1).since(Time(0)), Reading::default().sensor), (Duration(1), 0));
}
