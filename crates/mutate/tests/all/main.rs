//! Each rule: source in, source out.

use mutate::place::{Place, Rule, named};
use mutate::places::places;
use mutate::render::render;

/// The source with the places of this rule alone, of which the first mutant has number 7.
fn with(rule: Rule, source: &str) -> String {
    let places = places(source).expect("it is Rust");
    let mut first = 7;
    let mut numbered: Vec<(&Place, u32)> = vec![];
    for place in places.iter().filter(|p| p.rules.contains(&rule)) {
        numbered.push((place, first));
        first += place.rules.len() as u32;
    }
    render(source, &numbered).text.replace("::base::planted::", "")
}

/// A function with this body, and what becomes of it.
fn becomes(rule: Rule, body: &str, expected: &str) {
    let of = |body: &str| format!("fn f(&self) {{ {body} }}");
    assert_eq!(with(rule, &of(body)), of(expected), "{rule:?}");
}

fn stays(rule: Rule, source: &str) {
    assert_eq!(with(rule, source), source, "{rule:?}");
}

#[test]
fn a_comparison_takes_the_one_beside_it_or_its_opposite() {
    becomes(
        Rule::Beside,
        "g(a.b < c());",
        "g((match (&(a.b), &(c())) { (l, r) => compared(7, l < r, l <= r) }));",
    );
    becomes(Rule::Beside, "g(x >= 3);", "g((match (&(x), &(3)) { (l, r) => compared(7, l >= r, l > r) }));");
    becomes(Rule::Flip, "g(x == 3);", "g(flipped(7, x == 3));");
    becomes(Rule::Flip, "while x != y {}", "while flipped(7, x != y) {}");
}

#[test]
fn one_of_two_conditions_is_not_asked_where_something_is_only_said() {
    let says = |body: &str| format!("fn may(&self) -> bool {{ {body} }}");
    assert_eq!(
        with(Rule::Half, &says("self.a && b(c)")),
        says("(if self.a { held(7, b(c)) } else { is_chosen(8) && counted(b(c)) })")
    );
    let planted = "(if self.a { !planted(Bug::A) } else { is_chosen(7) && counted(!planted(Bug::A)) })";
    assert_eq!(with(Rule::Half, &says("self.a && !planted(Bug::A)")), says(planted));
    assert_eq!(
        with(Rule::Half, &says("if let Some(x) = y && x.z { true } else { false }")),
        says("if let Some(x) = y && held(7, x.z) { true } else { false }")
    );
    stays(Rule::Half, "fn f(&mut self) -> bool { a && b }");
    stays(Rule::Half, "fn f(&self) { g(a && b) }");
}

#[test]
fn one_of_several_calls_is_left_out() {
    becomes(Rule::Call, "g(); h.i();", "if !mutant(7) { g(); } if !mutant(8) { h.i(); }");
    becomes(Rule::Call, "g(); h.i()", "if !mutant(7) { g(); } if !mutant(8) { h.i() }");
    becomes(
        Rule::Call,
        "let _ = g(); h().await?; i()?;",
        "if !mutant(7) { let _ = g(); } if !mutant(8) { h().await?; } if !mutant(9) { i()?; }",
    );
    stays(Rule::Call, "fn f() { g(); }");
    let valued = |body: &str| format!("fn f() -> u8 {{ {body} h() }}");
    assert_eq!(with(Rule::Call, &valued("g();")), valued("if !mutant(7) { g(); }"), "its value is needed");
    stays(Rule::Call, "fn f() { w.u32(a); x.happened(b); y.expect(c); }");
}

#[test]
fn a_resource_is_not_given_back_on_one_branch() {
    becomes(
        Rule::Keep,
        "if a { self.release(b); } else { self.used -= 1; }",
        "if a { if !mutant(7) { self.release(b); } } else { if !mutant(8) { self.used -= 1; } }",
    );
    becomes(
        Rule::Keep,
        "match a { B => self.unlock(c), D => {} }",
        "match a { B => { if !mutant(7) { self.unlock(c) } }, D => {} }",
    );
    stays(Rule::Keep, "fn f() -> u8 { match a { B => self.unlock(c), D => 1 } }");
}

#[test]
fn a_wait_is_left_out() {
    becomes(Rule::Wait, "self.cx.until(x).await;", "if !mutant(7) { self.cx.until(x).await; }");
    becomes(
        Rule::Wait,
        "if !self.cx.until_within(t, x).await { return; }",
        "if !(mutant(7) || self.cx.until_within(t, x).await) { return; }",
    );
    becomes(Rule::Wait, "cx.until_within(t, x).await;", "if !mutant(7) { cx.until_within(t, x).await; }");
}

#[test]
fn what_should_end_early_goes_on() {
    becomes(Rule::Guard, "if a || b { return; } c();", "if (a || b) && !mutant(7) { return; } c();");
    becomes(
        Rule::Guard,
        "for x in y { if let Some(z) = x { continue } g(); }",
        "for x in y { if let Some(z) = x && !mutant(7) { continue } g(); }",
    );
    stays(Rule::Guard, "fn f() { if a { g(); return; } if b { return } else { h() } }");
    stays(Rule::Guard, "fn f() { if planted(Bug::A) { return; } g(); }");
}

#[test]
fn a_message_is_sent_before_what_should_come_first() {
    becomes(
        Rule::Early,
        "self.a = 1; fx.push(b);",
        "if mutant(7) { fx.push(b);; self.a = 1; } else { self.a = 1; fx.push(b); }",
    );
    becomes(
        Rule::Early,
        "let a = g(); send(b); c(a);",
        "if mutant(7) { send(b);; } let a = g(); if !is_chosen(7) { send(b); } c(a);",
    );
    // The second one goes before the first alone.
    becomes(
        Rule::Early,
        "g(); send(a); send(b)",
        "if mutant(7) { send(a);; g(); } else { g(); if mutant(8) { send(b); } send(a); } if !is_chosen(8) { send(b) }",
    );
    stays(Rule::Early, "fn f() { self.a = 1; list.push(b); }");
}

#[test]
fn elements_are_skipped_or_stand_for_all() {
    becomes(Rule::Skip, "for x in &self.legs { g(x) }", "for x in skipping(7, &self.legs) { g(x) }");
    becomes(
        Rule::Last,
        "g(self.legs.iter().map(f).all(h)); regions.for_each(i);",
        "g(cut(7, self.legs.iter().map(f)).all(h)); cut(9, regions).for_each(i);",
    );
    stays(Rule::Last, "fn f() { uncleared.any(); self.all(a, b); }");
}

#[test]
fn an_epoch_is_the_former_one() {
    becomes(
        Rule::Former,
        "self.say(Met { epoch, life: self.life, x: 1 }); self.epoch = epoch; g(a.epoch() == b);",
        "self.say(Met { epoch: former(7, epoch), life: former(8, self.life), x: 1 }); \
         self.epoch = former(9, epoch); g(former(10, a.epoch()) == b);",
    );
    stays(Rule::Former, "fn f() { self.epoch = 1; g(&self.epoch, self.legs); }");
}

#[test]
fn what_looks_on_is_no_place() {
    let code = "if a < b { return; } g(epoch); for x in y.iter() { release(x); h(); }";
    for source in [
        format!("#[cfg(test)] mod tests {{ fn f() {{ {code} }} }}"),
        format!("#[test] fn f() {{ {code} }}"),
        format!("impl fmt::Display for A {{ fn fmt(&self) {{ {code} }} }}"),
        format!("fn check_flights() {{ {code} }}"),
        format!("const fn f() {{ {code} }}"),
        format!("const A: u8 = {{ {code} }};"),
        format!("fn f() {{ assert!({{ {code} }}); }}"),
        format!("fn f() {{ self.happened({{ {code} }}); }}"),
        format!("fn f() {{ if x && planted(Bug::A) {{ {code} }} }}"),
        format!("fn f() {{ planted_if(Bug::A, || {{ {code} }}); }}"),
    ] {
        assert!(places(&source).expect("it is Rust").is_empty(), "{source}");
    }
    assert!(places("fn f() {").is_err());
}

#[test]
fn places_within_each_other_are_all_made() {
    let source =
        "fn f() { if a < b && c { return; } g(x == y); self.release(for z in w { h(z.epoch); }); i(); }";
    let places = places(source).expect("it is Rust");
    let numbered: Vec<(&Place, u32)> = places.iter().zip(100..).collect();
    let rendered = render(source, &numbered);
    syn::parse_file(&rendered.text).expect("it is Rust, too");
    for (at, (_, n)) in numbered.iter().enumerate() {
        let region = rendered.regions.iter().find(|(_, place)| *place == at).expect("a region of each place");
        assert!(rendered.text[region.0.clone()].contains(&n.to_string()), "{n}");
    }
}

#[test]
fn names_stay_when_something_else_changes() {
    let names = |source: &str| {
        let places = places(source).expect("it is Rust");
        let named = named("a.rs", source, &places);
        named.into_iter().flatten().map(|m| m.id).collect::<Vec<_>>()
    };
    let before = names("impl A { fn f() { g(x == y); g(x == y); } }");
    assert!(before[0] != before[1], "equal ones are counted");
    let after = names("fn new() { h(z != w); }\nimpl A { fn f() { if k == 1 {} g(x  ==  y); g(x == y); } }");
    assert!(before.iter().all(|name| after.contains(name)), "{before:?} {after:?}");
    assert!(!names("impl A { fn h() { g(x == y); } }").contains(&before[0]), "another function");
}
