//! Names of topics: those of DDS, those that tools of ROS 2 show, and patterns of both.

/// What ROS 2 puts before the names of its topics.
const ROS_PREFIX: &str = "rt/";

/// The name of a topic in a file: of a topic of ROS 2 the one that its tools show.
#[must_use]
pub fn channel_topic(dds: &str) -> String {
    dds.strip_prefix(ROS_PREFIX).map_or_else(|| dds.to_owned(), |name| format!("/{name}"))
}

/// The name on the wire of what [`channel_topic`] shows.
#[must_use]
pub fn dds_topic(channel: &str) -> String {
    channel.strip_prefix('/').map_or_else(|| channel.to_owned(), |name| format!("{ROS_PREFIX}{name}"))
}

/// Patterns of names: `*` stands for any characters, `?` for one.
#[derive(Clone, Debug, Default)]
pub struct Globs(Vec<Vec<char>>);

impl Globs {
    /// Any of these.
    #[must_use]
    pub fn new(patterns: &[String]) -> Self {
        Self(patterns.iter().map(|pattern| pattern.chars().collect()).collect())
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one of them is the topic of this name, as on the wire or as shown.
    #[must_use]
    pub fn has_topic(&self, dds: &str) -> bool {
        let names = [dds.to_owned(), channel_topic(dds)];
        names.iter().any(|name| {
            let name: Vec<char> = name.chars().collect();
            self.0.iter().any(|pattern| matches(pattern, &name))
        })
    }
}

/// Without recursion: after a mismatch only the last `*` takes one character more.
fn matches(pattern: &[char], text: &[char]) -> bool {
    let (mut at, mut from) = (0, 0);
    let mut star = None;
    while from < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(letter) if *letter == '?' || text.get(from) == Some(letter) => {
                at += 1;
                from += 1;
            }
            _ => {
                let Some((last, taken)) = star else { return false };
                star = Some((last, taken + 1));
                at = last + 1;
                from = taken + 1;
            }
        }
    }
    pattern.get(at..).unwrap_or_default().iter().all(|letter| *letter == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names_on_the_wire_and_as_shown() {
        let has = |pattern: &str, topic: &str| Globs::new(&[pattern.to_owned()]).has_topic(topic);
        assert!(has("Square", "Square") && !has("Square", "Squares") && !has("Squares", "Square"));
        assert!(has("*", "") && has("S*e", "Square") && has("S?uare", "Square") && !has("S?", "S"));
        assert!(
            has("/chatter", "rt/chatter") && has("rt/*", "rt/chatter") && has("/cam*/image", "rt/cam0/image")
        );
        assert!(has("*a*b*c", "xxaxxbbxxc") && !has("*a*b*c", "xxaxxbbxx"));
        let long = "a".repeat(100_000);
        assert!(!has(&"*a".repeat(50), &format!("{long}b")), "and it takes no time");
    }

    #[test]
    fn names_of_ros_topics_are_shown_as_ros_shows_them() {
        for (dds, shown) in
            [("rt/chatter", "/chatter"), ("Square", "Square"), ("rq/addRequest", "rq/addRequest")]
        {
            assert_eq!(channel_topic(dds), shown);
            assert_eq!(dds_topic(shown), dds);
        }
    }
}
