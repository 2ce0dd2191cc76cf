//! Explores the specification of the session protocol. README.md describes it.

mod action;
mod model;
mod promises;
mod rules;
mod scenes;
mod session;
mod state;
mod store;
mod symmetry;

use model::Spec;
use rules::Rules;
use scenes::{Scene, SCENES, WITHOUT};
use stateright::{Checker, HasDiscoveries, Model};
use std::process::exit;
use std::time::Instant;

const USAGE: &str = "usage: spec                                explore every scene, then take out each rule and see that it is missed
       spec --scene NAME [--without RULE,...]  explore one scene";

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let good = match args[..] {
        [] => everything(),
        ["--scene", name] => explore(scene(name), Rules::ALL, true),
        ["--scene", name, "--without", rules] => explore(scene(name), without(rules), false),
        ["help"] => {
            help();
            true
        }
        _ => usage(),
    };
    if !good {
        exit(1);
    }
}

fn usage() -> ! {
    help();
    exit(2)
}

fn help() {
    eprintln!("{USAGE}\n\nscenes:");
    SCENES.iter().for_each(|s| eprintln!("  {:<14}{}", s.name, s.about));
    eprintln!("\nrules:");
    Rules::LIST.iter().for_each(|(name, what)| eprintln!("  {name:<14}{what}"));
}

fn scene(name: &str) -> &'static Scene {
    SCENES.iter().find(|s| s.name == name).unwrap_or_else(|| usage())
}

fn without(names: &str) -> Rules {
    let mut rules = Rules::ALL;
    if !names.split(',').all(|name| rules.remove(name)) {
        usage();
    }
    rules
}

fn everything() -> bool {
    println!("The promises, by their names in docs/reliability.md:");
    promises::NAMES.iter().for_each(|name| println!("  {name}"));
    let mut good = SCENES.iter().all(|s| explore(s, Rules::ALL, true));
    for (rules, name) in WITHOUT {
        println!("\nWithout {rules}, a promise has to break:");
        good &= !explore(scene(name), without(rules), false);
    }
    println!(
        "\n{}",
        if good {
            "All promises hold, and each rule is missed where it is taken out."
        } else {
            "FAILED"
        }
    );
    good
}

/// Explores a scene, and reports whether every promise holds. States that differ only in names and numbers are one, unless a
/// trace is to be read.
fn explore(scene: &Scene, rules: Rules, canonical: bool) -> bool {
    println!("\nscene {}: {}", scene.name, scene.about);
    println!("  {:?}", scene.budget);
    let begin = Instant::now();
    let spec = Spec {
        rules,
        budget: scene.budget,
        canonical,
        delayed: scene.budget.accepts > 0,
    };
    let checker = spec.checker().threads(2).finish_when(HasDiscoveries::Any).spawn_bfs().join();
    let found = checker.discoveries();
    println!(
        "  {} states ({} with repetitions), depth {}, {:.1?}: {}",
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth(),
        begin.elapsed(),
        if found.is_empty() {
            "every state was explored, and every promise holds"
        } else {
            "a promise breaks"
        },
    );
    if found.is_empty() || canonical {
        return found.is_empty() || explore(scene, rules, false);
    }
    for (promise, path) in found {
        println!("  broken: {promise}");
        for (n, (state, step)) in path.into_vec().into_iter().enumerate() {
            println!("{}", action::Shown(&state));
            if let Some((action, _)) = step {
                println!("  {:>2}. {action}", n + 1);
            }
        }
    }
    false
}
