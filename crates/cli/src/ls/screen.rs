//! A screen that shows the domain as it changes.

use plainsong::prelude::*;

use super::What;
use super::show;
use crate::look::view::View;
use crate::output::counted;
use crate::screen::Page;

/// What the screen shows now.
pub(super) fn page(
    what: Option<What>,
    participant: &DomainParticipant,
    view: &View,
) -> plainsong::Result<Page> {
    participant.ask_types()?;
    let usual = [What::Participants, What::Topics, What::Endpoints, What::Mismatches];
    let mut lines = Vec::new();
    for part in what.map_or_else(|| usual.to_vec(), |what| vec![what]) {
        // Colours of a terminal are escape sequences, which the screen has no use for.
        let rows = show::rows(view, part).into_iter().enumerate();
        lines.extend(rows.map(|(place, row)| (row, place == 0 && part != What::Mismatches)));
        lines.push((String::new(), false));
    }
    let title =
        format!(" domain {}: {} ", view.domain, counted(view.participants.len() as u64, "participant"));
    Ok(Page { title, lines })
}
