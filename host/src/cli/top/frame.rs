//! One picture: panes with tables, and a line that says what can be done.
//!
//! Everything is told by words and place; colours and weight only repeat it, so it can be read without them.

use keyrail::service::HaltedRow;
use keyrail_ordering::Member;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Borders, Cell, Clear, Paragraph, Row, Table, TableState};

use super::super::failure::one_line;
use super::super::numbers::{count, grouped};
use super::super::text;
use super::model::{Flow, Look, flows};

/// Rows of a pane that shares the screen with others.
const SMALL_PANE_MAX: u16 = 6;

/// More of an error no screen shows.
const ERROR_MAX_CHARS: usize = 200;

/// A line of a table, and how it looks.
type Texts = (Vec<String>, Style);

/// The parts of the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pane {
    Hosts,
    Categories,
    Halted,
}

impl Pane {
    const ALL: [Self; 3] = [Self::Hosts, Self::Categories, Self::Halted];

    /// The one that comes after it, or before it.
    pub(super) fn step(self, forward: bool) -> Self {
        let at = Self::ALL.iter().position(|pane| *pane == self).unwrap_or(0);
        let by = if forward { 1 } else { Self::ALL.len() - 1 };
        Self::ALL[(at + by) % Self::ALL.len()]
    }
}

/// What the person at the keys has chosen.
#[derive(Debug)]
pub(super) struct View {
    pub(super) pane: Pane,
    rows: [usize; 3],
    pub(super) help: bool,
    /// Said at the bottom in place of the keys.
    pub(super) said: Option<String>,
    /// Why the last look failed: then the picture is an older one.
    pub(super) away: Option<String>,
    pub(super) colours: bool,
}

impl View {
    pub(super) fn new(colours: bool) -> Self {
        Self { pane: Pane::Categories, rows: [0; 3], help: false, said: None, away: None, colours }
    }

    /// The row that is chosen in a pane.
    pub(super) fn row(&self, pane: Pane) -> usize {
        self.rows[pane as usize]
    }

    /// Goes up or down in the pane, which has so many rows.
    pub(super) fn go(&mut self, down: bool, rows: usize) {
        let row = &mut self.rows[self.pane as usize];
        *row = if down { (*row + 1).min(rows.saturating_sub(1)) } else { row.saturating_sub(1) };
    }

    fn warning(&self) -> Style {
        if self.colours { Style::new().fg(Color::Red) } else { Style::new().add_modifier(Modifier::BOLD) }
    }
}

/// How many rows a pane has.
pub(super) fn rows_of(look: &Look, pane: Pane) -> usize {
    match pane {
        Pane::Hosts => look.overview.hosts.len(),
        Pane::Categories => flows(look, None).len(),
        Pane::Halted => look.halted.len(),
    }
}

/// Lines that show everything.
pub(super) fn height_of(look: &Look) -> u16 {
    let rows = Pane::ALL.iter().map(|pane| rows_of(look, *pane).max(1) + 2).sum::<usize>();
    u16::try_from(rows + 2).unwrap_or(u16::MAX)
}

/// What to type to see more of the chosen partition.
pub(super) fn command(look: &Look, view: &View) -> Option<String> {
    let row = look.halted.get(view.row(Pane::Halted))?;
    let HaltedRow { group, key, halted } = row;
    Some(text::typed(&text::head_command("show", halted.category.as_str(), key.as_str(), group.as_str())))
}

pub(super) fn draw(frame: &mut Frame, look: &Look, before: Option<&Look>, view: &View) {
    let small = |rows: usize, room: u16| (rows.max(1) as u16).saturating_add(2).min(room);
    let all = frame.area();
    // What is higher than this screen was asked for in one picture: then nothing is cut.
    let room = if all.height >= height_of(look) { u16::MAX } else { SMALL_PANE_MAX };
    let [title, hosts, categories, halted, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(small(look.overview.hosts.len(), room)),
        Constraint::Min(3),
        Constraint::Length(small(look.halted.len(), room)),
        Constraint::Length(1),
    ])
    .areas(all);
    draw_title(frame, title, look);
    draw_hosts(frame, hosts, look, view);
    draw_categories(frame, categories, &flows(look, before), view);
    draw_halted(frame, halted, look, view);
    let keys = " q ends  tab next pane  j/k or arrows move  enter on halted: what to type  ? help";
    match (&view.said, &view.away) {
        (Some(said), _) => frame.render_widget(Paragraph::new(said.as_str()), foot),
        (None, Some(why)) => frame.render_widget(Paragraph::new(format!(" {why}")).style(view.warning()), foot),
        (None, None) => frame.render_widget(Paragraph::new(keys), foot),
    }
    if view.help {
        draw_help(frame, all);
    }
}

fn draw_title(frame: &mut Frame, area: Rect, look: &Look) {
    let overview = &look.overview;
    let time = overview.at.split_once('T').map_or("", |(_, time)| time.get(..8).unwrap_or(time));
    let aside = match overview.dead_letters {
        0 => String::new(),
        some => format!(", {} set aside", grouped(some)),
    };
    let abandoned = match overview.outbox.abandoned {
        0 => String::new(),
        some => format!(", {} abandoned", grouped(some)),
    };
    let hottest = overview.hot_keys.first().map(|hot| {
        let category = hot.category.as_ref().map(|category| format!("{category}/")).unwrap_or_default();
        format!("  hottest {category}{} {} %", hot.key, hot.share.percent())
    });
    let said = format!(
        " keyrail {}  {}  {time} UTC  {} halted{aside}, {} in the outbox{abandoned}{}",
        overview.release,
        overview.broker,
        grouped(overview.halted),
        grouped(overview.outbox.records),
        hottest.unwrap_or_default(),
    );
    frame.render_widget(Line::from(Span::styled(said, Style::new().add_modifier(Modifier::BOLD))), area);
}

fn draw_hosts(frame: &mut Frame, area: Rect, look: &Look, view: &View) {
    let row = |host: &Member| {
        let handlers: Vec<_> = host.groups.iter().map(ToString::to_string).collect();
        let texts = vec![
            host.owner.to_string(),
            handlers.join(","),
            format!("{}/{}", grouped(host.owned), grouped(host.capacity)),
            grouped(host.running),
            grouped(host.settled),
            one_line(&host.release),
            if host.leaving { "leaving".into() } else { "up".into() },
        ];
        (texts, Style::new())
    };
    let widths = [
        Constraint::Fill(3),
        Constraint::Fill(2),
        Constraint::Length(11),
        Constraint::Length(7),
        Constraint::Length(12),
        Constraint::Length(7),
        Constraint::Length(7),
    ];
    let rows: Vec<_> = look.overview.hosts.iter().map(row).collect();
    let title = count(rows.len() as u64, "host");
    let header = ["HOST", "HANDLERS", "OWNED", "RUNNING", "SETTLED", "RELEASE", "STATE"];
    draw_table(frame, area, view, (Pane::Hosts, title, "no host is up: nothing runs"), (&header, &widths, rows));
}

fn draw_categories(frame: &mut Frame, area: Rect, flows: &[Flow<'_>], view: &View) {
    let row = |flow: &Flow<'_>| {
        let (category, group) = flow.of;
        let lag = group.and_then(|group| group.lag);
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
        let name = if category.paused { format!("{} (paused)", flow.category) } else { flow.category.into() };
        let texts = vec![
            name,
            flow.group.unwrap_or("(nobody)").into(),
            grouped(category.keys),
            or_dash(group.map(|group| grouped(group.ready))),
            or_dash(group.map(|group| grouped(group.halted))),
            or_dash(lag.map(|lag| format!("{}{}", if lag.exact { "" } else { "~" }, grouped(lag.events)))),
            or_dash(lag.and_then(|lag| lag.oldest_ms).map(age)),
            or_dash(flow.published_per_s.map(rate)),
            or_dash(flow.settled_per_s.map(rate)),
        ];
        (texts, if group.is_some_and(|group| group.halted > 0) { view.warning() } else { Style::new() })
    };
    let widths = [
        Constraint::Fill(1),
        Constraint::Fill(1),
        Constraint::Length(8),
        Constraint::Length(7),
        Constraint::Length(6),
        Constraint::Length(9),
        Constraint::Length(6),
        Constraint::Length(7),
        Constraint::Length(7),
    ];
    let rows: Vec<_> = flows.iter().map(row).collect();
    let header = ["CATEGORY", "HANDLER", "KEYS", "READY", "HALTED", "LAG", "OLDEST", "IN/S", "DONE/S"];
    let nothing = "nothing is registered: keyrail deploy FILE.wasm";
    draw_table(frame, area, view, (Pane::Categories, "categories".into(), nothing), (&header, &widths, rows));
}

fn draw_halted(frame: &mut Frame, area: Rect, look: &Look, view: &View) {
    let row = |row: &HaltedRow| {
        let texts = vec![
            one_line(&format!("{}/{}", row.halted.category, row.key)),
            row.group.to_string(),
            row.halted.head.clone(),
            row.halted.attempts.to_string(),
            text::gist(&row.halted.error, ERROR_MAX_CHARS),
        ];
        (texts, Style::new())
    };
    let widths =
        [Constraint::Fill(2), Constraint::Fill(1), Constraint::Length(10), Constraint::Length(5), Constraint::Fill(3)];
    let rows: Vec<_> = look.halted.iter().map(row).collect();
    let title = format!("{} halted", grouped(look.overview.halted));
    let header = ["PARTITION", "HANDLER", "HEAD", "TRIES", "ERROR"];
    draw_table(frame, area, view, (Pane::Halted, title, "nothing stands still"), (&header, &widths, rows));
}

fn draw_table(
    frame: &mut Frame,
    area: Rect,
    view: &View,
    (pane, title, nothing): (Pane, String, &str),
    (header, widths, rows): (&[&str], &[Constraint], Vec<Texts>),
) {
    let is_chosen = view.pane == pane;
    let weight = if is_chosen { Modifier::BOLD | Modifier::REVERSED } else { Modifier::BOLD };
    let mark = if is_chosen { ">" } else { " " };
    let title = Span::styled(format!("{mark}{title} "), Style::new().add_modifier(weight));
    let block = Block::new().borders(Borders::TOP).title(title);
    if rows.is_empty() {
        frame.render_widget(Paragraph::new(format!(" {nothing}")).block(block), area);
        return;
    }
    let mut state = TableState::new().with_selected(is_chosen.then(|| view.row(pane).min(rows.len() - 1)));
    let names = row_of(header, header.iter().map(ToString::to_string).collect());
    let rows = rows.into_iter().map(|(texts, style)| row_of(header, texts).style(style));
    let table = Table::new(rows, widths.iter().copied())
        .header(names.style(Style::new().add_modifier(Modifier::DIM)))
        .block(block)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    frame.render_stateful_widget(table, area, &mut state);
}

/// Columns of numbers, which stand to the right.
const NUMBERS: [&str; 11] =
    ["OWNED", "RUNNING", "SETTLED", "KEYS", "READY", "HALTED", "LAG", "OLDEST", "IN/S", "DONE/S", "TRIES"];

fn row_of(header: &[&str], texts: Vec<String>) -> Row<'static> {
    let cells = header.iter().zip(texts).map(|(name, text)| {
        let text = Text::from(text);
        Cell::from(if NUMBERS.contains(name) { text.right_aligned() } else { text })
    });
    Row::new(cells)
}

fn draw_help(frame: &mut Frame, all: Rect) {
    const HELP: [&str; 12] = [
        "q, Esc, Ctrl-C   end",
        "tab, shift-tab   next pane, the one before",
        "j k, arrows      down, up",
        "enter            on what is halted: the command that shows it",
        "",
        "KEYS    streams of keys that there are",
        "READY   keys with work, HALTED keys that stand still",
        "LAG     events that are not settled; ~ reckoned from a sample",
        "OLDEST  how long the oldest of them has waited",
        "IN/S    events published a second, DONE/S handled a second",
        "",
        "any key closes this",
    ];
    let (width, height) = (66.min(all.width), (HELP.len() as u16 + 2).min(all.height));
    let area = Rect::new((all.width - width) / 2, (all.height - height) / 2, width, height);
    frame.render_widget(Clear, area);
    let lines: Vec<_> = HELP.iter().map(|line| Line::from(format!(" {line}"))).collect();
    frame.render_widget(Paragraph::new(lines).block(Block::new().borders(Borders::ALL).title(" help ")), area);
}

/// A time as people say it: `350ms`, `12s`, `4m`, `3h`, `2d`.
fn age(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..120_000 => format!("{}s", ms / 1_000),
        120_000..7_200_000 => format!("{}m", ms / 60_000),
        7_200_000..172_800_000 => format!("{}h", ms / 3_600_000),
        _ => format!("{}d", ms / 86_400_000),
    }
}

fn rate(per_s: f64) -> String {
    if per_s > 0.0 && per_s < 10.0 { format!("{per_s:.1}") } else { grouped(per_s.round() as u64) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::model::tests::look;
    use super::super::text_of;
    use super::*;

    #[test]
    fn everything_is_there_at_80_by_24() {
        let (before, now) = (look("2026-11-30T14:00:00.000Z", 0, 0), look("2026-11-30T14:00:02.000Z", 500, 6));
        let view = View::new(false);
        let shown = text_of(80, 24, |frame| draw(frame, &now, Some(&before), &view)).unwrap();
        let lines: Vec<_> = shown.lines().collect();
        assert_eq!(lines.len(), 24, "{shown}");
        assert!(lines[0].contains("redis://10.0.0.5:6379/0") && lines[0].contains("1 halted, 2 set aside"), "{shown}");
        let line = |with: &str| *lines.iter().find(|line| line.contains(with)).unwrap_or_else(|| panic!("{shown}"));
        let row = line("100,000");
        for part in ["order", "12", "~5,000", "65s", "250", "3.0"] {
            assert!(row.contains(part), "{part} in {row:?}");
        }
        assert!(line("host-1").contains("17/256"));
        assert!(line("order/it's k1").contains("too [31m sour"), "it does not steer the terminal");
        assert!(line("unread").contains("(nobody)"));
        assert!(lines[23].contains("q ends"));
        assert_eq!(command(&now, &view).unwrap(), "keyrail head show order 'it'\\''s k1' --group billing");
    }

    #[test]
    fn no_size_is_too_small_to_draw() {
        let now = look("2026-11-30T14:00:00.000Z", 0, 0);
        for (width, height) in [(1, 1), (10, 3), (200, 5), (20, 80)] {
            let view = View { help: true, ..View::new(true) };
            text_of(width, height, |frame| draw(frame, &now, None, &view)).unwrap();
        }
    }

    #[test]
    fn the_choice_stays_among_the_rows() {
        let mut view = View::new(true);
        view.go(false, 3);
        assert_eq!(view.row(Pane::Categories), 0);
        for _ in 0..5 {
            view.go(true, 3);
        }
        assert_eq!(view.row(Pane::Categories), 2);
        view.go(true, 0);
        assert_eq!(view.row(Pane::Categories), 0);
        assert_eq!(Pane::Hosts.step(false), Pane::Halted);
        assert_eq!(Pane::Halted.step(true), Pane::Hosts);
    }

    #[test]
    fn times_and_rates_are_short() {
        assert_eq!([999, 65_000, 130_000, 7_200_000, 200_000_000].map(age), ["999ms", "65s", "2m", "2h", "2d"]);
        assert_eq!([0.0, 0.4, 9.96, 12_345.6].map(rate), ["0", "0.4", "10.0", "12,346"]);
    }
}
