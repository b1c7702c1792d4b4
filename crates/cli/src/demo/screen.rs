//! What the demo shows: shapes as each subscriber sees them, rates, latencies, interfaces and peers.

use std::io::Result;
use std::time::{Duration, Instant};

use plainsong::prelude::*;
use plainsong::state::RemoteParticipantState;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::symbols::Marker;
use ratatui::text::Line;
use ratatui::widgets::canvas::{Canvas, Rectangle};
use ratatui::widgets::{Block, Paragraph, Row, Table, Wrap};
use ratatui::{DefaultTerminal, Frame};

use super::Options;
use super::team::{Team, View};
use crate::output::{self, counted, say};
use crate::shape_type::CANVAS;
use crate::stop::Stop;

const FRAME_PERIOD: Duration = Duration::from_millis(66);

/// Draws until Ctrl-C, q, or the end.
pub(super) fn draw(
    options: &Options,
    participant: &DomainParticipant,
    team: &Team,
    stop: &Stop,
    end: Option<Instant>,
) -> Result<()> {
    let mut terminal = ratatui::try_init()?;
    let result = draw_frames(&mut terminal, options, participant, team, stop, end);
    ratatui::restore();
    result
}

/// Prints a line a second until Ctrl-C or the end, or until nobody reads any more.
pub(super) fn print(participant: &DomainParticipant, team: &Team, stop: &Stop, end: Option<Instant>) {
    for line in interfaces(participant) {
        say!("interface {line}");
    }
    let mut known = Vec::new();
    while !output::is_closed() && !stop.is_told() && end.is_none_or(|end| Instant::now() < end) {
        stop.sleep(Duration::from_secs(1));
        for peer in peers(participant) {
            if !known.contains(&peer) {
                say!("peer {peer}");
                known.push(peer);
            }
        }
        for view in team.views() {
            let shapes: Vec<_> = view
                .shapes
                .iter()
                .map(|(color, seen)| format!("{color} at {:.0},{:.0}", seen.x, seen.y))
                .collect();
            say!("{}: {}", summary(&view), shapes.join(", "));
        }
    }
}

fn draw_frames(
    terminal: &mut DefaultTerminal,
    options: &Options,
    participant: &DomainParticipant,
    team: &Team,
    stop: &Stop,
    end: Option<Instant>,
) -> Result<()> {
    while !stop.is_told() && end.is_none_or(|end| Instant::now() < end) {
        let (views, interfaces, peers) = (team.views(), interfaces(participant), peers(participant));
        terminal.draw(|frame| {
            let side_width = 44.min(frame.area().width / 2);
            let [side, main] =
                Layout::horizontal([Constraint::Length(side_width), Constraint::Fill(1)]).areas(frame.area());
            draw_side(frame, side, options, team.publisher(), &interfaces, &peers);
            draw_views(frame, main, &views);
        })?;
        if event::poll(FRAME_PERIOD)?
            && let Event::Key(key) = event::read()?
        {
            // The terminal is raw: Ctrl-C arrives as a key, not as a signal.
            let interrupted = key.code == KeyCode::Char('c') && key.modifiers == KeyModifiers::CONTROL;
            if interrupted || key.code == KeyCode::Char('q') {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn draw_side(
    frame: &mut Frame<'_>,
    area: Rect,
    options: &Options,
    publisher: u32,
    interfaces: &[String],
    peers: &[String],
) {
    let mut lines = vec![
        Line::from(format!("topic {}, domain {}", options.topic, options.domain)),
        Line::from(format!("publisher: process {publisher}, {} Hz a colour", options.rate)),
        Line::default(),
        Line::from("interfaces").bold(),
    ];
    lines.extend(interfaces.iter().map(|line| Line::from(line.clone())));
    lines.extend([Line::default(), Line::from("participants found").bold()]);
    lines.extend(peers.iter().map(|line| Line::from(line.clone())));
    let block = Block::bordered().title(" Plainsong ").title_bottom(" q or Ctrl-C ends ");
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: true }).block(block), area);
}

fn draw_views(frame: &mut Frame<'_>, area: Rect, views: &[View]) {
    let table_height = u16::try_from(views.len()).unwrap_or(u16::MAX).saturating_add(3);
    let [canvases, table] =
        Layout::vertical([Constraint::Fill(1), Constraint::Length(table_height)]).areas(area);
    let columns = Layout::horizontal(vec![Constraint::Fill(1); views.len()]).split(canvases);
    for (view, column) in views.iter().zip(columns.iter()) {
        let canvas = Canvas::default()
            .block(Block::bordered().title(format!(" subscriber {} ", view.process)))
            .marker(Marker::Braille)
            .x_bounds([-20.0, f64::from(CANVAS.0) + 20.0])
            .y_bounds([-20.0, f64::from(CANVAS.1) + 20.0])
            .paint(|context| {
                for (color, seen) in &view.shapes {
                    context.draw(&Rectangle {
                        x: seen.x - seen.size / 2.0,
                        // The OMG canvas grows downwards, this one upwards.
                        y: f64::from(CANVAS.1) - seen.y - seen.size / 2.0,
                        width: seen.size,
                        height: seen.size,
                        color: paint(color),
                    });
                }
            });
        frame.render_widget(canvas, *column);
    }
    let rows = views.iter().map(|view| {
        Row::new([
            view.process.to_string(),
            format!("{:.0}", view.samples_per_second),
            format!("{:.0}", view.latency_p50_us),
            format!("{:.0}", view.latency_p99_us),
            view.writers.to_string(),
        ])
    });
    let header = Row::new(["subscriber", "samples/s", "p50 µs", "p99 µs", "writers"]);
    let widths = [12, 10, 8, 8, 8].map(Constraint::Length);
    let table_widget = Table::new(rows, widths)
        .header(header.style(Style::new().bold()))
        .block(Block::bordered().title(" write to take, one way "));
    frame.render_widget(table_widget, table);
}

fn summary(view: &View) -> String {
    format!(
        "subscriber {}: {:.0} samples/s, p50 {:.0} µs, p99 {:.0} µs, {}",
        view.process,
        view.samples_per_second,
        view.latency_p50_us,
        view.latency_p99_us,
        counted(view.writers as u64, "writer")
    )
}

fn interfaces(participant: &DomainParticipant) -> Vec<String> {
    let reports = participant.interfaces();
    // The row without a number is about unicast, which needs no mention while nothing is refused or lost.
    let worth_telling =
        reports.iter().filter(|report| report.name != "*" || report.send_errors > 0 || report.overflows > 0);
    worth_telling.map(ToString::to_string).collect()
}

fn peers(participant: &DomainParticipant) -> Vec<String> {
    let peers = participant.state().map(|state| state.remote_participants.items).unwrap_or_default();
    let line = |peer: RemoteParticipantState| {
        let from = peer.address.map_or_else(|| "?".into(), |address| address.to_string());
        let product = peer.product.as_deref().unwrap_or("unknown vendor");
        format!("{product} {:?} from {from} {}", peer.guid.prefix, peer.name)
    };
    peers.into_iter().map(line).collect()
}

fn paint(color: &str) -> Color {
    match color.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "BLUE" => Color::Blue,
        "RED" => Color::Red,
        "GREEN" => Color::Green,
        "YELLOW" => Color::Yellow,
        "MAGENTA" | "PURPLE" => Color::Magenta,
        "CYAN" => Color::Cyan,
        "ORANGE" => Color::LightRed,
        _ => Color::White,
    }
}
