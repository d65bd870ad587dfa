//! The terminal: taken over, drawn on, and given back however this ends.

use std::time::Duration;

use anyhow::{Context, Result};
use keyrail::access::Access;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::super::failure::one_line;
use super::frame::{self, Pane, View};
use super::model::Look;

/// How often the thread that reads keys sees whether it is still wanted.
const KEYS_POLL: Duration = Duration::from_millis(200);
/// Keys that wait.
const KEYS_MAX: usize = 64;

/// Gives the terminal back. A panic does so too, by the hook that taking it over installs.
struct Restored;

impl Drop for Restored {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

pub(super) async fn watch(access: &Access, interval: Duration, colours: bool) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for signals")?;
    let mut hangup = signal(SignalKind::hangup()).context("cannot listen for signals")?;
    // Before the screen goes: what is wrong now is said on the ordinary one.
    let mut now = Look::take(access).await?;
    let mut before: Option<Look> = None;
    let mut view = View::new(colours);
    let mut terminal = ratatui::try_init().context("cannot take the terminal over")?;
    let _restored = Restored;
    let mut keys = keys();
    let mut looks = tokio::time::interval(interval);
    looks.reset();
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        draw(&mut terminal, &now, before.as_ref(), &view)?;
        tokio::select! {
            _ = terminate.recv() => return Ok(()),
            _ = hangup.recv() => return Ok(()),
            event = keys.recv() => match event {
                None => return Ok(()),
                Some(Event::Key(key)) if key.kind != KeyEventKind::Release => {
                    if !press(&mut view, &now, key) {
                        return Ok(());
                    }
                }
                // Another size, or nothing that means anything here: draw again.
                Some(_) => {}
            },
            _ = looks.tick() => match Look::take(access).await {
                Ok(look) => {
                    before = Some(std::mem::replace(&mut now, look));
                    view.away = None;
                }
                Err(error) => view.away = Some(one_line(&error.to_string())),
            },
        }
    }
}

fn draw(terminal: &mut DefaultTerminal, now: &Look, before: Option<&Look>, view: &View) -> Result<()> {
    terminal.draw(|frame| frame::draw(frame, now, before, view)).context("cannot draw")?;
    Ok(())
}

/// What a key does. False to end.
fn press(view: &mut View, look: &Look, key: KeyEvent) -> bool {
    let with_ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    if with_ctrl && key.code == KeyCode::Char('c') {
        return false;
    }
    view.said = None;
    if view.help {
        view.help = false;
        return true;
    }
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => return false,
        KeyCode::Char('?') => view.help = true,
        KeyCode::Tab => view.pane = view.pane.step(true),
        KeyCode::BackTab => view.pane = view.pane.step(false),
        KeyCode::Char('j') | KeyCode::Down => view.go(true, frame::rows_of(look, view.pane)),
        KeyCode::Char('k') | KeyCode::Up => view.go(false, frame::rows_of(look, view.pane)),
        KeyCode::Enter if view.pane == Pane::Halted => {
            view.said = frame::command(look, view).map(|command| format!(" {command}"));
        }
        _ => {}
    }
    true
}

/// Keys, from a thread of their own: reading a terminal blocks.
fn keys() -> mpsc::Receiver<Event> {
    let (sender, receiver) = mpsc::channel(KEYS_MAX);
    std::thread::spawn(move || {
        while !sender.is_closed() {
            match event::poll(KEYS_POLL) {
                Ok(false) => {}
                Ok(true) => match event::read() {
                    Ok(event) => {
                        if sender.blocking_send(event).is_err() {
                            return;
                        }
                    }
                    Err(_) => return,
                },
                // The terminal is gone; so is the sender, and with it the loop.
                Err(_) => return,
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::model::tests::look;
    use super::*;

    #[test]
    fn keys_move_ask_and_end() {
        let look = look("2026-11-30T14:00:00.000Z", 0, 0);
        let mut view = View::new(true);
        let mut press = |code: KeyCode| {
            let goes_on = super::press(&mut view, &look, KeyEvent::new(code, KeyModifiers::NONE));
            (goes_on, view.pane, view.row(Pane::Categories), view.help, view.said.clone())
        };
        assert_eq!(press(KeyCode::Char('j')), (true, Pane::Categories, 1, false, None));
        assert_eq!(press(KeyCode::Enter).4, None, "only on what is halted");
        assert!(press(KeyCode::Char('?')).3);
        assert_eq!(press(KeyCode::Char('q')), (true, Pane::Categories, 1, false, None), "it closes the help");
        assert_eq!(press(KeyCode::Tab).1, Pane::Halted);
        assert!(press(KeyCode::Enter).4.unwrap().contains("keyrail head show order"));
        assert!(!press(KeyCode::Char('q')).0);
        assert!(!super::press(&mut View::new(true), &look, KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
    }
}
