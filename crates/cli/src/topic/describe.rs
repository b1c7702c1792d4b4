//! `plainsong type`: the type of a topic as IDL.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use plainsong::Error;
use plainsong::dynamic::ToldType;
use plainsong::prelude::*;
use plainsong::types::TypeDescription;
use serde_json::json;

use super::{NOTHING, Session, TopicOptions, counted, run as run_command, words};
use crate::look::seconds;
use crate::output::say;

/// Options of `plainsong type`.
#[derive(Args)]
#[command(after_help = "\
Example:
  plainsong type Square
  plainsong type /chatter --domain 7 > chatter.idl

Exit status: 0 if a type is printed, 1 if nobody has the topic or told its type, 2 after wrong arguments, 3 after an error.
docs/topics.md tells the JSON.")]
pub(crate) struct Options {
    #[command(flatten)]
    topic: TopicOptions,
    /// Seconds to wait for the topic and its type
    #[arg(long, value_name = "S", default_value = "5", value_parser = seconds)]
    wait: Duration,
}

/// Prints it; see [`Options`] for the exit status.
pub(crate) fn run(options: &Options) -> ExitCode {
    run_command(&options.topic.topic, "print the type of", || show(options))
}

fn show(options: &Options) -> Result<ExitCode, Error> {
    let mut session = Session::open(&options.topic, "type", Some(options.wait))?;
    let Some((_, endpoints)) = session.wait_for_type()? else { return Ok(ExitCode::from(NOTHING)) };
    let mut types: Vec<Told<'_>> = Vec::new();
    let mut unknown = Vec::new();
    for endpoint in &endpoints {
        let ToldType::Known(description) = &endpoint.told else {
            unknown.push((endpoint, endpoint.dynamic_type().err().unwrap_or_default()));
            continue;
        };
        let is_it = |it: &&mut Told<'_>| {
            it.name == endpoint.type_name && it.description.information == description.information
        };
        match types.iter_mut().find(is_it) {
            Some(known) => known.endpoints.push(endpoint.clone()),
            None => {
                types.push(Told { name: &endpoint.type_name, description, endpoints: vec![endpoint.clone()] })
            }
        }
    }
    if options.topic.json {
        print_json(&session.name, &types, &unknown);
        return Ok(ExitCode::SUCCESS);
    }
    let mut printed = 0;
    for ty in &types {
        match plainsong_idl::idl_of(ty.description) {
            Ok(idl) => {
                say!("// Topic '{}', type '{}': told by {}", session.name, ty.name, counted(&ty.endpoints));
                say!("{}", idl.trim_end());
                printed += 1;
            }
            Err(error) => eprintln!("the type '{}' has no IDL: {error}", ty.name),
        }
    }
    for (endpoint, why) in &unknown {
        eprintln!("{}: {why}", words(endpoint));
    }
    Ok(if printed > 0 { ExitCode::SUCCESS } else { ExitCode::from(NOTHING) })
}

/// A type, and whose it is.
struct Told<'a> {
    name: &'a str,
    description: &'a TypeDescription,
    endpoints: Vec<DiscoveredEndpoint>,
}

fn print_json(topic: &str, types: &[Told<'_>], unknown: &[(&DiscoveredEndpoint, String)]) {
    let types = types.iter().map(|ty| {
        let guids = |writers: bool| {
            let those = ty.endpoints.iter().filter(|it| it.is_writer() == writers);
            those.map(|it| it.guid.to_string()).collect::<Vec<_>>()
        };
        let idl = plainsong_idl::idl_of(ty.description);
        json!({
            "name": ty.name,
            "idl": idl.as_ref().ok(),
            "error": idl.as_ref().err().map(ToString::to_string),
            "writers": guids(true),
            "readers": guids(false),
        })
    });
    let unknown =
        unknown.iter().map(|(endpoint, why)| json!({ "endpoint": endpoint.guid.to_string(), "why": why }));
    let all = json!({
        "topic": topic,
        "types": types.collect::<Vec<_>>(),
        "unknown": unknown.collect::<Vec<_>>(),
    });
    say!("{all}");
}
