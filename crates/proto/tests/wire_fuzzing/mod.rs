//! One fuzzing run over what the network brings: parameter lists, discovery data, whole datagrams. Nothing
//! panics, and what was understood is understood again after it was said in our words.

use plainsong_proto::discovery::builtin::{
    EndpointData, ParticipantData, ParticipantMessage, endpoint_key, message_key,
};
use plainsong_proto::guid::GuidPrefix;
use plainsong_proto::locator::Locator;
use plainsong_proto::outbox::Outbox;
use plainsong_proto::payload::Payload;
use plainsong_proto::receiver::{self, Registry};
use plainsong_proto::stats::DropCounters;
use plainsong_proto::time::{Instant, Now, Time};
use plainsong_proto::vendor::PLAINSONG;
use plainsong_proto::wire::{
    ContentFilterInfo, EndpointSubmessage, FilterSignature, InlineQos, MessageContext, ParameterListView,
    Target, encode_inline_qos,
};

/// Octets as a parameter list, as inline QoS and as the payload of each built-in topic.
#[allow(dead_code, reason = "each fuzz target uses its own entry")]
pub(crate) fn parameter_list(octets: &[u8]) {
    for little_endian in [false, true] {
        if let Ok((list, rest)) = ParameterListView::parse(octets, little_endian) {
            assert_eq!(list.bytes.len() + rest.len(), octets.len());
            assert!(list.parameters().all(|parameter| parameter.value.len() % 4 == 0));
            inline_qos(&list);
        }
    }
    if let Ok(data) = ParticipantData::decode(octets) {
        assert_eq!(ParticipantData::decode_key(octets), Ok(data.guid));
        // How a product tells its version is its own affair; what was counted is not told, nor an identity.
        let data = ParticipantData {
            product_version: [0; 2],
            unreached: 0,
            malformed: 0,
            is_secured: false,
            ..data
        };
        assert_eq!(ParticipantData::decode(&data.encode()), Ok(data));
    }
    if let Ok(data) = EndpointData::decode(octets, PLAINSONG) {
        assert_eq!(endpoint_key(octets, false), Ok(data.guid.into()));
        let again = EndpointData::decode(&data.encode(), PLAINSONG).expect("what we say we understand");
        assert_eq!((again.guid, &again.topic_name), (data.guid, &data.topic_name));
        assert_eq!(EndpointData::decode(&again.encode(), PLAINSONG), Ok(again));
    }
    if let Ok(message) = ParticipantMessage::decode(octets) {
        assert_eq!(message_key(octets, false), Ok(message.key().into()));
        assert_eq!(ParticipantMessage::decode(&message.encode()), Ok(message));
    }
}

fn inline_qos(list: &ParameterListView<'_>) {
    let _ = ContentFilterInfo::find(list).and_then(|info| info.result(&FilterSignature([0x62; 16])));
    let Ok(qos) = InlineQos::parse(list) else { return };
    let mut again = Vec::new();
    encode_inline_qos(&qos, &mut again);
    if !again.is_empty() {
        let (view, _) = ParameterListView::parse(&again, true).expect("our own list");
        assert_eq!(InlineQos::parse(&view), Ok(qos));
    }
}

/// Octets as a datagram, and as a message of shared memory with something beside it.
#[allow(dead_code, reason = "each fuzz target uses its own entry")]
pub(crate) fn datagram(octets: &[u8]) {
    let (alone, _) = walk(octets, None);
    let beside = Payload::from_vec(octets.iter().rev().copied().collect());
    let (heard, counters) = walk(octets, Some(&beside));
    // It is the payload of one sample, or it is counted; nothing else is heard because of it.
    assert!(heard.attached <= 1 && heard.others <= alone.others);
    assert!(heard.attached == 1 || counters.iter().next().is_some());
}

fn walk(octets: &[u8], attachment: Option<&Payload>) -> (Everyone, DropCounters) {
    let now = Now { mono: Instant(0), wall: Time(0) };
    let (mut counters, mut out) = (DropCounters::default(), Outbox::new());
    let mut everyone = Everyone { bytes: octets.len(), attached: 0, others: 0 };
    let from = Locator::default();
    receiver::datagram(now, from, octets, attachment, &mut everyone, &mut counters, &mut out);
    (everyone, counters)
}

/// Looks at everything that is delivered.
struct Everyone {
    /// How long the datagram is.
    bytes: usize,
    /// Samples of which the payload came beside it.
    attached: usize,
    others: usize,
}

impl Registry for Everyone {
    fn deliver(
        &mut self,
        _now: Now,
        context: &MessageContext,
        submessage: &EndpointSubmessage<'_>,
        _out: &mut Outbox,
    ) {
        let target = submessage.target(context.source);
        self.others += 1;
        match submessage {
            EndpointSubmessage::Data(data) => {
                if let Some(attachment) = data.attachment {
                    assert!(target != Target::Builtin && attachment.as_slice() == data.payload);
                    (self.attached, self.others) = (self.attached + 1, self.others - 1);
                } else {
                    assert!(data.payload.len() < self.bytes);
                }
                data.inline_qos.iter().for_each(inline_qos);
                parameter_list(data.payload);
            }
            EndpointSubmessage::DataFrag(data) => {
                assert!(data.payload.len() < self.bytes);
                let start = u64::from(data.first_fragment - 1) * u64::from(data.fragment_bytes);
                assert!(start + data.payload.len() as u64 <= data.sample_bytes.into());
            }
            EndpointSubmessage::Gap(gap) => assert!(gap.list.iter().count() <= 256),
            EndpointSubmessage::AckNack(acknack) => assert!(acknack.missing.iter().count() <= 256),
            EndpointSubmessage::NackFrag(nack) => assert!(nack.missing.iter().count() <= 256),
            EndpointSubmessage::Heartbeat(heartbeat) => assert!(heartbeat.last.next() >= heartbeat.first),
            EndpointSubmessage::HeartbeatFrag(heartbeat) => assert!(heartbeat.last_fragment >= 1),
        }
    }

    fn is_local(&self, _prefix: GuidPrefix) -> bool {
        true
    }
}
