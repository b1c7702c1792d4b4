//! Campaign files, from their text to their cells.

use super::*;

const HEAD: &str = "schema = 1\nname = \"test\"\n";

fn campaign(scenario: &str) -> Result<Campaign, String> {
    Campaign::parse(&format!("{HEAD}[[scenario]]\n{scenario}"))
}

fn names(scenario: &str) -> Vec<String> {
    resolve(&campaign(scenario).unwrap()).unwrap().into_iter().map(|it| it.cell.id).collect()
}

#[test]
fn each_value_is_measured_with_each_other() {
    let names = names(
        "kind = \"pingpong\"\nadapters = [\"plainsong\", \"udp\"]\nsizes = [\"4..16*2\", 64]\n\
         qos.reliability = [\"reliable\", \"best_effort\"]",
    );
    assert_eq!(names.len(), 2 * 4 * 2);
    assert!(names.contains(&"pingpong.plainsong.reliable.4".to_owned()), "{names:?}");
    assert!(names.contains(&"pingpong.udp.best_effort.64".to_owned()), "{names:?}");
}

#[test]
fn lists_that_go_together_are_taken_side_by_side() {
    let names = names(
        "kind = \"multicast\"\nadapters = [\"a\"]\npublishers = [1, 3, 10]\nsubscribers = [1, 3, 10]\n\
         multicast = [true, false]\ntogether = [\"publishers\", \"subscribers\"]",
    );
    assert_eq!(names.len(), 6, "{names:?}");
    assert!(names.contains(&"multicast.a.unicast.10p.10s".to_owned()), "{names:?}");
}

#[test]
fn values_that_go_together_may_come_twice() {
    let names = names(
        "kind = \"read_method\"\nadapters = [\"a\"]\ninstances = [1, 70000, 70000]\n\
         qos.reliability = [\"reliable\", \"reliable\", \"best_effort\"]\n\
         together = [\"instances\", \"reliability\"]",
    );
    let expected = ["reliable.1i", "reliable.70000i", "best_effort.70000i"];
    assert_eq!(names, expected.map(|it| format!("read_method.a.{it}")));
}

#[test]
fn the_campaigns_that_come_with_plainsong_are_campaigns() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../campaigns");
    for (file, cells_min) in [
        ("smoke.toml", 10),
        ("papers.toml", 200),
        ("full.toml", 100),
        ("records.toml", 80),
        ("consistency.toml", 80),
    ] {
        let campaign = Campaign::read(&directory.join(file)).unwrap();
        assert!(resolve(&campaign).unwrap().len() >= cells_min, "{file}");
    }
}

#[test]
fn pairs_cross_where_both_can_speak_rtps() {
    let names =
        names("kind = \"pingpong\"\nadapters = [\"plainsong\", \"cyclone\", \"udp\"]\npair = \"same+cross\"");
    let expected = ["plainsong", "cyclone", "udp", "plainsong~cyclone", "cyclone~plainsong"];
    assert_eq!(names, expected.map(|it| format!("pingpong.{it}")));
}

#[test]
fn a_cell_says_all_its_parameters_and_the_campaign_is_their_default() {
    let text = "schema = 1\nname = \"test\"\n[network]\nmode = \"pair\"\nloss_percent = 1.5\n[[scenario]]\n\
                kind = \"throughput\"\nadapters = [\"plainsong\"]\npacing = \"burst:100/10ms\"";
    let planned = resolve(&Campaign::parse(text).unwrap()).unwrap().remove(0);
    assert_eq!(planned.point.network, NetworkMode::Pair);
    assert_eq!(planned.point.loss_percent, 1.5);
    assert_eq!((planned.point.publishers, planned.point.size), (1, 64));
    assert_eq!(planned.cell.parameters["pacing"], "burst:100/10ms");
    assert_eq!(planned.cell.parameters["reliable"], true);
}

#[test]
fn a_resolved_campaign_can_be_stored_and_gives_the_same_cells() {
    let campaign = campaign(
        "kind = \"read_method\"\nadapters = [\"plainsong\"]\nsizes = \"4..64KiB*4\"\n\
         read = [\"listener\", \"polling:10ms\"]\ninstances = [1, 70000]\n\
         ramp = { start = 1000, step = 1000, hold = \"2s\" }\nqos = { history = \"keep_last:1\" }",
    )
    .unwrap();
    let stored = serde_json::to_value(&campaign).unwrap();
    let again = Campaign::from_run(stored).unwrap();
    let ids = |it: &Campaign| resolve(it).unwrap().into_iter().map(|it| it.cell).collect::<Vec<_>>();
    assert_eq!(ids(&campaign), ids(&again));
}

#[test]
fn errors_have_the_line_and_what_to_do() {
    for (scenario, line, hint) in [
        ("kind = \"pingpong\"\nadapters = [\"a\"]\nsise = 4", 6, "sise"),
        ("kind = \"pingpong\"\nadapters = [\"a\"]\nsizes = \"4kB\"", 6, "4..16KiB*2"),
        (
            "kind = \"pingpong\"\nadapters = [\"a\"]\npublishers = 3",
            6,
            "kind = \"pingpong\" has no publishers",
        ),
        ("kind = \"pingpong\"", 3, "adapters = [\"plainsong\"]"),
        ("kind = \"ramp\"\nadapters = [\"a\"]", 4, "ramp = { start"),
        ("kind = \"fan\"\nadapters = [\"a\"]\npublishers = []", 6, "an empty list"),
        ("kind = \"pong\"", 4, "unknown variant"),
        ("kind = \"fan\"\nadapters = [\"a\"]\ntogether = [\"publishers\"]", 6, "no list \"publishers\""),
    ] {
        let error = campaign(scenario).unwrap_err();
        assert!(error.contains(&format!("line {line}")), "{scenario}\n{error}");
        assert!(error.contains(hint), "{scenario}\n{error}");
    }
}

#[test]
fn two_scenarios_need_two_names() {
    let error =
        campaign("kind = \"fan\"\nadapters = [\"a\"]\n[[scenario]]\nkind = \"fan\"\nadapters = [\"a\"]");
    assert!(error.unwrap_err().contains("another name"));
}

#[test]
fn a_ratio_that_says_nothing_is_refused_with_its_line() {
    let with = |ratio: &str| {
        campaign(&format!("kind = \"pingpong\"\nadapters = [\"plainsong\", \"udp\"]\nratios = [{ratio}]"))
            .map(drop)
    };
    let sides = "of = { adapter = \"plainsong\" }, to = { adapter = \"udp\" }";
    assert_eq!(with(&format!("{{ metric = \"p50_us\", {sides}, max = 1.2 }}")), Ok(()));
    let refused = |ratio: &str, words: &str| {
        let error = with(ratio).expect_err(words);
        assert!(error.contains(words) && error.starts_with("line 6"), "{error}");
    };
    refused(&format!("{{ metric = \"speed\", {sides}, max = 1.2 }}"), "no metric called speed");
    refused(&format!("{{ metric = \"p50_us\", {sides} }}"), "needs min or max");
    let odd = "{ metric = \"p50_us\", of = { colour = \"red\" }, to = {}, max = 1 }";
    refused(odd, "no parameter called colour");
}

#[test]
fn what_streams_beside_pings_is_a_parameter_that_ratios_can_name() {
    let scenario = "kind = \"pingpong\"\nadapters = [\"a\"]\nbackground = [\"none\", \"16MiB@30\"]\n\
                    ratios = [{ metric = \"p99_us\", of = { background = \"16MiB@30\" }, to = { background = \"none\" }, max = 3 }]";
    assert_eq!(names(scenario), ["pingpong.a.beside-none", "pingpong.a.beside-16MiB-30"]);
    let error = campaign("kind = \"throughput\"\nadapters = [\"a\"]\nbackground = \"16MiB\"").unwrap_err();
    assert!(error.contains("has no background"), "{error}");
}

#[test]
fn an_outage_has_time_before_it_and_after_it() {
    let campaign =
        campaign("kind = \"outage\"\nadapters = [\"a\"]\noutage = [\"200ms\", \"2s\"]\nduration = \"1s\"")
            .unwrap();
    let names: Vec<_> = resolve(&campaign).unwrap().into_iter().map(|it| it.cell.id).collect();
    assert_eq!(names, ["outage.a.200ms", "outage.a.2s"]);
}
