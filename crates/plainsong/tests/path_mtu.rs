//! Paths that take less than their first link: three networks of one host's kernel, of which the middle one
//! is a router whose second link has a smaller MTU.
#![cfg(target_os = "linux")]
#![allow(missing_docs, unsafe_code, clippy::unwrap_used, reason = "tests; unshare needs unsafe")]

mod common;

use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Scope, ScopedJoinHandle};

use common::{Blob, PATIENCE, reader, until, writer};
use plainsong::config::Peer;
use plainsong::prelude::*;

/// A thread in a network of its own, which does what it is sent.
struct Host<'scope> {
    id: libc::pid_t,
    jobs: Sender<Job>,
    _thread: ScopedJoinHandle<'scope, ()>,
}

/// Every network has its own.
const DOMAIN: u16 = 3;

type Job = Box<dyn FnOnce() + Send>;

impl<'scope> Host<'scope> {
    /// `None` where nobody may make networks.
    fn new(scope: &'scope Scope<'scope, '_>) -> Option<Self> {
        let (jobs, todo): (Sender<Job>, Receiver<Job>) = channel();
        let (tell, told) = channel();
        let thread = scope.spawn(move || {
            // SAFETY: plain system calls without pointers; only this thread moves.
            let (result, id) = unsafe { (libc::unshare(libc::CLONE_NEWNET), libc::gettid()) };
            tell.send((result == 0).then_some(id)).unwrap();
            todo.into_iter().for_each(|job| job());
        });
        let id = told.recv().unwrap()?;
        Some(Self { id, jobs, _thread: thread })
    }

    fn shell(&self, script: &str) {
        let namespace = format!("--net=/proc/{}/task/{}/ns/net", std::process::id(), self.id);
        let status = Command::new("nsenter").args([&namespace, "sh", "-ec", script]).status().unwrap();
        assert!(status.success(), "{script}");
    }

    /// Does it there; sockets and threads that come of it belong there.
    fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (tell, told) = channel();
        self.jobs.send(Box::new(move || tell.send(job()).unwrap())).unwrap();
        told.recv().unwrap()
    }

    fn participant(&self, announce_period_ms: u64, other: &str) -> DomainParticipant {
        let peers = vec![Peer { host: other.to_owned(), port: None }];
        // Other settings than the other host: no sockets are shared with it, though both are one process.
        let config = Config { peers, announce_period_ms, multicast: false, ..Config::default() };
        self.run(move || {
            let factory = DomainParticipantFactory::with_config(config);
            factory.create_participant(DOMAIN, "host", QosSet::default()).unwrap()
        })
    }

    /// Packets that IP has cut here, and such pieces that arrived.
    fn cut_and_put_together(&self) -> [u64; 2] {
        let text = self.run(|| std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap());
        let mut rows = text.lines().filter_map(|line| line.strip_prefix("Ip: "));
        let (names, values) = (rows.next().unwrap(), rows.next().unwrap());
        ["FragCreates", "ReasmReqds"].map(|wanted| {
            let position = names.split(' ').position(|name| name == wanted).unwrap();
            values.split(' ').nth(position).unwrap().parse().unwrap()
        })
    }
}

/// Two hosts and a router between them, which is a thread too.
fn routed<'scope>(scope: &'scope Scope<'scope, '_>) -> Option<[Host<'scope>; 3]> {
    let [near, router, far] = [Host::new(scope)?, Host::new(scope)?, Host::new(scope)?];
    router.shell(&format!(
        "ip link add near0 type veth peer name data0 netns {}\n\
         ip link add far0 mtu 1280 type veth peer name data0 mtu 1280 netns {}\n\
         ip address add 10.1.0.1/24 dev near0; ip address add 10.2.0.1/24 dev far0\n\
         ip link set near0 up; ip link set far0 up; echo 1 > /proc/sys/net/ipv4/ip_forward",
        near.id, far.id
    ));
    for (host, network) in [(&near, "10.1.0"), (&far, "10.2.0")] {
        host.shell(&format!(
            "ip link set lo up; ip address add {network}.2/24 dev data0; ip link set data0 up\n\
             ip route add default via {network}.1"
        ));
    }
    Some([near, router, far])
}

#[test]
fn samples_are_cut_to_what_the_whole_path_takes_and_ip_cuts_nothing() {
    std::thread::scope(|scope| {
        let Some([near, _router, far]) = routed(scope) else {
            assert!(std::env::var_os("CI").is_none(), "networks of their own need CAP_SYS_ADMIN");
            eprintln!("skipped: who runs this may make no networks");
            return;
        };
        let (sender, receiver) = (near.participant(2_900, "10.2.0.2"), far.participant(3_100, "10.1.0.2"));
        let offered = QosSet::writer().keep_all();
        let writer = writer::<Blob>(&sender, "Routed", offered);
        let reader = reader::<Blob>(&receiver, "Routed", QosSet::reader().reliable().keep_all());
        until("both match", || {
            writer.matched_subscriptions().unwrap().len() == 1
                && reader.matched_publications().unwrap().len() == 1
        });
        let before = [near.cut_and_put_together(), far.cut_and_put_together()];
        let octets: Vec<u8> = (0..65_536_u32).map(|index| (index % 251) as u8).collect();
        for number in 0..50 {
            let (writer, blob) = (writer.clone(), Blob { number, octets: octets.clone() });
            near.run(move || writer.write(&blob).unwrap());
            let taken = reader.wait_take(PATIENCE).unwrap();
            let blobs: Vec<_> = taken.into_iter().filter_map(|sample| sample.data).collect();
            assert_eq!(blobs, [Blob { number, octets: octets.clone() }]);
        }
        let after = [near.cut_and_put_together(), far.cut_and_put_together()];
        assert_eq!(before, after, "pieces made and put together by IP, at both ends");
        let unicast = sender.interfaces().into_iter().find(|it| it.index == 0).unwrap();
        // None at all where discovery found it out before.
        assert!(unicast.too_long < 200, "{}: learned once", unicast.too_long);
        drop((writer, reader, sender, receiver));
    });
}
