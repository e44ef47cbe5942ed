use crate::args;
use crate::primitives::common::{call, entry, show};
use expect_test::expect;
use taffeta_schedule::{Schedule, Trace};

const TEXT: &str = "
def f(x: inout[f32[n]]):
    for i in range(n):
        x[i] = x[i] * 2
";

#[test]
fn traces_are_json_and_name_their_targets() {
    let (func, _) = entry(TEXT);
    let mut s = Schedule::new(func);
    let made = call(&mut s, "split", args!["i", 8]).expect("taken");
    call(&mut s, "parallelize", args![made[0].clone()]).expect("taken");
    expect![[r#"
        {
          "version": 1,
          "entry": "f",
          "steps": [
            {
              "method": "split",
              "args": [
                {
                  "value": {
                    "str": "i"
                  }
                },
                {
                  "value": {
                    "int": 8
                  }
                }
              ]
            },
            {
              "method": "parallelize",
              "args": [
                {
                  "value": {
                    "stmt": {
                      "place": 0,
                      "name": "i~o",
                      "written": "\"i~o\""
                    }
                  }
                }
              ]
            }
          ]
        }"#]]
    .assert_eq(&s.trace().to_json());
}

#[test]
fn traces_of_other_programs_are_refused() {
    let (func, _) = entry(TEXT);
    let mut s = Schedule::new(func);
    let made = call(&mut s, "split", args!["i", 8]).expect("taken");
    call(&mut s, "parallelize", args![made[0].clone()]).expect("taken");
    let (other, program) = entry(
        "
def f(x: inout[f32[n]]):
    x[0] = 1
    for i in range(n):
        x[i] = x[i] * 2
",
    );
    let Err((step, r)) = s.trace().replay(other) else { panic!("taken") };
    expect![[r#"
        2: schedule::target (0): cannot find i~o: the trace was recorded on another program
    "#]]
    .assert_eq(&format!("{step}: {}", show(&r, program.sources())));
    let Err(r) = Trace::from_json("{\"version\": 1}") else { panic!("read") };
    expect!["cannot read the schedule trace: missing field `entry` at line 1 column 14"].assert_eq(&r.message);
}

/// Checks that a trace without the text of schedule functions for statements means the same.
#[test]
fn traces_without_function_texts_replay_equally() {
    let (func, _) = entry(TEXT);
    let mut s = Schedule::new(func.clone());
    let made = call(&mut s, "split", args!["i", 8]).expect("taken");
    call(&mut s, "parallelize", args![made[0].clone()]).expect("taken");
    let json = s.trace().to_json();
    let old: String =
        json.lines().filter(|l| !l.contains("written")).map(|l| l.replace("\"i~o\",", "\"i~o\"")).collect();
    let trace = Trace::from_json(&old).expect("an old trace");
    assert_ne!(&trace, s.trace());
    let again = trace.replay(func).map_err(|(_, r)| r.message.clone()).expect("taken");
    assert_eq!(again.trace(), s.trace());
    // A statement without a name has no text in a schedule function.
    let message = trace.function("f_again", "Again.").expect_err("the mark has no notation").message.clone();
    assert_eq!(message, "cannot write step 2 in a schedule function: \"i~o\" has no notation");
}
