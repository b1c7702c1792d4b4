//! A screen that shows the domain as it changes.

use std::io::Result;
use std::time::Duration;

use plainsong::prelude::*;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use ratatui::style::Stylize;
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph};
use ratatui::{DefaultTerminal, Frame};

use super::What;
use super::show;
use crate::look::view::View;
use crate::stop::Stop;

const FRAME_PERIOD: Duration = Duration::from_millis(250);

/// Draws until Ctrl-C or q.
pub(super) fn draw(
    what: Option<What>,
    participant: &DomainParticipant,
    look: impl Fn() -> plainsong::Result<View>,
    stop: &Stop,
) -> Result<()> {
    let mut terminal = ratatui::try_init()?;
    let result = draw_frames(&mut terminal, what, participant, look, stop);
    ratatui::restore();
    result
}

fn draw_frames(
    terminal: &mut DefaultTerminal,
    what: Option<What>,
    participant: &DomainParticipant,
    look: impl Fn() -> plainsong::Result<View>,
    stop: &Stop,
) -> Result<()> {
    let mut scroll: u16 = 0;
    while !stop.is_told() {
        participant.ask_types().map_err(std::io::Error::other)?;
        let view = look().map_err(std::io::Error::other)?;
        terminal.draw(|frame| draw_view(frame, &view, what, scroll))?;
        if !event::poll(FRAME_PERIOD)? {
            continue;
        }
        if let Event::Key(key) = event::read()? {
            match key.code {
                KeyCode::Char('q') => return Ok(()),
                // The terminal is raw: Ctrl-C arrives as a key, not as a signal.
                KeyCode::Char('c') if key.modifiers == KeyModifiers::CONTROL => return Ok(()),
                KeyCode::Down | KeyCode::Char('j') => scroll = scroll.saturating_add(1),
                KeyCode::Up | KeyCode::Char('k') => scroll = scroll.saturating_sub(1),
                KeyCode::Home => scroll = 0,
                _ => {}
            }
        }
    }
    Ok(())
}

fn draw_view(frame: &mut Frame<'_>, view: &View, what: Option<What>, scroll: u16) {
    let usual = [What::Participants, What::Topics, What::Endpoints, What::Mismatches];
    let mut lines = Vec::new();
    for part in what.map_or_else(|| usual.to_vec(), |what| vec![what]) {
        // Colours of a terminal are escape sequences, which the screen has no use for.
        let rows = show::rows(view, part);
        for (place, row) in rows.into_iter().enumerate() {
            lines.push(if place == 0 && part != What::Mismatches {
                Line::from(row).bold()
            } else {
                Line::from(row)
            });
        }
        lines.push(Line::default());
    }
    let title = format!(" domain {}: {} participants ", view.domain, view.participants.len());
    let block = Block::bordered().title(title).title_bottom(" ↑↓ scroll, q ends ");
    frame.render_widget(Paragraph::new(lines).scroll((scroll, 0)).block(block), frame.area());
}
