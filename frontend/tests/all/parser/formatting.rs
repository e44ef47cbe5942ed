//! `taffeta fmt`: pinned examples, and for every program that parses: formatting is idempotent and keeps the tree.

use super::python;
use expect_test::{Expect, expect};
use taffeta_ast::span::FileId;
use taffeta_frontend::format::{MAX_WIDTH, format};
use taffeta_frontend::parse::parse;
use taffeta_frontend::syntax::show as tree;
use testkit::texts;

fn check(text: &str, expected: Expect) {
    hold(text);
    expected.assert_eq(&format(text, FileId(0)).unwrap());
}

/// Formats a text that parses, and checks the formatter's guarantees. Returns whether the text parsed.
fn hold(text: &str) -> bool {
    let (before, diags) = parse(text, FileId(0));
    if !diags.is_empty() {
        assert_eq!(format(text, FileId(0)).unwrap_err().0, diags);
        return false;
    }
    let once = format(text, FileId(0)).unwrap();
    let (after, diags) = parse(&once, FileId(0));
    assert!(diags.is_empty(), "{diags:?}\n{text}\n----\n{once}");
    assert!(tree::module(&before) == tree::module(&after), "another tree:\n{text}\n----\n{once}\n{text:?}");
    let twice = format(&once, FileId(0)).unwrap();
    assert!(once == twice, "not stable:\n{text}\n---- once\n{once}\n---- twice\n{twice}\n{text:?}");
    let comments = |text: &str| text.matches('#').count();
    assert_eq!(comments(text), comments(&once), "a comment is lost:\n{text}\n----\n{once}");
    true
}

#[test]
fn formats_the_repository() {
    let files = python::corpus();
    let formatted = files.iter().filter(|path| hold(&std::fs::read_to_string(path).unwrap())).count();
    assert!(formatted * 10 >= files.len() * 9, "{formatted} of {} parse", files.len());
}

#[test]
fn formats_generated_programs() {
    assert!((0..500).filter(|seed| hold(&texts::program(*seed))).count() > 450);
}

#[test]
fn formats_mutated_programs() {
    assert!((0..1000).filter(|seed| hold(&texts::mutant(*seed))).count() > 50);
}

/// Checks that lines are within the maximum width, if there are brackets to break.
#[test]
fn long_lines_break() {
    let names: Vec<String> = (0..40).map(|i| format!("name_{i}")).collect();
    let text = format!(
        "def f({params}):\n    x = g({args}, k=[{args}])[{args}] + h({sum})\n    for i in range({sum}):\n        pass\n",
        params = names.join(", "),
        args = names.join(", "),
        sum = names.join(" + ")
    );
    assert!(hold(&text));
    let formatted = format(&text, FileId(0)).unwrap();
    let longest = formatted.lines().map(|l| l.chars().count()).max();
    assert!(longest <= Some(MAX_WIDTH), "{formatted}");
}

#[test]
fn spaces() {
    check(
        r#"x=1+ 2*-3** -y
y = f( a,b , k = 1 )
z = x [ 1 : 2 , : , :: -1 ,a+1 : b ] . shape [0]
w=[ i*2 for i,j in  x if not(i) ]
def f (a:f32=1 , b = 2) ->(f32,i32) :
  t:f64[n,m]@csr=zeros( (n,) ,f64)
  t [...]+=-x if(a)else(b)
  a,b=b , a
  s.permute( [i,j] ,lambda i,j:(i+j,j) )
  assert(a) , "m"
  return-x, not y,1 .real,a is not b,a not in(b)
@schedule( f )
def g(s):pass
"#,
        expect![[r#"
            x = 1 + 2 * -3 ** -y
            y = f(a, b, k=1)
            z = x[1:2, :, ::-1, a + 1:b].shape[0]
            w = [i * 2 for i, j in x if not (i)]


            def f(a: f32 = 1, b=2) -> (f32, i32):
                t: f64[n, m] @ csr = zeros((n,), f64)
                t[...] += -x if (a) else (b)
                a, b = b, a
                s.permute([i, j], lambda i, j: (i + j, j))
                assert (a), "m"
                return -x, not y, 1 .real, a is not b, a not in (b)


            @schedule(f)
            def g(s):
                pass
        "#]],
    );
}

#[test]
fn blocks() {
    check(
        r#"def f(x):
  if x: y = 1; z = 2  # why
  elif y:
        pass
        # the end of the block
    # less
  # of the function

  else: return
  x = 1 \
    + 2
  # last
# outside
"#,
        expect![[r#"
            def f(x):
                if x:
                    y = 1
                    z = 2  # why
                elif y:
                    pass
                    # the end of the block
                # less
                # of the function

                else:
                    return
                x = 1 + 2
                # last


            # outside
        "#]],
    );
}

#[test]
fn blank_lines() {
    check(
        r#"

"""Doc."""
from a import b
# one
x = 1



y = 2
# about f
def f():

    """Doc.

      Kept as it is.
    """


    a = 1



    b = 2
def g(): pass
# about h

# more about h
@s(g)

def h():
    pass
z = 3
"#,
        expect![[r#"
            """Doc."""
            from a import b
            # one
            x = 1


            y = 2


            # about f
            def f():
                """Doc.

                  Kept as it is.
                """

                a = 1

                b = 2


            def g():
                pass


            # about h


            # more about h
            @s(g)
            def h():
                pass


            z = 3
        "#]],
    );
}

#[test]
fn long_lines() {
    check(
        r#"def circular_difference_of_features(edge_values: f32[n_faces, feats], adj: i32[n_faces, 3], some_weights: f32[3]) -> f32[n_faces, feats]:
    y[i, j, k] = some_function(first_argument, second_argument) * another_function(third_argument, fourth_argument, fifth_argument, sixth)
    value = function_of_one(another_function(first_argument_of_it, second_argument_of_it, third_argument_of_it, fourth_argument_of_it))
    total = (first_summand_of_many * its_factor + second_summand_of_many * its_factor + third_summand_of_many * its_factor + a_last_one_of_them)
    things = [element_of_the_list + 1 for element_of_the_list in some_function(of_arguments) if element_of_the_list > some_limit_of_it]
    assert first_dimension_of_x == first_dimension_of_y and second_dimension_of_x == second_dimension_of_y, f"these are not {equal}"
    assert x.shape[1] == weight.shape[1] * groups, f"convolution: x has {x.shape[1]} channels, and the weight has {weight.shape[1]}"
    sum_of_them = the_first_long_summand * its_factor + the_second_long_summand * its_factor[0] + the_third_long_summand + 12345
    return the_first_long_summand * its_factor + the_second_long_summand * its_factor[0] + the_third_long_summand + 12345 + 67890
    assert a_condition, ("a message that is so long that its author has already cut it into pieces, " "one here" " and {x}")
    matrix = [
        [1, 0],
        [0, 1],
    ]
    short = [
        1, 2, 3
    ]
"#,
        expect![[r#"
            def circular_difference_of_features(
                edge_values: f32[n_faces, feats], adj: i32[n_faces, 3], some_weights: f32[3]
            ) -> f32[n_faces, feats]:
                y[i, j, k] = some_function(first_argument, second_argument) * another_function(
                    third_argument, fourth_argument, fifth_argument, sixth
                )
                value = function_of_one(
                    another_function(first_argument_of_it, second_argument_of_it, third_argument_of_it, fourth_argument_of_it)
                )
                total = (
                    first_summand_of_many * its_factor
                    + second_summand_of_many * its_factor
                    + third_summand_of_many * its_factor
                    + a_last_one_of_them
                )
                things = [
                    element_of_the_list + 1
                    for element_of_the_list in some_function(of_arguments)
                    if element_of_the_list > some_limit_of_it
                ]
                assert first_dimension_of_x == first_dimension_of_y and second_dimension_of_x == second_dimension_of_y, (
                    f"these are not {equal}"
                )
                assert x.shape[1] == weight.shape[1] * groups, (
                    f"convolution: x has {x.shape[1]} channels, and the weight has {weight.shape[1]}"
                )
                sum_of_them = (
                    the_first_long_summand * its_factor + the_second_long_summand * its_factor[0] + the_third_long_summand + 12345
                )
                return (
                    the_first_long_summand * its_factor
                    + the_second_long_summand * its_factor[0]
                    + the_third_long_summand
                    + 12345
                    + 67890
                )
                assert a_condition, (
                    "a message that is so long that its author has already cut it into pieces, " "one here" " and {x}"
                )
                matrix = [
                    [1, 0],
                    [0, 1],
                ]
                short = [1, 2, 3]
        "#]],
    );
}

#[test]
fn comments_in_brackets() {
    check(
        r#"def f(x,  # the input
   y,
      # on its own

      z # the last
   ):
    return [1,2, # two
  3,(4,
  5)]
"#,
        expect![[r#"
            def f(x,  # the input
                y,
                # on its own
                z  # the last
            ):
                return [1, 2,  # two
                    3, (4,
                        5)]
        "#]],
    );
}

/// Checks that statements of any length or depth are formatted, in little stack and time.
#[test]
fn long_statements() {
    let n = 5000;
    let sources = [
        format!("x = {}1\n", "f(a), ".repeat(n)),
        format!("x = {}1\n", "f(a) and ".repeat(150)),
        format!("x = ({}1)\n", "f(a) and ".repeat(150)),
        format!("x = [{}]\n", "[1, 2, 3], ".repeat(n)),
        format!("x = [\n{}]\n", "[1, 2, 3],\n".repeat(n)),
        format!("x = ({})\n", "'text' ".repeat(n)),
        format!("x = {}1{}\n", "function(".repeat(100), ")".repeat(100)),
        format!("x = a{}\n", "(argument)".repeat(200)),
        format!("def f({}y): pass\n", (0..n).map(|i| format!("x{i}, ")).collect::<String>()),
    ];
    let check = move || sources.iter().for_each(|source| assert!(hold(source), "{source:.80}"));
    std::thread::Builder::new().stack_size(2 << 20).spawn(check).unwrap().join().unwrap();
}
