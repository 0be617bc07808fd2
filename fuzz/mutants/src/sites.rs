//! Where mutants can be planted in a file, and what each puts there.

use std::ops::Range;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, Lit, ReturnType, Type};

/// A change of one stretch of a file.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// Bytes of the file that the change replaces; empty where it only inserts.
    pub(crate) range: Range<usize>,
    /// Line of its begin, from 1.
    pub(crate) line: usize,
    /// What is changed, for people.
    pub(crate) what: String,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// Another operator at these bytes of the file.
    Operator {
        at: Range<usize>,
        other: &'static str,
        is_statement: bool,
    },
    /// The condition's opposite.
    Negate,
    /// This number.
    Number(String),
    /// A function returns this at once.
    Return(&'static str),
    /// The statement is left out.
    Omit,
}

impl Site {
    /// What stands in the place of the range, with the mutant behind its number.
    pub(crate) fn planted(&self, file: &str, number: usize) -> String {
        let text = &file[self.range.clone()];
        let on = format!("crate::mutant({number})");
        match &self.kind {
            Kind::Operator {
                at,
                other,
                is_statement,
            } => {
                let (left, right) = (
                    &file[self.range.start..at.start],
                    &file[at.end..self.range.end],
                );
                let both = format!("if {on} {{ {left}{other}{right} }} else {{ {text} }}");
                if *is_statement {
                    both
                } else {
                    format!("({both})")
                }
            }
            Kind::Negate => format!("({text}) != {on}"),
            Kind::Number(other) => format!("(if {on} {{ {other} }} else {{ {text} }})"),
            Kind::Return(value) => format!(" if {on} {{ return {value}; }} "),
            Kind::Omit => format!("if !{on} {{ {text} }}"),
        }
    }
}

/// All sites of a file; an error if it does not parse.
pub(crate) fn sites(text: &str) -> syn::Result<Vec<Site>> {
    let file = syn::parse_file(text)?;
    let mut finder = Finder {
        text,
        sites: Vec::new(),
    };
    finder.visit_file(&file);
    Ok(finder.sites)
}

struct Finder<'a> {
    text: &'a str,
    sites: Vec<Site>,
}

impl Finder<'_> {
    fn add(&mut self, range: Range<usize>, line: usize, what: String, kind: Kind) {
        self.sites.push(Site {
            range,
            line,
            what,
            kind,
        });
    }

    fn condition(&mut self, cond: &Expr) {
        if !has_let(cond) {
            let range = cond.span().byte_range();
            let what = format!("`{}` negated", short(&self.text[range.clone()]));
            self.add(range, cond.span().start().line, what, Kind::Negate);
        }
    }

    fn function(&mut self, sig: &syn::Signature, block: &syn::Block) {
        if sig.constness.is_some() {
            return;
        }
        let value = match &sig.output {
            ReturnType::Default => "",
            ReturnType::Type(_, ty) => match default_of(ty) {
                Some(value) => value,
                None => return visit::visit_block(self, block),
            },
        };
        let at = block.brace_token.span.open().byte_range().end;
        let line = sig.span().start().line;
        let what = format!(
            "`{}` returns {} at once",
            sig.ident,
            if value.is_empty() { "()" } else { value }
        );
        if !block.stmts.is_empty() {
            self.add(at..at, line, what, Kind::Return(value));
        }
        visit::visit_block(self, block);
    }
}

/// A value of a type that can be written without knowing more than its name.
fn default_of(ty: &Type) -> Option<&'static str> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    Some(match last.ident.to_string().as_str() {
        "bool" => "true",
        "Option" => "None",
        "Vec" => "Vec::new()",
        "String" => "String::new()",
        "u8" | "u16" | "u32" | "u64" | "usize" | "i32" | "i64" => "1",
        "Result" => match &last.arguments {
            syn::PathArguments::AngleBracketed(args) => match args.args.first()? {
                syn::GenericArgument::Type(Type::Tuple(tuple)) if tuple.elems.is_empty() => {
                    "Ok(())"
                }
                _ => return None,
            },
            _ => return None,
        },
        _ => return None,
    })
}

fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        Expr::Paren(paren) => has_let(&paren.expr),
        _ => false,
    }
}

fn short(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(60) {
        Some((end, _)) => format!("{} ..", &line[..end]),
        None => line,
    }
}

/// The operator that takes another's place, and whether the expression is a statement.
fn exchanged(op: &BinOp) -> Option<(&'static str, bool)> {
    Some(match op {
        BinOp::Lt(_) => ("<=", false),
        BinOp::Le(_) => ("<", false),
        BinOp::Gt(_) => (">=", false),
        BinOp::Ge(_) => (">", false),
        BinOp::Eq(_) => ("!=", false),
        BinOp::Ne(_) => ("==", false),
        BinOp::And(_) => ("||", false),
        BinOp::Or(_) => ("&&", false),
        BinOp::Add(_) => ("-", false),
        BinOp::Sub(_) => ("+", false),
        BinOp::Mul(_) => ("+", false),
        BinOp::Div(_) => ("*", false),
        BinOp::Rem(_) => ("/", false),
        BinOp::Shl(_) => (">>", false),
        BinOp::Shr(_) => ("<<", false),
        BinOp::BitAnd(_) => ("|", false),
        BinOp::BitOr(_) => ("&", false),
        BinOp::BitXor(_) => ("|", false),
        BinOp::AddAssign(_) => ("-=", true),
        BinOp::SubAssign(_) => ("+=", true),
        BinOp::MulAssign(_) => ("+=", true),
        BinOp::ShlAssign(_) => (">>=", true),
        BinOp::ShrAssign(_) => ("<<=", true),
        BinOp::BitAndAssign(_) => ("|=", true),
        BinOp::BitOrAssign(_) => ("&=", true),
        BinOp::BitXorAssign(_) => ("|=", true),
        _ => return None,
    })
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attrs = match item {
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            _ => &Vec::new(),
        };
        let is_test =
            |attr: &syn::Attribute| attr.path().is_ident("cfg") || attr.path().is_ident("test");
        if attrs.iter().any(is_test) {
            return;
        }
        // What people read is compared by few tests, rightly.
        if let syn::Item::Impl(item) = item
            && let Some((_, path, _)) = &item.trait_
            && path
                .segments
                .last()
                .is_some_and(|s| s.ident == "Display" || s.ident == "Debug")
        {
            return;
        }
        visit::visit_item(self, item);
    }

    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_item_enum(&mut self, _: &'ast syn::ItemEnum) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_type(&mut self, _: &'ast Type) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, &item.block);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig, &item.block);
    }

    fn visit_expr_repeat(&mut self, expr: &'ast syn::ExprRepeat) {
        self.visit_expr(&expr.expr);
    }

    fn visit_expr_if(&mut self, expr: &'ast syn::ExprIf) {
        self.condition(&expr.cond);
        visit::visit_expr_if(self, expr);
    }

    fn visit_expr_while(&mut self, expr: &'ast syn::ExprWhile) {
        self.condition(&expr.cond);
        visit::visit_expr_while(self, expr);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if let Some((_, guard)) = &arm.guard {
            self.condition(guard);
        }
        visit::visit_arm(self, arm);
    }

    fn visit_stmt(&mut self, stmt: &'ast syn::Stmt) {
        // A call for its effect, or an assignment.
        if let syn::Stmt::Expr(expr, Some(_)) = stmt
            && matches!(expr, Expr::MethodCall(_) | Expr::Call(_) | Expr::Assign(_))
        {
            let range = stmt.span().byte_range();
            let what = format!("`{}` left out", short(&self.text[range.clone()]));
            self.add(range, stmt.span().start().line, what, Kind::Omit);
        }
        visit::visit_stmt(self, stmt);
    }

    fn visit_expr_binary(&mut self, expr: &'ast syn::ExprBinary) {
        let whole = expr.span();
        let is_chain =
            matches!(expr.op, BinOp::And(_)) && (has_let(&expr.left) || has_let(&expr.right));
        if let (Some((other, is_statement)), false) = (exchanged(&expr.op), is_chain) {
            let range = whole.byte_range();
            let at = expr.op.span().byte_range();
            let what = format!("`{}` with `{other}`", short(&self.text[range.clone()]));
            self.add(
                range,
                whole.start().line,
                what,
                Kind::Operator {
                    at,
                    other,
                    is_statement,
                },
            );
        }
        visit::visit_expr_binary(self, expr);
    }

    fn visit_expr_lit(&mut self, expr: &'ast syn::ExprLit) {
        if let Lit::Int(number) = &expr.lit
            && let Ok(value) = number.base10_parse::<u128>()
        {
            let other = format!("{}{}", value + 1, number.suffix());
            let span = number.span();
            let what = format!("{} for {number}", value + 1);
            self.add(
                span.byte_range(),
                span.start().line,
                what,
                Kind::Number(other),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text with each of its sites planted alone.
    fn all(text: &str) -> Vec<String> {
        let sites = sites(text).expect("the text parses");
        let planted = sites.iter().map(|site| {
            let mut new = text.to_owned();
            new.replace_range(site.range.clone(), &site.planted(text, 7));
            syn::parse_file(&new).expect("what is planted parses");
            new
        });
        planted.collect()
    }

    #[test]
    fn each_kind_of_change_is_behind_its_number() {
        let planted = all("fn f(a: u32) -> bool { if a < 3 { g(a); } a == 4 }");
        let expected = [
            "fn f(a: u32) -> bool { if crate::mutant(7) { return true; }  if a < 3 { g(a); } a == 4 }",
            "fn f(a: u32) -> bool { if (a < 3) != crate::mutant(7) { g(a); } a == 4 }",
            "fn f(a: u32) -> bool { if (if crate::mutant(7) { a <= 3 } else { a < 3 }) { g(a); } a == 4 }",
            "fn f(a: u32) -> bool { if a < (if crate::mutant(7) { 4 } else { 3 }) { g(a); } a == 4 }",
            "fn f(a: u32) -> bool { if a < 3 { if !crate::mutant(7) { g(a); } } a == 4 }",
            "fn f(a: u32) -> bool { if a < 3 { g(a); } (if crate::mutant(7) { a != 4 } else { a == 4 }) }",
            "fn f(a: u32) -> bool { if a < 3 { g(a); } a == (if crate::mutant(7) { 5 } else { 4 }) }",
        ];
        assert_eq!(planted, expected);
    }

    #[test]
    fn constants_patterns_tests_and_messages_are_left_alone() {
        let text = "const A: u32 = 1 + 2;
            const fn b() -> u32 { 1 + 2 }
            fn c(x: [u8; 4]) -> R { match x[..] { [1, ..] => [y; 4 + 4], _ => d } }
            fn e() -> R { match x { Some(y) if let Some(z) = y => z, _ => d } }
            #[cfg(test)] mod tests { fn g() -> bool { 1 < 2 } }
            impl fmt::Display for R { fn fmt(&self) -> bool { 1 < 2 } }";
        assert_eq!(all(text), [""; 0]);
    }
}
