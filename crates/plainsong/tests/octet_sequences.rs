//! Samples whose octets are borrowed when they are written and shared when they are taken.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use common::{PATIENCE, Pair, fresh_domain, participant, reader, until, writer};
use plainsong::prelude::*;

#[derive(DdsType, Debug, PartialEq)]
#[dds(name = "Image", final)]
struct Image<'a> {
    #[dds(key)]
    camera: u32,
    data: OctetSeq<'a>,
}

/// The same type in a program that has its octets in vectors.
#[derive(DdsType, Debug, PartialEq)]
#[dds(name = "Image", final)]
struct OwnedImage {
    #[dds(key)]
    camera: u32,
    data: Vec<u8>,
}

/// In place, copied, in one datagram, in fragments.
const LENGTHS: [usize; 5] = [0, 20, 1_000, 20_000, 1 << 20];

fn octets(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index % 251) as u8).collect()
}

#[test]
fn what_is_borrowed_arrives_and_outlives_its_reader() {
    let pair: Pair<Image<'static>> =
        Pair::new(QosSet::writer().keep_all(), QosSet::reader().reliable().keep_all());
    let mut taken = Vec::new();
    for length in LENGTHS {
        let frame = octets(length);
        pair.writer.write_borrowed(&Image { camera: 7, data: frame.as_slice().into() }).unwrap();
        drop(frame);
        taken.extend(pair.reader.wait_take(PATIENCE).unwrap());
    }
    let handle = pair.reader.lookup_instance(&Image { camera: 7, data: OctetSeq::new() }).unwrap();
    assert!(handle.is_some() && taken.iter().all(|sample| Some(sample.info.instance_handle) == handle));
    drop(pair);
    let images = taken.into_iter().filter_map(|sample| sample.data);
    let lengths = images.map(|image| {
        assert_eq!(image.data.as_slice(), octets(image.data.len()));
        image.data.len()
    });
    assert_eq!(lengths.collect::<Vec<_>>(), LENGTHS);
}

#[test]
fn a_frame_may_be_written_over_as_soon_as_it_is_written() {
    let kept = |qos: QosSet| qos.keep_last(2).durability(Durability::TransientLocal);
    let (written, read) = (kept(QosSet::writer()), kept(QosSet::reader().reliable()));
    let pair: Pair<Image<'static>> = Pair::with(&common::udp(), written, read);
    let is_frame = |sample: &Sample<Image<'static>>, number: u8| {
        let data = &sample.data.as_ref().unwrap().data;
        data.len() == 1 << 20 && data.iter().all(|octet| *octet == number)
    };
    let mut frame = vec![0; 1 << 20];
    for number in 0..12 {
        frame.fill(number);
        pair.writer.write_borrowed(&Image { camera: 7, data: frame.as_slice().into() }).unwrap();
        frame.fill(0xee);
        assert!(is_frame(&pair.reader.wait_take(PATIENCE).unwrap()[0], number), "{number}");
        pair.writer.wait_for_acknowledgments(PATIENCE).unwrap();
    }
    let domain = pair.participants[0].domain_id();
    let late: DataReader<Image<'static>> =
        reader(&participant(domain), "Pair", kept(QosSet::reader().reliable()));
    let mut arrived = Vec::new();
    while arrived.len() < 2 {
        arrived.extend(late.wait_take(PATIENCE).unwrap());
    }
    assert!(is_frame(&arrived[0], 10) && is_frame(&arrived[1], 11), "what a late joiner gets");
}

#[test]
fn long_octets_are_looked_at_where_they_arrived() {
    let pair: Pair<Image<'static>> =
        Pair::new(QosSet::writer().keep_all(), QosSet::reader().reliable().keep_all());
    let places = |length: usize| {
        pair.writer.write_borrowed(&Image { camera: 7, data: octets(length).as_slice().into() }).unwrap();
        until("it arrives", || pair.reader.read_with(&ReadOptions::new().max_samples(1)).unwrap().len() == 1);
        // Read twice, and both kept: a copy would be in another place.
        let read = [0, 1].map(|_| {
            pair.reader.read_with(&ReadOptions::new().max_samples(1)).unwrap().remove(0).data.unwrap()
        });
        pair.reader.take_with(&ReadOptions::new().max_samples(1)).unwrap();
        read.each_ref().map(|image| image.data.as_ptr())
    };
    for length in [20_000, 1 << 20] {
        let [first, second] = places(length);
        assert_eq!(first, second, "{length} octets");
    }
    let [first, second] = places(1_000);
    assert_ne!(first, second, "so few are copied");
}

#[test]
fn programs_with_vectors_and_programs_that_borrow_match() {
    let domain = fresh_domain();
    let participants = [participant(domain), participant(domain)];
    let (offered, requested) = (QosSet::writer().keep_all(), QosSet::reader().reliable().keep_all());
    let borrowing: DataWriter<Image<'static>> = writer(&participants[0], "There", offered.clone());
    let vectors: DataReader<OwnedImage> = reader(&participants[1], "There", requested.clone());
    let owning: DataWriter<OwnedImage> = writer(&participants[1], "Back", offered);
    let shared: DataReader<Image<'static>> = reader(&participants[0], "Back", requested);
    until("all match", || {
        let writers =
            borrowing.matched_subscriptions().unwrap().len() + owning.matched_subscriptions().unwrap().len();
        let readers =
            vectors.matched_publications().unwrap().len() + shared.matched_publications().unwrap().len();
        writers + readers == 4
    });
    for length in LENGTHS {
        let frame = octets(length);
        borrowing.write_borrowed(&Image { camera: 1, data: frame.as_slice().into() }).unwrap();
        let there = vectors.wait_take(PATIENCE).unwrap().remove(0).data.unwrap();
        assert_eq!((there.camera, &there.data), (1, &frame));
        owning.write(&there).unwrap();
        let back = shared.wait_take(PATIENCE).unwrap().remove(0).data.unwrap();
        assert_eq!(back.data.into_vec(), frame);
    }
}
