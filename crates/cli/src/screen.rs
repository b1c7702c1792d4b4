//! A screen of lines that is drawn again and again.

use std::io::Result;
use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use ratatui::style::Stylize;
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph};
use ratatui::{DefaultTerminal, Frame};

use crate::stop::Stop;

const FRAME_PERIOD: Duration = Duration::from_millis(250);

/// What the screen shows.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    /// Above.
    pub(crate) title: String,
    /// Line by line, and whether it stands out.
    pub(crate) lines: Vec<(String, bool)>,
}

/// Draws what `look` gives until Ctrl-C or q.
pub(crate) fn draw(stop: &Stop, mut look: impl FnMut() -> plainsong::Result<Page>) -> Result<()> {
    let mut terminal = ratatui::try_init()?;
    let result = draw_pages(&mut terminal, stop, &mut look);
    ratatui::restore();
    result
}

fn draw_pages(
    terminal: &mut DefaultTerminal,
    stop: &Stop,
    look: &mut impl FnMut() -> plainsong::Result<Page>,
) -> Result<()> {
    let mut scroll: u16 = 0;
    while !stop.is_told() {
        let page = look().map_err(std::io::Error::other)?;
        terminal.draw(|frame| draw_page(frame, page, scroll))?;
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

fn draw_page(frame: &mut Frame<'_>, page: Page, scroll: u16) {
    let line = |(text, is_bold): (String, bool)| {
        if is_bold { Line::from(text).bold() } else { Line::from(text) }
    };
    let lines: Vec<Line<'_>> = page.lines.into_iter().map(line).collect();
    let block = Block::bordered().title(page.title).title_bottom(" ↑↓ scroll, q ends ");
    frame.render_widget(Paragraph::new(lines).scroll((scroll, 0)).block(block), frame.area());
}
