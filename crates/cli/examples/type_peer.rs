//! Plainsong's side of `interop/types`: types come as IDL and samples as JSON, on standard input; what others
//! write, and by which names they call their types, goes to standard output.
//!
//! A line of input has `topics`, each with `name`, `idl`, `type`, `xcdr` and `samples`: on `NAME/p` the
//! samples are written, on `NAME/q` as many are read. There is a line of output for each topic, and one with
//! `done` at the end. The next line of input ends what the one before it began.

use std::io::BufRead;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plainsong::Error;
use plainsong::dynamic::ToldType;
use plainsong::prelude::*;
use plainsong::types::{TypeDescription, TypeObject};
use plainsong_idl::{Compiler, Memory, Model};
use serde_json::{Value, json};

/// How often readers are looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let domain = std::env::args().nth(1).ok_or("usage: type_peer DOMAIN")?.parse()?;
    let participant = DomainParticipant::new(domain)?;
    let mut lines = std::io::stdin().lock().lines();
    while let Some(line) = lines.next() {
        let request: Value = serde_json::from_str(&line?)?;
        let within = Duration::from_secs_f64(request["within_s"].as_f64().unwrap_or(10.0));
        let deadline = Instant::now() + within;
        let exchanges =
            serve(&participant, request["topics"].as_array().map_or(&[], Vec::as_slice), deadline)?;
        lines.next().transpose()?;
        drop(exchanges);
        participant.delete_contained_entities()?;
        println!("{}", json!({ "done": true }));
    }
    Ok(())
}

/// One topic and what it has read.
struct Exchange<'a> {
    request: &'a Value,
    description: Arc<TypeDescription>,
    reader: AnyDataReader,
    // Its samples are repeated as long as it is there.
    _writer: AnyDataWriter,
    expected: usize,
    received: Vec<Value>,
    told: Option<Told>,
}

/// What a peer calls its type, and what of it is another than here.
struct Told {
    names: [String; 2],
    differs: Option<String>,
}

fn serve<'a>(
    participant: &DomainParticipant,
    topics: &'a [Value],
    deadline: Instant,
) -> Result<Vec<Exchange<'a>>, Error> {
    let mut model = None;
    let mut exchanges = Vec::new();
    for request in topics {
        let idl = request["idl"].as_str().unwrap_or_default();
        if model.as_ref().is_none_or(|(known, _)| *known != idl) {
            model = Some((idl, compiled(idl)));
        }
        let opened = match &model {
            Some((_, Ok(model))) => open(participant, model, request),
            Some((_, Err(why))) => Err(why.clone()),
            None => Err("no IDL".to_owned()),
        };
        match opened {
            Ok(exchange) => exchanges.push(exchange),
            Err(error) => println!("{}", json!({ "name": request["name"], "error": error })),
        }
    }
    println!("{}", json!({ "opened": true }));
    let mut open: Vec<usize> = (0..exchanges.len()).collect();
    while !open.is_empty() && Instant::now() < deadline {
        let mut is_idle = true;
        let mut left = Vec::new();
        for at in open {
            let exchange = &mut exchanges[at];
            for sample in exchange.reader.take_data()? {
                is_idle = false;
                if sample.info.valid_data {
                    exchange.received.push(json!(sample.data));
                }
            }
            if exchange.told.is_none() {
                exchange.told = told(participant, exchange.reader.topic_name(), &exchange.description)?;
            }
            if exchange.received.len() < exchange.expected || exchange.told.is_none() {
                left.push(at);
            } else {
                report(exchange, None);
            }
        }
        open = left;
        if is_idle {
            std::thread::sleep(LOOK_AGAIN);
        }
    }
    for at in open {
        report(&exchanges[at], Some(why_not(participant, &exchanges[at])));
    }
    println!("{}", json!({ "read": true }));
    Ok(exchanges)
}

fn compiled(idl: &str) -> Result<Model, String> {
    let compilation = Compiler::new().compile_from(&Memory::new().with("types.idl", idl), &["types.idl"]);
    let said = compilation.render();
    match compilation.model {
        Some(model) if said.is_empty() => Ok(model),
        _ => Err(said),
    }
}

fn open<'a>(
    participant: &DomainParticipant,
    model: &Model,
    request: &'a Value,
) -> Result<Exchange<'a>, String> {
    let name = request["type"].as_str().unwrap_or_default();
    let description = Arc::new(model.description(name).map_err(|error| error.to_string())?);
    let ty = DynamicType::new(name, Arc::clone(&description)).map_err(|error| error.to_string())?;
    let topic = request["name"].as_str().unwrap_or_default();
    let version = if request["xcdr"] == 1 { XcdrVersion::Xcdr1 } else { XcdrVersion::Xcdr2 };
    let samples = request["samples"].as_array().map_or(&[][..], Vec::as_slice);
    let begun = begin(participant, topic, &ty, version);
    let (reader, writer) = begun.map_err(|error| error.to_string())?;
    for sample in samples {
        let data = ty.deserialize_data(sample).map_err(|error| format!("{sample}: {error}"))?;
        writer.write_data(&data).map_err(|error| format!("{sample}: {error}"))?;
    }
    let expected = samples.len();
    Ok(Exchange { request, description, reader, _writer: writer, expected, received: Vec::new(), told: None })
}

fn begin(
    participant: &DomainParticipant,
    name: &str,
    ty: &DynamicType,
    version: XcdrVersion,
) -> Result<(AnyDataReader, AnyDataWriter), Error> {
    let topic =
        |way| participant.create_any_topic(&format!("{name}/{way}"), Arc::new(ty.clone()), QosSet::default());
    let mut offered = QosSet::writer().reliable().keep_all();
    offered.durability = Durability::TransientLocal;
    offered.data_representation = vec![version];
    let mut requested = QosSet::reader().reliable().keep_all();
    requested.durability = Durability::TransientLocal;
    requested.data_representation = vec![version];
    let writer = participant.create_publisher(QosSet::default())?.create_writer(&topic("p")?, offered)?;
    let reader = participant.create_subscriber(QosSet::default())?.create_reader(&topic("q")?, requested)?;
    Ok((reader, writer))
}

/// By which names the writer of a topic calls its type.
fn told(participant: &DomainParticipant, topic: &str, own: &TypeDescription) -> Result<Option<Told>, Error> {
    let endpoints = participant.look_up_topic(topic)?;
    let Some(writer) = endpoints.iter().find(|it| it.is_writer()) else { return Ok(None) };
    Ok(match &writer.told {
        ToldType::Known(description) => {
            Some(Told { names: names(description), differs: difference(own, description) })
        }
        ToldType::Awaited => None,
        ToldType::Untold => Some(Told { names: [String::new(), String::new()], differs: None }),
    })
}

/// Of the types that are described in two ways the one with least to it, as both have it.
fn difference(own: &TypeDescription, told: &TypeDescription) -> Option<String> {
    let objects = |description: &TypeDescription| -> Vec<(TypeObject, usize)> {
        let hashes = description.objects.iter().filter(|(hash, _)| hash.complete);
        hashes.filter_map(|(hash, octets)| Some((description.object(*hash)?, octets.len()))).collect()
    };
    let own = objects(own);
    let mut other: Vec<_> = objects(told).into_iter().filter(|it| !own.contains(it)).collect();
    other.sort_by_key(|(_, bytes)| *bytes);
    let (theirs, _) = other.first()?;
    let ours = own.iter().find(|(object, _)| object.name == theirs.name).map(|(object, _)| object);
    Some(format!("theirs {theirs:?}, ours {ours:?}"))
}

fn names(description: &TypeDescription) -> [String; 2] {
    let information = &description.information;
    [&information.minimal, &information.complete].map(|it| {
        it.as_ref().map_or_else(String::new, |it| {
            let octets: String = it.id.octets.iter().map(|octet| format!("{octet:02x}")).collect();
            it.id
                .component
                .map_or_else(|| octets.clone(), |place| format!("{octets}.{}/{}", place.index, place.length))
        })
    })
}

/// What is known of a topic whose samples did not come.
fn why_not(participant: &DomainParticipant, exchange: &Exchange<'_>) -> String {
    let undecodable = exchange.reader.undecodable();
    let mismatches = participant.mismatches().unwrap_or_default();
    let topic = exchange.reader.topic_name();
    let base = topic.trim_end_matches("/q");
    let mismatches = mismatches.iter().map(ToString::to_string).filter(|text| text.contains(base));
    let matched = exchange.reader.matched_publications().map_or(0, |it| it.len());
    let mut all =
        vec![format!("{} of {} samples, {matched} writers", exchange.received.len(), exchange.expected)];
    all.extend(undecodable.iter().map(ToString::to_string));
    all.extend(mismatches);
    all.join("; ")
}

fn report(exchange: &Exchange<'_>, error: Option<String>) {
    println!(
        "{}",
        json!({
            "name": exchange.request["name"],
            "received": exchange.received,
            "own": names(&exchange.description),
            "told": exchange.told.as_ref().map(|told| &told.names),
            "differs": exchange.told.as_ref().and_then(|told| told.differs.as_ref()),
            "late": error,
        })
    );
}
