//! `xtask/tidy.txt`: one setting a line, the first word says which.

/// A file or function that may be longer than the rule.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Exception {
    /// `path` of a file, or `path::name` of a function.
    pub(super) subject: String,
    /// How long it may be, in lines.
    pub(super) limit: usize,
}

/// What `xtask/tidy.txt` says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) exceptions: Vec<Exception>,
    /// The order of the modules in each directory that has layers.
    pub(super) directories: Vec<(String, Layers)>,
    /// Circles of files that are allowed.
    pub(super) cycles: Vec<Vec<String>>,
    /// Folders, and a name that stands in one place of each.
    pub(super) once: Vec<(String, String)>,
    /// Folders, and the names that stand nowhere else in their crates.
    pub(super) confined: Vec<(String, Vec<String>)>,
    /// Files that may hold `unsafe`.
    pub(super) unsafe_files: Vec<String>,
    /// Pages, and how many octets they may have together.
    pub(super) pages: Vec<(Vec<String>, u64)>,
    /// Files, and the constants outside the table of tuning that they may have; none named: any.
    pub(super) constants: Vec<(String, Vec<String>)>,
}

impl Settings {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut settings = Self::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            settings.line(line).map_err(|message| format!("xtask/tidy.txt:{}: {message}", index + 1))?;
        }
        Ok(settings)
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        let (setting, rest) = line.split_once(' ').unwrap_or((line, ""));
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        match setting {
            "layers" => self.directories.push((rest.to_owned(), Layers::default())),
            "layer" => self.last()?.layers.push(words(rest)),
            "apart" => self.last()?.apart.push(words(rest)),
            "cycle" => {
                let (files, reason) = rest.split_once(": ").unwrap_or((rest, ""));
                if reason.len() < 10 {
                    return Err("cycle FILES: REASON: a reason is needed".to_owned());
                }
                self.cycles.push(words(files));
            }
            "only" => match rest.split_once(' ') {
                Some((folder, names)) if folder.contains("/src/") => {
                    self.confined.push((folder.to_owned(), words(names)));
                }
                _ => return Err("only FOLDER NAMES: a folder below src, and names".to_owned()),
            },
            "once" => match rest.split_once(' ') {
                Some((folder, name)) => self.once.push((folder.to_owned(), name.to_owned())),
                None => return Err("once FOLDER NAME: a folder, and a name".to_owned()),
            },
            "unsafe" => {
                let (path, reason) = rest.split_once(' ').unwrap_or((rest, ""));
                if reason.len() < 10 {
                    return Err(format!("unsafe {path} REASON: a reason is needed"));
                }
                self.unsafe_files.push(path.to_owned());
            }
            "pages" => match rest.split_once(' ').map(|(most, pages)| (most.parse(), words(pages))) {
                Some((Ok(most), pages)) => self.pages.push((pages, most)),
                _ => return Err("pages OCTETS PAGES: octets are a number".to_owned()),
            },
            "constants" => {
                let (subject, reason) = rest.split_once(": ").unwrap_or((rest, ""));
                if reason.len() < 10 {
                    return Err("constants PATH NAMES: REASON: a reason is needed".to_owned());
                }
                let (path, names) = subject.split_once(' ').unwrap_or((subject, ""));
                self.constants.push((path.to_owned(), words(names)));
            }
            "allow" => {
                let mut fields = rest.splitn(3, ' ');
                let subject = fields.next().unwrap_or_default().to_owned();
                let limit = fields.next().and_then(|text| text.parse().ok());
                let limit = limit.ok_or("allow SUBJECT LINES REASON: lines are a number")?;
                if fields.next().is_none_or(|reason| reason.len() < 10) {
                    return Err(format!("{subject}: an exception needs a reason"));
                }
                self.exceptions.push(Exception { subject, limit });
            }
            other => return Err(format!("no setting `{other}`")),
        }
        Ok(())
    }

    /// The directory whose lines these are.
    fn last(&mut self) -> Result<&mut Layers, String> {
        self.directories
            .last_mut()
            .map(|(_, layers)| layers)
            .ok_or_else(|| "layers DIRECTORY comes first".to_owned())
    }
}

/// The order of the modules in one directory.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Layers {
    /// Modules, lowest layer first. A module may name its own layer and those below.
    layers: Vec<Vec<String>>,
    /// Modules that may not name one another though their layers allow it.
    apart: Vec<Vec<String>>,
}

impl Layers {
    /// Whether module `from` may name module `to`; `None` when either is in no layer.
    pub(super) fn may_name(&self, from: &str, to: &str) -> Option<bool> {
        let is_below = self.layer_of(to)? <= self.layer_of(from)?;
        let both = |group: &Vec<String>| [from, to].iter().all(|n| group.iter().any(|m| m == n));
        let is_apart = from != to && self.apart.iter().any(both);
        Some(is_below && !is_apart)
    }

    /// The layer of a module.
    pub(super) fn layer_of(&self, module: &str) -> Option<usize> {
        self.layers.iter().position(|layer| layer.iter().any(|name| name == module))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_without_a_reason_is_refused() {
        assert!(Settings::parse("allow a.rs 900").is_err());
        assert!(Settings::parse("allow a.rs 900 why not").is_err());
        assert!(Settings::parse("unsafe a.rs").is_err());
        let settings = Settings::parse("allow a.rs 900 one table, a row each").expect("parses");
        assert_eq!(settings.exceptions[0].limit, 900);
    }

    #[test]
    fn names_are_confined_to_a_folder_below_src() {
        assert!(Settings::parse("only crates/a/src/net").is_err());
        assert!(Settings::parse("only crates/a Socket").is_err());
        let settings = Settings::parse("only crates/a/src/net Socket Address").expect("parses");
        assert_eq!(settings.confined[0].1, ["Socket", "Address"]);
    }
}
