use crate::args;
use crate::primitives::common::{call, check, refused};
use expect_test::expect;

const SCALE: &str = "
def f(x: inout[f32[n]], y: inout[f32[m]]):
    for j in range(m):
        for i in range(n):
            x[i] = x[i] * 2 + y[j]
";

#[test]
fn copies_for_a_condition() {
    check(
        SCALE,
        |s| {
            let two = call(s, "split", args!["i", 8])?;
            let copies = call(s, "specialize", args![two[0].clone(), "n % 8 == 0"])?;
            let inner = call(s, "innermost", args![copies[0].clone()])?;
            call(s, "unroll", args![inner[0].clone(); factor = 2]).map(drop)
        },
        expect![[r#"
            for j in range(m):
                if n % 8 == 0:
                    for i_o in range((n + 7) // 8):
                        for i_i_o in range(4):
                            x[i_o * 8 + i_i_o * 2] = x[i_o * 8 + i_i_o * 2] * 2.0 + y[j]
                            x[i_o * 8 + (i_i_o * 2 + 1)] = x[i_o * 8 + (i_i_o * 2 + 1)] * 2.0 + y[j]
                else:
                    for i_o in range((n + 7) // 8):
                        for i_i in range(8):
                            if i_o * 8 + i_i < n:
                                x[i_o * 8 + i_i] = x[i_o * 8 + i_i] * 2.0 + y[j]
        "#]],
    );
    check(
        SCALE,
        |s| {
            call(s, "specialize", args!["i", "not (0 <= j < m // 2 or -n + 2 * j >= min(m, n - 1)) and True"]).map(drop)
        },
        expect![[r#"
            for j in range(m):
                if not (0 <= j and j < m // 2 or -n + j * 2 >= min(m, n - 1)):
                    for i in range(n):
                        x[i] = x[i] * 2.0 + y[j]
                else:
                    for i in range(n):
                        x[i] = x[i] * 2.0 + y[j]
        "#]],
    );
}

#[test]
fn refuses() {
    for (text, expected) in [
        (
            "k == 0",
            expect![[r#"
                schedule::illegal (1): `k` is neither a size nor the iterator of an enclosing loop; the names are m, n
            "#]],
        ),
        (
            "n % 8",
            expect![[r#"
            schedule::illegal (1): expected a condition, found a number
        "#]],
        ),
        (
            "n % 8 ==",
            expect![[r#"
            schedule::illegal (1): unexpected end of the condition
        "#]],
        ),
        (
            "n == 8 n",
            expect![[r#"
            schedule::illegal (1): unexpected `n` in the condition
        "#]],
        ),
        (
            "n & 1",
            expect![[r#"
            schedule::illegal (1): unexpected `&` in the condition
        "#]],
        ),
        (
            "(n < 8",
            expect![[r#"
            schedule::illegal (1): expected `)` in the condition, found the end
        "#]],
        ),
        (
            "n < 8 + (m > 3)",
            expect![[r#"
            schedule::illegal (1): expected a number, found a condition
        "#]],
        ),
        (
            "j == 0",
            expect![[r#"
                schedule::illegal (1): `j` is neither a size nor the iterator of an enclosing loop; the names are m, n
            "#]],
        ),
        (
            "n % m == 0",
            expect![[r#"
            schedule::illegal (2): the condition may stop the program: a divisor may be 0
        "#]],
        ),
        (
            "n < 99999999999999999999",
            expect![[r#"
            schedule::illegal (1): `99999999999999999999` is not an integer
        "#]],
        ),
    ] {
        refused(SCALE, |s| call(s, "specialize", args!["j", text]).map(drop), expected);
    }
    check(
        SCALE,
        |s| call(s, "specialize", args!["j", "m > 0 and n % m == 0"]).map(drop),
        expect![[r#"
        if m > 0 and n % m == 0:
            for j in range(m):
                for i in range(n):
                    x[i] = x[i] * 2.0 + y[j]
        else:
            for j in range(m):
                for i in range(n):
                    x[i] = x[i] * 2.0 + y[j]
    "#]],
    );
}
