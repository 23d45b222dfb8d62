//! The screen of `millrace top`: what happens is drawn, and the terminal is given back on every way out.

use super::figures::{Figures, Reading};
use super::reading::Reader;
use super::screen;
use super::view::{After, View};
use crate::failure::Failure;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use std::io::{Stdout, stdout};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// What the first rates are measured over, so that they are soon there.
const FIRST_INTERVAL: Duration = Duration::from_millis(300);

/// What the screen waits for.
enum Happened {
    /// The head was read, or could not be.
    Read(Box<Result<Reading, Failure>>),
    /// A key was pressed.
    Pressed(KeyEvent),
    /// The terminal has another size.
    Resized,
    /// A signal came, or the terminal is gone.
    Ended,
}

/// Shows the head until somebody has seen enough.
pub fn run(mut view: View, interval: Duration, colours: bool, reader: Reader) -> Result<(), Failure> {
    // A head that cannot be read at all is a failure like that of any command.
    let (mut before, mut now) = (None, reader.read()?);
    let (happens, happened) = channel();
    listen(&happens)?;
    let mut screen = Screen::begin()?;
    begin(&happens, "keys", send_keys)?;
    begin(&happens, "reader", move |happens| send_readings(&reader, interval, &happens))?;
    let mut trouble: Option<String> = None;
    loop {
        let figures = Figures::new(before.as_ref(), &now);
        view.scroll = view.scroll.min(screen::rows(&figures, &view).len().saturating_sub(1));
        screen.draw(&figures, &view, trouble.as_deref(), colours)?;
        match next(&happened) {
            Happened::Read(read) => match *read {
                Ok(reading) => {
                    before = Some(core::mem::replace(&mut now, reading));
                    trouble = None;
                }
                // It may be on its way back: whoever watches a restart wants to see its end.
                Err(failure) => trouble = Some(failure.message),
            },
            Happened::Pressed(key) => match view.on_key(key) {
                After::Go => {}
                After::End => return Ok(()),
            },
            Happened::Resized => {}
            Happened::Ended => return Ok(()),
        }
    }
}

fn next(happened: &Receiver<Happened>) -> Happened {
    happened.recv().unwrap_or(Happened::Ended)
}

/// A thread that tells what happens; it ends with the process.
fn begin(
    happens: &Sender<Happened>,
    name: &str,
    run: impl FnOnce(Sender<Happened>) + Send + 'static,
) -> Result<(), Failure> {
    let happens = happens.clone();
    let thread = std::thread::Builder::new().name(name.into()).spawn(move || run(happens));
    thread.map(|_| ()).map_err(|e| Failure::internal(format!("cannot start a thread: {e}")))
}

fn send_readings(reader: &Reader, interval: Duration, happens: &Sender<Happened>) {
    let mut pause = interval.min(FIRST_INTERVAL);
    loop {
        std::thread::sleep(pause);
        if happens.send(Happened::Read(Box::new(reader.read()))).is_err() {
            return;
        }
        pause = interval;
    }
}

fn send_keys(happens: Sender<Happened>) {
    loop {
        let what = match event::read() {
            Ok(Event::Key(key)) if key.kind != KeyEventKind::Release => Happened::Pressed(key),
            Ok(Event::Resize(..)) => Happened::Resized,
            Ok(_) => continue,
            Err(_) => Happened::Ended,
        };
        let ends = matches!(what, Happened::Ended);
        if happens.send(what).is_err() || ends {
            return;
        }
    }
}

/// From now on signals do not end the process: the screen ends in order.
fn listen(happens: &Sender<Happened>) -> Result<(), Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let cannot = |e: std::io::Error| Failure::internal(format!("cannot listen to signals: {e}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot)?;
    // Caught from here on, not from when the thread gets to run.
    let guard = runtime.enter();
    let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(cannot)?;
    // In builds with debug assertions, a signal provokes a panic.
    let mut provoke = if cfg!(debug_assertions) { signal(SignalKind::user_defined1()).ok() } else { None };
    drop(guard);
    begin(happens, "signals", move |happens| {
        let provoked = runtime.block_on(async {
            let provoked = async {
                match &mut provoke {
                    Some(signal) => signal.recv().await,
                    None => core::future::pending().await,
                }
            };
            tokio::select! {
                _ = interrupt.recv() => false,
                _ = terminate.recv() => false,
                _ = hangup.recv() => false,
                _ = provoked => true,
            }
        });
        assert!(!provoked, "a panic that was asked for");
        let _ = happens.send(Happened::Ended);
    })
}

/// The terminal while it is ours.
struct Screen(Terminal<CrosstermBackend<Stdout>>);

impl Screen {
    /// Takes the terminal.
    fn begin() -> Result<Self, Failure> {
        let before = std::panic::take_hook();
        // What a panic says must not go away with the screen; and a screen without one of its threads is of no use.
        std::panic::set_hook(Box::new(move |info| {
            give_back();
            before(info);
            std::process::exit(101);
        }));
        enable_raw_mode().map_err(broken)?;
        let screen = execute!(stdout(), EnterAlternateScreen)
            .and_then(|()| Terminal::new(CrosstermBackend::new(stdout())));
        screen.map(Self).map_err(|e| {
            give_back();
            broken(e)
        })
    }

    fn draw(
        &mut self,
        figures: &Figures,
        view: &View,
        trouble: Option<&str>,
        colours: bool,
    ) -> Result<(), Failure> {
        let draw = |frame: &mut ratatui::Frame| {
            screen::draw(figures, view, trouble, colours, frame.area(), frame.buffer_mut());
        };
        self.0.draw(draw).map(|_| ()).map_err(broken)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Gives the terminal back as it was. Nothing can be done where that fails.
fn give_back() {
    let _ = execute!(stdout(), LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}

fn broken(e: std::io::Error) -> Failure {
    Failure::internal(format!("cannot use the terminal: {e}"))
}
