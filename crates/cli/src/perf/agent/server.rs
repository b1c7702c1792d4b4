//! `plainsong perf agent`: over a pipe for the controller that started it, over TCP for one on another host.

use std::io::{BufReader, stdin, stdout};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::{child, login, serve};
use crate::output::say;

/// How long a connection may take to log in.
const LOGIN_WITHIN: Duration = Duration::from_secs(10);

/// Take part in campaigns of a controller on another host.
#[derive(Args)]
pub(crate) struct Options {
    /// Where to wait for the controller: `127.0.0.1:7700`.
    #[arg(long, required_unless_present = "stdio")]
    listen: Option<SocketAddr>,
    /// A file with the secret that the controller must know; anybody who knows it can run the installed
    /// adapters here.
    #[arg(long, required_unless_present = "stdio")]
    token_file: Option<PathBuf>,
    /// What this host is called in results, instead of what the campaign calls it.
    #[arg(long)]
    name: Option<String>,
    /// The directory of adapters of other products.
    #[arg(long)]
    adapter_dir: Option<PathBuf>,
    /// Serve the process at the other end of standard input and output (internal).
    #[arg(long, conflicts_with_all = ["listen", "token_file"], hide = true)]
    stdio: bool,
}

/// Carries out `perf agent`.
pub(crate) fn run(options: &Options) -> ExitCode {
    let adapters = child::adapter_directory(options.adapter_dir.as_deref());
    let result = match (&options.listen, &options.token_file) {
        (Some(address), Some(token)) => listen(*address, token, options.name.as_deref(), &adapters),
        _ => login(BufReader::new(stdin()), &mut stdout(), None)
            .and_then(|session| serve(session, stdout(), &adapters)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("plainsong perf agent: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Reads the secret of a file.
///
/// # Errors
/// It is not there, or holds too little.
pub(crate) fn read_token(path: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let token = text.trim();
    if token.len() < 16 {
        return Err(format!(
            "{}: a token has at least 16 characters; make one with `head -c 24 /dev/urandom | base64 > {}`",
            path.display(),
            path.display()
        ));
    }
    Ok(token.to_owned())
}

/// One controller after the other: two at a time would disturb each other's figures.
fn listen(address: SocketAddr, token: &Path, name: Option<&str>, adapters: &Path) -> Result<(), String> {
    let token = read_token(token)?;
    let listener = TcpListener::bind(address).map_err(|error| format!("listening at {address}: {error}"))?;
    let bound = listener.local_addr().map_err(|error| format!("listening at {address}: {error}"))?;
    say!("listening at {bound}");
    loop {
        let (stream, peer) = listener.accept().map_err(|error| format!("at {bound}: {error}"))?;
        eprintln!("{peer}: connected");
        match attend(stream, &token, name, adapters) {
            Ok(()) => eprintln!("{peer}: done"),
            Err(error) => eprintln!("{peer}: {error}"),
        }
    }
}

fn attend(stream: TcpStream, token: &str, name: Option<&str>, adapters: &Path) -> Result<(), String> {
    let fail = |error: std::io::Error| format!("setting up the connection: {error}");
    stream.set_nodelay(true).map_err(fail)?;
    stream.set_read_timeout(Some(LOGIN_WITHIN)).map_err(fail)?;
    let input = stream.try_clone().map_err(fail)?;
    let mut output = stream.try_clone().map_err(fail)?;
    let mut session = login(BufReader::new(input), &mut output, Some(token))?;
    if let Some(name) = name {
        name.clone_into(&mut session.name);
    }
    stream.set_read_timeout(None).map_err(fail)?;
    serve(session, stream, adapters)
}
