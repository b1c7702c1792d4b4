//! A plan that several processes edit together: each has all of it, whichever of them dies or comes back.
//!
//! ```text
//! cargo run -p plainsong --example replicated_plan -- ann
//! cargo run -p plainsong --example replicated_plan -- bob
//! cargo run -p plainsong --example replicated_plan -- cid
//! ```
//! Type `add TEXT`, `done NUMBER` or `show`. Kill one with `kill -9`: the others go on. Start it again: it
//! has the plan. With a number after the name, it adds so many steps by itself. `DOMAIN_ID` chooses a domain
//! other than 0.

use std::io::BufRead;

use plainsong::prelude::*;
use plainsong::replicated::{Replicated, StateMachine};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, DdsType)]
enum Edit {
    #[default]
    Add,
    Done,
}

/// One change of the plan.
#[derive(Clone, Debug, Default, DdsType)]
struct Change {
    edit: Edit,
    by: String,
    /// Of a step to be added.
    text: String,
    /// Of a step that is done, from 1.
    step: u32,
}

#[derive(Clone, Debug, Default, DdsType)]
struct Plan {
    steps: Vec<Step>,
}

#[derive(Clone, Debug, Default, DdsType)]
struct Step {
    text: String,
    added_by: String,
    done_by: Option<String>,
}

impl StateMachine for Plan {
    type Command = Change;
    /// The number of the step; `None` where there is none to be done.
    type Response = Option<usize>;
    type Snapshot = Self;

    fn apply(&mut self, change: Change) -> Option<usize> {
        let Change { edit, by, text, step } = change;
        match edit {
            Edit::Add => {
                self.steps.push(Step { text, added_by: by, done_by: None });
                Some(self.steps.len())
            }
            Edit::Done => {
                let number = step as usize;
                let step = self.steps.get_mut(number.checked_sub(1)?)?;
                // Whoever says so first has done it: all agree on who that is.
                (step.done_by.get_or_insert_with(|| by.clone()) == &by).then_some(number)
            }
        }
    }

    fn snapshot(&self) -> Self {
        self.clone()
    }

    fn restore(snapshot: Self) -> Self {
        snapshot
    }
}

const PATIENCE: Duration = Duration::from_secs(10);

fn main() -> plainsong::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let Some(name) = arguments.next() else {
        eprintln!("usage: replicated_plan NAME [STEPS]");
        std::process::exit(2)
    };
    let participant = DomainParticipant::new(domain_id())?;
    let plan = Replicated::<Plan>::open(&participant, "Plan")?;
    plan.sync(PATIENCE)?;
    println!("{name} has the plan, with {} steps", plan.read(|plan| plan.steps.len()));

    let steps = arguments.next().map_or(0, |count| count.parse().expect("STEPS is a number"));
    for number in 1..=steps {
        add(&plan, &name, format!("step {number} of {name}"))?;
    }
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match line.trim().split_once(' ') {
            Some(("add", text)) => add(&plan, &name, text.to_owned())?,
            Some(("done", step)) => done(&plan, &name, step.parse().unwrap_or(0))?,
            _ if line.trim() == "show" => show(&participant, &plan)?,
            _ => println!("add TEXT, done NUMBER or show"),
        }
    }
    Ok(())
}

fn add(plan: &Replicated<Plan>, name: &str, text: String) -> plainsong::Result<()> {
    let change = Change { edit: Edit::Add, by: name.to_owned(), text, step: 0 };
    if let Some(number) = plan.propose(&change, PATIENCE)? {
        println!("step {number} is in the plan of everybody");
    }
    Ok(())
}

fn done(plan: &Replicated<Plan>, name: &str, step: u32) -> plainsong::Result<()> {
    let change = Change { edit: Edit::Done, by: name.to_owned(), text: String::new(), step };
    match plan.propose(&change, PATIENCE)? {
        Some(number) => println!("{name} has done step {number}"),
        None => println!("step {step} was done by somebody else, or there is none"),
    }
    Ok(())
}

fn show(participant: &DomainParticipant, plan: &Replicated<Plan>) -> plainsong::Result<()> {
    plan.sync(PATIENCE)?;
    plan.read(|plan| {
        for (number, step) in (1..).zip(&plan.steps) {
            let done = step.done_by.as_ref().map_or(String::new(), |by| format!(", done by {by}"));
            println!("{number}. {} (by {}{done})", step.text, step.added_by);
        }
    });
    participant.atomic_groups().iter().for_each(|group| println!("{group}"));
    Ok(())
}

fn domain_id() -> u16 {
    std::env::var("DOMAIN_ID").map_or(0, |id| id.parse().expect("DOMAIN_ID is a number"))
}
