//! From bytes to a syntax tree, with bounds.
//!
//! The parser recurses, and so does whoever frees or walks its tree. So the tokens are looked at first: depth of
//! brackets and of indentation, and how many operators stand in a row or within each other, which bounds the depth of
//! what they become. What passes is parsed and walked on any stack.

use ruff_python_ast::ModModule;
use ruff_python_ast::token::{TokenKind, Tokens};
use ruff_python_parser::{
    LexicalErrorType, Mode, ParseError, ParseErrorType, ParseOptions, lexer, parse_unchecked,
};
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::decorated::decorate;
use super::diagnostic::{Code, Diagnostic, MAX_MESSAGES, position};
use crate::limits::{SOURCE_BRACKETS, SOURCE_BYTES, SOURCE_INDENTATION, SOURCE_OPERATORS};

/// The tree of a text.
pub(crate) fn parse(text: &str) -> Result<ModModule, Vec<Diagnostic>> {
    check_bounds(text).map_err(|d| vec![d])?;
    let parsed = parse_unchecked(text, ParseOptions::from(Mode::Module));
    if parsed.errors().is_empty() {
        let mut module = into_module(parsed.into_syntax());
        decorate(&mut module);
        return Ok(module);
    }
    let mut messages: Vec<Diagnostic> = Vec::new();
    let mut last_line = None;
    let (mut seen, mut line) = (0, 0);
    let brackets = wrong_brackets(text, parsed.tokens(), parsed.errors());
    for e in parsed.errors() {
        // What follows a bracket that is never closed is wrong since then.
        if brackets
            .first()
            .is_some_and(|d| d.span.start < usize::from(e.location.end()))
        {
            break;
        }
        // What follows on the same line, or from the end of the text after another mistake, says nothing new.
        if messages.len() == MAX_MESSAGES {
            break;
        }
        let at = usize::from(e.location.start()).min(text.len());
        if at < seen {
            (seen, line) = (0, 0);
        }
        line += text[seen..at].matches('\n').count();
        seen = at;
        let at_end = !messages.is_empty() && text[at..].trim().is_empty();
        if last_line != Some(line) && !at_end {
            last_line = Some(line);
            messages.push(syntax_error(text, e.location, &e.error.to_string()));
        }
    }
    messages.extend(brackets);
    messages.truncate(MAX_MESSAGES);
    Err(messages)
}

/// The tree of a text that begins at a byte of a larger one: places in it are bytes of that.
pub(crate) fn parse_at(text: &str, start: usize) -> Result<ModModule, Vec<Diagnostic>> {
    match start.checked_sub(1) {
        None => parse(text),
        // A line of blanks is none for Python.
        Some(blanks) => parse(&(" ".repeat(blanks) + "\n" + text)),
    }
}

/// The tree of a text without statements.
pub(crate) fn empty() -> ModModule {
    ModModule {
        node_index: Default::default(),
        range: TextRange::default(),
        body: Default::default(),
    }
}

/// Brackets that close what is not open, and brackets that are not closed, in the order of the text.
///
/// A statement that begins inside of a bracket, no further right than the one that the bracket stands in, and that the
/// parser stumbles over, shows that the bracket was not closed: from there on none is open. Of several that are open the last one is
/// named, and at the end of the text the last before the first of the parser's errors that stands behind any, which it leads to.
///
/// A bracket of no call in which a keyword stands, inside of another, is the one that lacks its end.
///
/// A text without its closing quote has swallowed brackets: from there on nothing is known, and what is open there is to blame for
/// errors in front of that alone.
fn wrong_brackets(text: &str, tokens: &Tokens, errors: &[ParseError]) -> Vec<Diagnostic> {
    let is_swallowing = |e: &&ParseError| match &e.error {
        ParseErrorType::Lexical(what) => *what != LexicalErrorType::Eof,
        _ => false,
    };
    let end = errors.iter().find(is_swallowing);
    let end = end.map(|e| e.location.start());
    let is_known = |at: TextSize| end.is_none_or(|end| at < end);
    let shown = |at: TextRange| &text[usize::from(at.start())..usize::from(at.end())];
    let unclosed = |at: TextRange| {
        let message = format!("`{}` is never closed", shown(at));
        let d = Diagnostic::error(Code::Syntax, at, message).label("opened here");
        d.help("close it, or see whether a bracket before it is one too many")
    };
    let mut found = Vec::new();
    let mut open: Vec<(TokenKind, TextRange)> = Vec::new();
    let mut with_keyword: Option<TextRange> = None;
    for token in tokens
        .iter()
        .take_while(|token| is_known(token.range().start()))
    {
        let (kind, at) = (token.kind(), token.range());
        let opening = match kind {
            TokenKind::Rpar => Some(TokenKind::Lpar),
            TokenKind::Rsqb => Some(TokenKind::Lsqb),
            TokenKind::Rbrace => Some(TokenKind::Lbrace),
            _ => None,
        };
        if let (Some(&(_, first)), Some(&(_, last)), None) = (open.first(), open.last(), opening)
            && is_statement(text, at, first, errors)
        {
            found.push(unclosed(with_keyword.take().unwrap_or(last)));
            open.clear();
        }
        if let (TokenKind::Equal, [_, .., (TokenKind::Lpar, inner)]) = (kind, &*open) {
            let before = text[..usize::from(inner.start())].trim_end();
            let is_called = before.ends_with(|c: char| c.is_alphanumeric() || "_)]".contains(c));
            with_keyword = with_keyword.or((!is_called).then_some(*inner));
        }
        if matches!(kind, TokenKind::Lpar | TokenKind::Lsqb | TokenKind::Lbrace) {
            open.push((kind, at));
        }
        let Some(opening) = opening else {
            continue;
        };
        if found.len() == MAX_MESSAGES {
            return found;
        }
        match open.last() {
            Some(&(last, _)) if last == opening => _ = open.pop(),
            None => {
                let message = format!("`{}` closes nothing", shown(at));
                let d = Diagnostic::error(Code::Syntax, at, message);
                found.push(d.help("no bracket is open here"));
            }
            // It closes one further out: what was opened since is not closed.
            Some(&(_, inner)) => match open.iter().rposition(|&(kind, _)| kind == opening) {
                Some(outer) => {
                    let before = before_error(&open[outer + 1..], errors, is_known);
                    found.push(unclosed(before.unwrap_or(inner)));
                    open.truncate(outer);
                }
                None => {
                    let (line, column) = position(text, inner.start().into());
                    let message = format!("`{}` does not match `{}`", shown(at), shown(inner));
                    let d = Diagnostic::error(Code::Syntax, at, message);
                    let inner = shown(inner);
                    found
                        .push(d.help(format!("`{inner}` of line {line}, column {column} is open")));
                    open.pop();
                }
            },
        }
    }
    let last = open.last().filter(|_| end.is_none()).map(|&(_, at)| at);
    let with_keyword = with_keyword.filter(|at| {
        open.first()
            .is_some_and(|(_, open)| open.start() < at.start())
    });
    let before = with_keyword.or_else(|| before_error(&open, errors, is_known));
    found.extend(before.or(last).map(unclosed));
    found
}

/// Of open brackets the last before the first error that stands behind any.
fn before_error(
    open: &[(TokenKind, TextRange)],
    errors: &[ParseError],
    is_known: impl Fn(TextSize) -> bool,
) -> Option<TextRange> {
    let starts = errors.iter().map(|e| e.location.start());
    let before = |first: TextSize| open.iter().rev().find(|(_, at)| at.start() < first);
    let at = starts.filter(|&at| is_known(at)).find_map(before);
    at.map(|&(_, at)| at)
}

/// Whether a token begins a statement although the bracket `open` is not closed: it is the first of a line that has an error,
/// no further right than the first of the bracket's line.
fn is_statement(text: &str, token: TextRange, open: TextRange, errors: &[ParseError]) -> bool {
    let indentation = |at: TextRange| {
        let line = text[..usize::from(at.start())]
            .rfind('\n')
            .map_or(0, |i| i + 1);
        let rest = &text[line..];
        (
            line,
            rest.len() - rest.trim_start_matches([' ', '\t']).len(),
        )
    };
    let ((line, spaces), (before, most)) = (indentation(token), indentation(open));
    let start = usize::from(token.start());
    if line + spaces != start || line == before || spaces > most || token.is_empty() {
        return false;
    }
    let end = text[start..].find('\n').map_or(text.len(), |i| start + i);
    let has_error = |e: &ParseError| (start..end).contains(&usize::from(e.location.start()));
    !text[start..end].trim().is_empty() && errors.iter().any(has_error)
}

/// A mistake that the parser found.
fn syntax_error(text: &str, at: TextRange, message: &str) -> Diagnostic {
    let start = text[..usize::from(at.start()).min(text.len())]
        .rfind('\n')
        .map_or(0, |i| i + 1);
    let marks = ["<<<<<<<", "=======", ">>>>>>>"];
    let help = if marks.iter().any(|mark| text[start..].starts_with(mark)) {
        "this is left of two versions that were merged; choose one"
    } else {
        "the text must be what Python 3 accepts"
    };
    Diagnostic::error(Code::Syntax, at, lower_first(message)).help(help)
}

fn into_module(tree: ruff_python_ast::Mod) -> ModModule {
    match tree {
        ruff_python_ast::Mod::Module(module) => module,
        // In module mode the parser gives a module.
        ruff_python_ast::Mod::Expression(_) => empty(),
    }
}

/// The message with its first letter in lower case, as our own have it.
fn lower_first(message: &str) -> String {
    let mut chars = message.chars();
    match chars.next() {
        Some(first)
            if chars
                .as_str()
                .starts_with(|c: char| c.is_lowercase() || c == ' ') =>
        {
            first.to_lowercase().chain(chars).collect()
        }
        _ => message.to_owned(),
    }
}

/// Looks at the tokens of a text.
fn check_bounds(text: &str) -> Result<(), Diagnostic> {
    let start = TextRange::empty(TextSize::new(0));
    if text.len() > SOURCE_BYTES {
        let bytes = text.len();
        let message = format!("the text has {bytes} bytes; at most {SOURCE_BYTES} are read");
        return Err(Diagnostic::error(Code::Limit, start, message));
    }
    let Some(excess) = find_excess(text) else {
        return Ok(());
    };
    let at = TextSize::try_from(first_excess(text).saturating_sub(1)).unwrap_or_default();
    let (message, help) = match excess {
        Excess::Brackets => (
            format!("brackets are nested more than {SOURCE_BRACKETS} deep"),
            "give inner expressions names, on lines of their own",
        ),
        Excess::Indentation => (
            format!("blocks are nested more than {SOURCE_INDENTATION} deep"),
            "move inner blocks to functions",
        ),
        Excess::Operators => (
            format!("an expression has more than {SOURCE_OPERATORS} operators"),
            "give parts of it names, on lines of their own",
        ),
    };
    Err(Diagnostic::error(Code::Limit, TextRange::empty(at), message).help(help))
}

/// Length of the shortest beginning of a text that exceeds a bound. The lexer tells no positions, so it is searched
/// for; what exceeds a bound still does when the text goes on.
fn first_excess(text: &str) -> usize {
    let exceeds = |bytes: usize| find_excess(&text[..floor(text, bytes)]).is_some();
    let mut high = 1024;
    while high < text.len() && !exceeds(high) {
        high *= 2;
    }
    let (mut low, mut high) = (high / 2, high.min(text.len()));
    if low == 512 {
        low = 0;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if exceeds(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    floor(text, high)
}

/// The last boundary of a character at or before `byte`.
fn floor(text: &str, byte: usize) -> usize {
    (0..=byte.min(text.len()))
        .rev()
        .find(|&b| text.is_char_boundary(b))
        .unwrap_or(0)
}

/// A bound on the tokens.
#[derive(Clone, Copy)]
enum Excess {
    Brackets,
    Indentation,
    Operators,
}

/// What stands between two brackets, or outside of all, as far as it was read: how deep a tree it can be.
#[derive(Clone, Copy, Default)]
struct Level {
    /// Operators of the element, which stand in a row or within each other.
    operators: usize,
    /// Depth of the deepest closed bracket of the element.
    inner: usize,
    /// Depth of the deepest element in front of it.
    beside: usize,
    /// Whether commas may stand within an element.
    has_lambda: bool,
}

impl Level {
    fn depth(self) -> usize {
        self.beside.max(self.operators + self.inner)
    }

    /// The level behind a comma: elements of a list stand beside each other and deepen nothing.
    fn next(self) -> Level {
        match self.has_lambda {
            true => self,
            false => Level {
                beside: self.depth(),
                ..Level::default()
            },
        }
    }
}

/// The first bound that the tokens of a text exceed.
fn find_excess(text: &str) -> Option<Excess> {
    let mut lexer = lexer::lex(text, Mode::Module);
    let mut indents = 0usize;
    // The levels around the innermost one, with what ends it, and how many operators they have.
    let (mut around, mut outside) = (Vec::<(TokenKind, Level)>::new(), 0usize);
    let mut level = Level::default();
    loop {
        let kind = lexer.next_token();
        if let Some(end) = closing(kind) {
            level.operators += 1;
            outside += level.operators;
            around.push((end, std::mem::take(&mut level)));
        }
        // What closes another bracket closes nothing.
        if let Some(&(end, outer)) = around.last()
            && end == kind
        {
            around.pop();
            outside -= outer.operators;
            let inner = outer.inner.max(level.depth());
            level = Level { inner, ..outer };
        }
        match kind {
            TokenKind::EndOfFile => return None,
            TokenKind::Indent => indents += 1,
            TokenKind::Dedent => indents = indents.saturating_sub(1),
            TokenKind::Newline => {
                level = Level::default();
                around.clear();
                outside = 0;
            }
            TokenKind::Comma => level = level.next(),
            _ if deepens(kind) => {
                level.operators += 1;
                level.has_lambda |= kind == TokenKind::Lambda;
            }
            _ => {}
        }
        if around.len() > SOURCE_BRACKETS {
            return Some(Excess::Brackets);
        }
        if indents > SOURCE_INDENTATION {
            return Some(Excess::Indentation);
        }
        if outside + level.depth() > SOURCE_OPERATORS {
            return Some(Excess::Operators);
        }
    }
}

/// What ends what the token begins, if it is a bracket or a text with expressions in it.
fn closing(kind: TokenKind) -> Option<TokenKind> {
    match kind {
        TokenKind::Lpar => Some(TokenKind::Rpar),
        TokenKind::Lsqb => Some(TokenKind::Rsqb),
        TokenKind::Lbrace => Some(TokenKind::Rbrace),
        TokenKind::FStringStart => Some(TokenKind::FStringEnd),
        TokenKind::TStringStart => Some(TokenKind::TStringEnd),
        _ => None,
    }
}

/// Whether the token may make a tree deeper without a bracket.
fn deepens(kind: TokenKind) -> bool {
    let stands_alone = matches!(
        kind,
        TokenKind::Colon | TokenKind::Semi | TokenKind::Rpar | TokenKind::Rsqb | TokenKind::Rbrace
    );
    kind.is_operator() && !stands_alone && closing(kind).is_none()
        || matches!(
            kind,
            TokenKind::If
                | TokenKind::Else
                | TokenKind::Lambda
                | TokenKind::Not
                | TokenKind::And
                | TokenKind::Or
                | TokenKind::Await
                | TokenKind::Yield
                | TokenKind::Is
                | TokenKind::In
        )
}
