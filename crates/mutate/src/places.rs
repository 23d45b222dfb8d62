//! Finds the places of a file.

use crate::names;
use crate::place::{Edit, Part, Place, Rule};
use core::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, BinOp, Block, Expr, Pat, ReturnType, Stmt};

/// What the code of mutants calls.
const CALLS: &str = "::base::planted::";

/// All places of a file, outer ones first.
///
/// # Errors
/// It is no Rust.
pub fn places(source: &str) -> Result<Vec<Place>, syn::Error> {
    let file = syn::parse_file(source)?;
    let mut finder = Finder { source, item: vec![], places: vec![], waited: 0..0, predicate: false };
    finder.visit_file(&file);
    Ok(finder.places)
}

struct Finder<'a> {
    source: &'a str,
    item: Vec<String>,
    places: Vec<Place>,
    /// A wait whose result nobody asks for: leaving the statement out is all.
    waited: Range<usize>,
    /// The function only says whether something holds.
    predicate: bool,
}

fn range(node: &impl Spanned) -> Range<usize> {
    node.span().byte_range()
}

fn text(text: impl Into<String>) -> Part {
    Part::Text(text.into())
}

/// `::base::planted::name(number, `, or without what comes behind the number.
fn call(name: &str, nth: u32, behind: &str) -> [Part; 3] {
    [text(format!("{CALLS}{name}(")), Part::Number(nth), text(behind)]
}

/// A call, whatever becomes of what it returns.
struct Called {
    name: String,
    awaited: bool,
    /// The last name of what the method is called on.
    on: Option<String>,
}

fn called(expr: &Expr) -> Option<Called> {
    match expr {
        Expr::Try(e) => called(&e.expr),
        Expr::Paren(e) => called(&e.expr),
        Expr::Await(e) => Some(Called { awaited: true, ..called(&e.base)? }),
        Expr::MethodCall(e) => {
            Some(Called { name: e.method.to_string(), awaited: false, on: last_name(&e.receiver) })
        }
        Expr::Call(e) => {
            let name = last_name(&e.func)?;
            // What begins with a capital makes a value.
            name.starts_with(char::is_lowercase).then_some(Called { name, awaited: false, on: None })
        }
        _ => None,
    }
}

fn last_name(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Path(e) => Some(e.path.segments.last()?.ident.to_string()),
        Expr::Field(e) => match &e.member {
            syn::Member::Named(name) => Some(name.to_string()),
            syn::Member::Unnamed(_) => None,
        },
        Expr::MethodCall(e) if e.args.is_empty() => Some(e.method.to_string()),
        _ => None,
    }
}

fn is_number(expr: &Expr) -> bool {
    last_name(expr).is_some_and(|name| names::is_number(&name))
}

/// Whether it binds names for what follows.
fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(e) => matches!(e.op, BinOp::And(_)) && (has_let(&e.left) || has_let(&e.right)),
        _ => false,
    }
}

fn is_planted(expr: &Expr) -> bool {
    called(expr).is_some_and(|c| c.name == "planted" || c.name == "planted_if")
}

/// Whether it holds only where a planted bug is chosen.
fn needs_planted(expr: &Expr) -> bool {
    match expr {
        Expr::Binary(e) => {
            matches!(e.op, BinOp::And(_)) && (needs_planted(&e.left) || needs_planted(&e.right))
        }
        _ => is_planted(expr),
    }
}

/// Whether a function changes nothing of who it belongs to, and returns `bool`.
fn is_predicate(sig: &syn::Signature) -> bool {
    let ReturnType::Type(_, of) = &sig.output else { return false };
    let bool = matches!(&**of, syn::Type::Path(p) if p.path.is_ident("bool"));
    bool && sig.receiver().is_none_or(|r| r.mutability.is_none())
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|a| {
        let words = match &a.meta {
            syn::Meta::List(list) => list.tokens.to_string(),
            _ => String::new(),
        };
        a.path().is_ident("test") || a.path().is_ident("cfg") && words.contains("test")
    })
}

/// A block that does nothing but end a function or a round of a loop.
fn ends_early(block: &Block) -> bool {
    let [Stmt::Expr(only, _)] = &block.stmts[..] else { return false };
    matches!(only, Expr::Return(_) | Expr::Continue(_) | Expr::Break(_))
}

fn sends(stmt: &Stmt) -> bool {
    let Stmt::Expr(expr, _) = stmt else { return false };
    called(expr).is_some_and(|c| match &c.name[..] {
        "push" => c.on.is_some_and(|on| names::SINKS.contains(&&on[..])),
        name => names::sends(name),
    })
}

impl Finder<'_> {
    fn put(&mut self, rules: &[Rule], span: Range<usize>, edits: Vec<Edit>) {
        let item = self.item.join("::");
        self.places.push(Place { rules: rules.to_vec(), edits, item, span });
    }

    /// `::base::planted::name(number, it)` around an expression.
    fn wrap(&mut self, rules: &[Rule], name: &str, span: Range<usize>) {
        let mut parts = call(name, 0, ", ").to_vec();
        parts.extend([Part::Source(span.clone()), text(")")]);
        self.put(rules, span.clone(), vec![Edit { span, parts }]);
    }

    /// What stands there is not done.
    fn leave_out(&mut self, rule: Rule, span: Range<usize>, (open, close): (&str, &str)) {
        let mut parts = vec![text(format!("{open}if !"))];
        parts.extend(call("mutant", 0, ") { "));
        parts.extend([Part::Source(span.clone()), text(format!(" }}{close}"))]);
        self.put(&[rule], span.clone(), vec![Edit { span, parts }]);
    }

    fn says_planted(&self, expr: &Expr) -> bool {
        self.source[range(expr)].contains("planted")
    }

    /// A call or a subtraction that can be left out, with its value if that has one.
    /// `many`: other calls stand beside it.
    fn leaves_out(&mut self, expr: &Expr, span: Range<usize>, braces: (&str, &str), many: bool) {
        let rule = match expr {
            Expr::Binary(e) if matches!(e.op, BinOp::SubAssign(_)) => Rule::Keep,
            _ => match called(expr) {
                Some(c) if names::tells_people(&c.name) => return,
                Some(c) if c.awaited && names::waits(&c.name) => Rule::Wait,
                Some(c) if names::gives_back(&c.name) => Rule::Keep,
                Some(c) if many && !names::writes_bytes(&c.name) => Rule::Call,
                Some(_) | None => return,
            },
        };
        self.waited = range(expr);
        self.leave_out(rule, span, braces);
    }

    /// What `sends` is done before the statement in front of it.
    fn early(&mut self, before: &Stmt, send: &Stmt, apart: bool) {
        let (first, then) = (range(before), range(send));
        let ahead = |mut parts: Vec<Part>| {
            parts.splice(0..0, [vec![text("if ")], call("mutant", 0, ") { ").to_vec()].concat());
            parts
        };
        let edits = if apart {
            let begin = ahead(vec![Part::Plain(then.clone()), text("; } "), Part::Source(first.clone())]);
            let mut end = vec![text("if !")];
            end.extend(call("is_chosen", 0, ") { "));
            end.extend([Part::Source(then.clone()), text(" }")]);
            vec![Edit { span: first, parts: begin }, Edit { span: then.clone(), parts: end }]
        } else {
            let span = first.start..then.end;
            let parts = ahead(vec![
                Part::Plain(then.clone()),
                text("; "),
                Part::Plain(first),
                text(" } else { "),
                Part::Source(span.clone()),
                text(" }"),
            ]);
            vec![Edit { span, parts }]
        };
        self.put(&[Rule::Early], then, edits);
    }

    /// `unit`: what it ends with has no value.
    fn block(&mut self, block: &Block, unit: bool) {
        let last = block.stmts.len().wrapping_sub(1);
        let mut swapped = 0;
        for (at, pair) in block.stmts.windows(2).enumerate() {
            let [before, send] = pair else { unreachable!("windows of two") };
            let has_value = at + 1 == last && matches!(send, Stmt::Expr(_, None)) && !unit;
            let movable = matches!(before, Stmt::Expr(..) | Stmt::Local(_));
            if sends(send) && !has_value && movable {
                let apart = matches!(before, Stmt::Local(_)) || swapped == at && at > 0;
                self.early(before, send, apart);
                if !apart {
                    swapped = at + 1;
                }
            }
        }
        let calls = |s: &&Stmt| matches!(s, Stmt::Expr(e, _) if called(e).is_some());
        let many = block.stmts.iter().filter(calls).count() > 1;
        for (at, stmt) in block.stmts.iter().enumerate() {
            match stmt {
                Stmt::Expr(expr, semicolon) => {
                    if semicolon.is_some() || at < last || unit {
                        self.leaves_out(expr, range(stmt), ("", ""), many);
                        self.without_value(expr);
                    } else {
                        self.visit_expr(expr);
                    }
                }
                Stmt::Local(local) => {
                    let Some(init) = &local.init else { continue };
                    if matches!(local.pat, Pat::Wild(_)) {
                        self.leaves_out(&init.expr, range(stmt), ("", ""), many);
                    }
                    self.visit_expr(&init.expr);
                    if let Some((_, otherwise)) = &init.diverge {
                        self.visit_expr(otherwise);
                    }
                }
                Stmt::Item(item) => self.visit_item(item),
                Stmt::Macro(_) => {}
            }
        }
    }

    /// An expression that stands as a statement.
    fn without_value(&mut self, expr: &Expr) {
        match expr {
            Expr::If(e) => {
                if e.else_branch.is_none() && ends_early(&e.then_branch) && !self.says_planted(&e.cond) {
                    let span = range(&*e.cond);
                    let (open, close) = if has_let(&e.cond) { ("", "") } else { ("(", ")") };
                    let mut parts =
                        vec![text(open), Part::Source(span.clone()), text(format!("{close} && !"))];
                    parts.extend(call("mutant", 0, ")"));
                    self.put(&[Rule::Guard], range(e), vec![Edit { span, parts }]);
                }
                self.visit_expr(&e.cond);
                if !needs_planted(&e.cond) {
                    self.block(&e.then_branch, true);
                }
                if let Some((_, otherwise)) = &e.else_branch {
                    self.without_value(otherwise);
                }
            }
            Expr::Match(e) => {
                self.visit_expr(&e.expr);
                for arm in &e.arms {
                    if let Some((_, guard)) = &arm.guard {
                        self.visit_expr(guard);
                        if needs_planted(guard) {
                            continue;
                        }
                    }
                    self.leaves_out(&arm.body, range(&*arm.body), ("{ ", " }"), false);
                    self.without_value(&arm.body);
                }
            }
            Expr::Block(e) => self.block(&e.block, true),
            _ => self.visit_expr(expr),
        }
    }

    /// One of two conditions is not asked.
    fn half(&mut self, whole: &Expr, left: &Expr, right: &Expr) {
        let (l, r) = (range(left), range(right));
        let (let_left, let_right) = (has_let(left), has_let(right));
        if let_left && !let_right && !self.says_planted(right) {
            return self.wrap(&[Rule::Half], "held", r);
        }
        let one = !matches!(left, Expr::Binary(e) if matches!(e.op, BinOp::And(_)));
        if let_right && !let_left && one && !self.says_planted(left) {
            return self.wrap(&[Rule::Half], "held", l);
        }
        if let_left || let_right {
            return;
        }
        let (asks_left, asks_right) = (!self.says_planted(left), !self.says_planted(right));
        let mut rules = vec![];
        let mut parts = vec![text("(if "), Part::Source(l), text(" { ")];
        if asks_right {
            parts.extend(call("held", 0, ", "));
            rules.push(Rule::Half);
        }
        parts.extend([Part::Source(r.clone()), text(if asks_right { ")" } else { "" }), text(" } else { ")]);
        if asks_left {
            // Asked last: what counts is a difference of both together.
            parts.extend(call("is_chosen", rules.len() as u32, ") && "));
            parts.extend([text(format!("{CALLS}counted(")), Part::Plain(r), text(") })")]);
            rules.push(Rule::Half);
        } else {
            parts.push(text("false })"));
        }
        if !rules.is_empty() {
            let span = range(whole);
            self.put(&rules, span.clone(), vec![Edit { span, parts }]);
        }
    }

    fn compare(&mut self, whole: &Expr, left: &Expr, right: &Expr, op: &BinOp) {
        let span = range(whole);
        let beside = match op {
            BinOp::Lt(_) => Some(("<", "<=")),
            BinOp::Le(_) => Some(("<=", "<")),
            BinOp::Gt(_) => Some((">", ">=")),
            BinOp::Ge(_) => Some((">=", ">")),
            _ => None,
        };
        let Some((op, beside)) = beside else { return self.wrap(&[Rule::Flip], "flipped", span) };
        let mut parts =
            vec![text("(match (&("), Part::Source(range(left)), text("), &("), Part::Source(range(right))];
        parts.push(text(")) { (l, r) => "));
        parts.extend(call("compared", 0, &format!(", l {op} r, l {beside} r) }})")));
        self.put(&[Rule::Beside, Rule::Flip], span.clone(), vec![Edit { span, parts }]);
    }

    fn former(&mut self, expr: &Expr) {
        if is_number(expr) {
            self.wrap(&[Rule::Former], "former", range(expr));
        }
    }

    fn cut(&mut self, rules: &[Rule], items: &Expr) {
        let first = if rules[0] == Rule::Skip { "skipping" } else { "cut" };
        self.wrap(rules, first, range(items));
    }

    /// Does `visit` inside an item of this name.
    fn inside(&mut self, name: String, visit: impl FnOnce(&mut Self)) {
        self.item.push(name);
        visit(self);
        self.item.pop();
    }

    fn function(&mut self, attributes: &[Attribute], sig: &syn::Signature, block: &Block) {
        let name = sig.ident.to_string();
        if !is_test(attributes) && sig.constness.is_none() && !names::looks_on(&name) {
            let unit = matches!(sig.output, ReturnType::Default);
            let outer = core::mem::replace(&mut self.predicate, is_predicate(sig));
            self.inside(name, |finder| finder.block(block, unit));
            self.predicate = outer;
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            self.inside(item.ident.to_string(), |finder| visit::visit_item_mod(finder, item));
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let of = item.trait_.as_ref().and_then(|(_, path, _)| Some(path.segments.last()?.ident.to_string()));
        if is_test(&item.attrs) || of.as_ref().is_some_and(|of| names::PLAIN_TRAITS.contains(&&of[..])) {
            return;
        }
        let name = match &*item.self_ty {
            syn::Type::Path(path) => path.path.segments.last().map(|s| s.ident.to_string()),
            _ => None,
        };
        let name = [name, of].into_iter().flatten().collect::<Vec<_>>().join(" as ");
        self.inside(name, |finder| visit::visit_item_impl(finder, item));
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.attrs, &item.sig, &item.block);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.attrs, &item.sig, &item.block);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.attrs, &item.sig, block);
        }
    }

    fn visit_block(&mut self, block: &'ast Block) {
        self.block(block, false);
    }

    fn visit_expr_for_loop(&mut self, e: &'ast syn::ExprForLoop) {
        self.cut(&[Rule::Skip, Rule::First], &e.expr);
        self.visit_expr(&e.expr);
        self.block(&e.body, true);
    }

    fn visit_expr_while(&mut self, e: &'ast syn::ExprWhile) {
        self.visit_expr(&e.cond);
        self.block(&e.body, true);
    }

    fn visit_expr_loop(&mut self, e: &'ast syn::ExprLoop) {
        self.block(&e.body, true);
    }

    fn visit_expr_if(&mut self, e: &'ast syn::ExprIf) {
        self.visit_expr(&e.cond);
        if !needs_planted(&e.cond) {
            self.block(&e.then_branch, false);
        }
        if let Some((_, otherwise)) = &e.else_branch {
            self.visit_expr(otherwise);
        }
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        let guard = arm.guard.as_ref().map(|(_, guard)| guard);
        if let Some(guard) = guard {
            self.visit_expr(guard);
        }
        if !guard.is_some_and(|guard| needs_planted(guard)) {
            self.visit_expr(&arm.body);
        }
    }

    fn visit_expr_binary(&mut self, e: &'ast syn::ExprBinary) {
        let whole = Expr::Binary(e.clone());
        match &e.op {
            BinOp::And(_) if self.predicate => self.half(&whole, &e.left, &e.right),
            op
            @ (BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_) | BinOp::Eq(_) | BinOp::Ne(_)) => {
                self.compare(&whole, &e.left, &e.right, op);
                let right = is_number(&e.right);
                self.former(if right { &e.right } else { &e.left });
            }
            _ => {}
        }
        visit::visit_expr_binary(self, e);
    }

    fn visit_expr_await(&mut self, e: &'ast syn::ExprAwait) {
        let span = range(e);
        let waits = called(&e.base).is_some_and(|c| c.name == "until_within");
        if waits && !(self.waited.start <= span.start && span.end <= self.waited.end) {
            let mut parts = vec![text("(")];
            parts.extend(call("mutant", 0, ") || "));
            parts.extend([Part::Source(span.clone()), text(")")]);
            self.put(&[Rule::Wait], span.clone(), vec![Edit { span, parts }]);
        }
        visit::visit_expr_await(self, e);
    }

    fn visit_expr_call(&mut self, e: &'ast syn::ExprCall) {
        if last_name(&e.func).is_some_and(|name| names::tells_people(&name)) {
            return;
        }
        for argument in &e.args {
            self.former(argument);
            self.visit_expr(argument);
        }
    }

    fn visit_expr_method_call(&mut self, e: &'ast syn::ExprMethodCall) {
        let name = e.method.to_string();
        if names::TAKERS.contains(&(&name, e.args.len()))
            && matches!(*e.receiver, Expr::MethodCall(_) | Expr::Path(_))
        {
            self.cut(&[Rule::First, Rule::Last], &e.receiver);
        }
        self.visit_expr(&e.receiver);
        if !names::tells_people(&name) {
            for argument in &e.args {
                self.former(argument);
                self.visit_expr(argument);
            }
        }
    }

    fn visit_expr_assign(&mut self, e: &'ast syn::ExprAssign) {
        self.visit_expr(&e.left);
        self.former(&e.right);
        self.visit_expr(&e.right);
    }

    fn visit_field_value(&mut self, e: &'ast syn::FieldValue) {
        if e.colon_token.is_some() {
            self.former(&e.expr);
            self.visit_expr(&e.expr);
        } else if is_number(&e.expr) {
            let span = range(e);
            let mut parts = vec![text(format!("{}: ", &self.source[span.clone()]))];
            parts.extend(call("former", 0, ", "));
            parts.extend([Part::Source(span.clone()), text(")")]);
            self.put(&[Rule::Former], span.clone(), vec![Edit { span, parts }]);
        }
    }

    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_item_enum(&mut self, _: &'ast syn::ItemEnum) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_expr_repeat(&mut self, e: &'ast syn::ExprRepeat) {
        self.visit_expr(&e.expr);
    }
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_pat(&mut self, _: &'ast Pat) {}
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}
