//! The Rust of the README compiles: each of its blocks stands in this file, too.
#![allow(missing_docs, dead_code, clippy::unwrap_used, reason = "tests")]

mod writer_and_reader {
    use plainsong::prelude::*;

    #[derive(DdsType, Debug, Default)]
    struct Temperature {
        #[dds(key)]
        sensor: u32,
        celsius: f64,
    }

    fn main() -> plainsong::Result<()> {
        let participant = DomainParticipant::new(0)?;
        let topic = participant.create_topic::<Temperature>("Temperature", QosSet::default())?;

        let subscriber = participant.create_subscriber(QosSet::default())?;
        let reader = subscriber.create_reader(&topic, QosSet::reader().reliable())?;

        let publisher = participant.create_publisher(QosSet::default())?;
        let writer = publisher.create_writer(&topic, QosSet::writer())?;
        writer.write(&Temperature { sensor: 7, celsius: 21.5 })?;
        // A process that ends here first waits until its reliable readers have everything.
        writer.wait_for_acknowledgments(Duration::from_secs(1))?;

        for sample in reader.wait_take(Duration::from_secs(1))? {
            println!("{:?}", sample.data);
        }
        Ok(())
    }

    fn latest_values(subscriber: &Subscriber, topic: &Topic<Temperature>) -> plainsong::Result<()> {
        let topic = topic.clone();
        let latest = QosSet::reader().reliable().durability(Durability::TransientLocal).keep_last(1);
        let reader = subscriber.create_reader(&topic, latest)?;
        loop {
            for sample in reader.wait_take(Duration::from_secs(60))? {
                match sample.data {
                    Some(now) => println!("sensor {} has {} °C", now.sensor, now.celsius),
                    None => {
                        let key = reader.key_value(sample.info.instance_handle)?;
                        println!("sensor {} is gone: {:?}", key.sensor, sample.info.instance_state);
                    }
                }
            }
        }
    }
}

mod large_data {
    use plainsong::prelude::*;

    use std::io::Read;

    #[derive(DdsType)]
    struct Image<'a> {
        camera: u32,
        pixels: OctetSeq<'a>,
    }

    fn publish(writer: &DataWriter<Image<'static>>, camera: &mut impl Read) -> plainsong::Result<()> {
        let mut pixels = writer.loan_octets(1920 * 1080 * 3)?;
        camera.read_exact(&mut pixels).expect("the camera works");
        writer.write(&Image { camera: 1, pixels: pixels.into() })
    }
}

mod agreed {
    use plainsong::prelude::*;

    #[derive(DdsType, Debug, Default)]
    struct Goal {
        robot: String,
        place: u32,
    }

    fn main() -> plainsong::Result<()> {
        let participant = DomainParticipant::new(0)?;
        let topic = participant.create_topic::<Goal>("Goals", QosSet::default())?;
        // TransientLocal instead keeps it as long as any process runs.
        let agreed = |qos: QosSet| {
            let qos = qos.reliable().keep_all().max_blocking_time(Duration::from_secs(3600));
            qos.durability(Durability::Persistent).consistency(ConsistencyKind::Atomic)
        };
        let subscriber = participant.create_subscriber(QosSet::default())?;
        let reader = subscriber.create_reader(&topic, agreed(QosSet::reader()))?;
        let publisher = participant.create_publisher(QosSet::default())?;
        let writer = publisher.create_writer(&topic, agreed(QosSet::writer()))?;
        // Waits until this process has joined the others, or has made a group where there is none.
        writer.write(&Goal { robot: "ann".into(), place: 7 })?;
        // It is delivered, and so on the disks of all of them.
        writer.wait_for_acknowledgments(Duration::from_secs(3600))?;
        loop {
            for sample in reader.wait_take(Duration::from_secs(3600))? {
                println!("{}. {:?}", sample.info.agreed.position, sample.data);
            }
        }
    }
}

mod replicated {
    use plainsong::prelude::*;

    use plainsong::replicated::{Replicated, StateMachine};

    #[derive(DdsType, Default)]
    struct Claim {
        by: String,
    }

    #[derive(Clone, DdsType, Default)]
    struct Dock {
        owner: Option<String>,
    }

    impl StateMachine for Dock {
        type Command = Claim;
        type Response = bool;
        type Snapshot = Self;

        fn apply(&mut self, claim: Claim) -> bool {
            // Every process decides this alike: only the first has the dock.
            *self.owner.get_or_insert_with(|| claim.by.clone()) == claim.by
        }

        // Who comes later begins with this, and not with all claims.
        fn snapshot(&self) -> Self {
            self.clone()
        }

        fn restore(snapshot: Self) -> Self {
            snapshot
        }
    }

    fn claim(participant: &DomainParticipant, robot: &str) -> plainsong::Result<bool> {
        let dock = Replicated::<Dock>::open(participant, "Dock")?;
        dock.propose(&Claim { by: robot.to_owned() }, Duration::from_secs(5))
    }
}

#[test]
fn the_rust_of_the_readme_compiles() {
    let lines = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    let (readme, here) = (lines(include_str!("../../../README.md")), lines(include_str!("readme.rs")));
    let blocks: Vec<_> =
        readme.split("```rust\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(blocks.len(), 5);
    for block in blocks {
        assert!(here.contains(block.trim()), "not in this file: {block}");
    }
}
