//! Development tasks of Plainsong. Run `cargo xtask help`.

#![forbid(unsafe_code)]

mod attack;
mod bench;
mod chaos;
mod ci;
mod deny;
mod docs;
mod fuzz;
mod instructions;
mod interop;
mod miri;
mod nemesis;
mod setup;
mod shell;
mod sim;
mod step;
mod systems;
mod test;
mod tidy;
mod types;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <task> [options]

  test                          everything: unit tests, simulation, attacks, fuzz smoke, interop
  ci                            formatting, lints, documentation, tidy, `deny`, `miri`, `systems`, then `test`
  docs                          write docs/{qos,tuning,tuning-atomic,limits,vendors}.md
  tidy                          the rules no compiler checks (sizes, module direction, ...)
  systems                       compile the library for other systems than Linux on x86-64
  deny                          licences, duplicates, sources and advisories of dependencies (`deny.toml`)
  miri                          what Miri can run (nightly)
  model                         the orderings of the driver's threads under a model checker
  setup                         install what the tests need and build the interop peers
  sim  [--seed N] [--seeds A..B] [--mutations] [...]
                                the simulator, optimized; options go to its binary
  attack [--minutes N] [--only NAME] [--skip NAMES] [--seed N] [--list]
                                an attacker with raw sockets against a live pair, in network namespaces (as root)
  chaos [--kills N] [--seed N] [--mistake NAME]
                                processes under load are killed at random, and the others must not notice
  nemesis [--minutes N] [--seed N] [--consistency NAME] [--cell NAME] [--power-loss N] [--keep FOLDER]
                                processes in networks of their own are killed, stopped and cut off (as root)
  fuzz [TARGET] [--seconds N] [--engine seeded|libfuzzer]
                                seeded mutation tests (stable), or libFuzzer (nightly)
  interop [...]                 the interop harness; options go to interop/run.py
  types [--count N] [--seed N] [--peer NAME]
                                random types between Plainsong and Cyclone DDS and Fast DDS, both ways
  instructions [--write]        what a sample costs on its two paths (callgrind): no more than is written down
  bench                         round trips, throughput and footprint beside Cyclone DDS and raw sockets
";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let task = arguments.next().unwrap_or_else(|| "help".to_owned());
    let rest: Vec<String> = arguments.collect();
    let outcome = match task.as_str() {
        "test" => test::run(&rest),
        "attack" => attack::run(&rest),
        "bench" => bench::run(&rest),
        "chaos" => chaos::run(&rest),
        "ci" => ci::run(&rest),
        "deny" => deny::run(&rest),
        "docs" => docs::run(&rest),
        "tidy" => tidy::run(&rest),
        "setup" => setup::run(&rest),
        "sim" => sim::run(&rest),
        "types" => types::run(&rest),
        "systems" => systems::run(&rest),
        "fuzz" => fuzz::run(&rest),
        "instructions" => instructions::run(&rest),
        "interop" => interop::run(&rest),
        "miri" => miri::run(&rest),
        "nemesis" => nemesis::run(&rest),
        "model" => test::run_model(&rest),
        "help" | "-h" | "--help" => {
            print!("{USAGE}");
            Ok(true)
        }
        other => Err(format!("no task `{other}`\n\n{USAGE}")),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::from(2)
        }
    }
}
