//! Printed programs parse and elaborate to the tree that was printed: the printer and the front end agree on every node.

use weft_ast::random::{Case, Floats, Options, program, shrink};
use weft_ast::{Func, func, print};
use weft_frontend::{NoHooks, NoLoader, Program, Source};

/// The program as the front end reads its text, or what it has to say about it.
fn read(text: &str) -> Result<Func, String> {
    let program = Program::load(Source::inline("printed.ft", text), &NoLoader);
    program.elaborate("random", &Default::default(), &NoHooks).map_err(|d| d.to_string())
}

fn comes_back(case: &Case) -> bool {
    matches!(read(&print::func(&case.func)), Ok(again) if func::same(&case.func, &again))
}

#[test]
fn random_programs_come_back() {
    for seed in 0..400 {
        let options = Options {
            floats: if seed % 2 == 0 { Floats::Exact } else { Floats::Any },
            errors: seed % 3 == 0,
            ..Options::default()
        };
        let case = program(seed, &options);
        if !comes_back(&case) {
            let text = print::func(&shrink(&case, &mut |smaller| !comes_back(smaller)).func);
            match read(&text) {
                Ok(again) => panic!("seed {seed} comes back as another program\n{text}\n{}", print::func(&again)),
                Err(refused) => panic!("seed {seed} is refused: {refused}\n{text}"),
            }
        }
    }
}
