//! How long the others wait while somebody joins.

use super::*;

/// The longest time in which a member that writes all the time delivers nothing, while another one joins.
fn longest_pause(mut world: World) -> Duration {
    world.start(4);
    let mut longest = Duration::ZERO;
    let mut last = world.now;
    let mut delivered = world.samples(1).len();
    for number in 100..2_100 {
        // Refused while the group changes.
        let _ = world.write(2, number);
        world.run(Duration::from_micros(500));
        let now_delivered = world.samples(1).len();
        if now_delivered > delivered {
            delivered = now_delivered;
            longest = longest.max(world.now.since(last));
            last = world.now;
        }
    }
    assert_eq!(world.phases().iter().map(|it| (it.0, it.2)).collect::<Vec<_>>(), [(Phase::Active, 4); 4]);
    longest
}

#[test]
fn the_others_hardly_wait_for_who_joins() {
    let pause = longest_pause(three(true));
    assert!(pause <= Duration::from_millis(5), "{pause:?}");
}
