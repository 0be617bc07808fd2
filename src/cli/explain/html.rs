//! The page of a kernel as HTML: one file without references to others. Lines that come of one line of the source are marked
//! together.

use std::fmt::Write as _;

/// A text in a column of its own.
pub(super) struct Panel {
    pub(super) name: String,
    /// Lines, each with the line of the source that it comes of.
    pub(super) lines: Vec<(Option<usize>, String)>,
}

/// What the page shows.
pub(super) struct Page {
    pub(super) title: String,
    /// What is known of the kernel: names and values.
    pub(super) facts: Vec<(String, String)>,
    pub(super) panels: Vec<Panel>,
    /// Pictures with their names, as SVG.
    pub(super) pictures: Vec<(String, String)>,
    /// The passes, each with its text, in which `+` and `-` begin lines that changed.
    pub(super) passes: Vec<(String, String)>,
}

const STYLE: &str = "
body { font: 14px system-ui, sans-serif; margin: 1em; color: #222; background: #fff }
h1 { font-size: 1.2em } h2 { font-size: 1em; margin: .3em 0 }
pre { font: 12px/1.35 ui-monospace, monospace; margin: 0 }
dl { columns: 16em; margin: 0 0 1em } dl div { display: flex; gap: 1em; break-inside: avoid }
dt { flex: 1; color: #555 } dd { margin: 0 2em 0 0 }
.panels { display: flex; gap: 1em; height: 75vh } .panel { flex: 1; min-width: 0; display: flex; flex-direction: column }
.panel pre { overflow: auto; border: 1px solid #ccc; padding: .4em; flex: 1 }
.line { display: block; white-space: pre } .line[data-l] { cursor: pointer }
.marked { background: #ffe9a8 } .number { color: #999; user-select: none }
.add { background: #e2f5e2 } .sub { background: #fbe3e3 } .at { color: #777 }
details { margin: .4em 0 } details pre, .pictures { overflow: auto; border: 1px solid #ccc; padding: .4em }
";

/// Marks what belongs to the line under the pointer; a click brings it into view everywhere.
const SCRIPT: &str = "
const all = document.querySelectorAll('.panel [data-l]');
const mark = l => all.forEach(e => e.classList.toggle('marked', e.dataset.l === l));
for (const e of all) {
  e.addEventListener('mouseenter', () => mark(e.dataset.l));
  e.addEventListener('click', () => document.querySelectorAll('.panel').forEach(p => {
    if (!p.contains(e)) p.querySelector(`[data-l='${e.dataset.l}']`)?.scrollIntoView({ block: 'center' });
  }));
}
";

impl Page {
    /// The file.
    pub(super) fn text(&self) -> String {
        let title = plain(&self.title);
        let mut out = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title><style>{STYLE}</style></head>\n\
             <body><h1>{title}</h1>\n<dl>\n"
        );
        // Writing to a string does not fail.
        for (name, value) in &self.facts {
            let _ = writeln!(
                out,
                "<div><dt>{}</dt><dd>{}</dd></div>",
                plain(name),
                plain(value)
            );
        }
        out += "</dl>\n<div class=\"panels\">\n";
        for panel in &self.panels {
            let _ = write!(
                out,
                "<div class=\"panel\"><h2>{}</h2><pre>",
                plain(&panel.name)
            );
            for (number, (line, text)) in (1..).zip(&panel.lines) {
                let data = line.map_or(String::new(), |line| format!(" data-l=\"{line}\""));
                let text = plain(text);
                let _ = write!(
                    out,
                    "<span class=\"line\"{data}><span class=\"number\">{number:>4} </span>{text}</span>"
                );
            }
            out += "</pre></div>\n";
        }
        out += "</div>\n";
        for (name, picture) in &self.pictures {
            let name = plain(name);
            let _ = writeln!(
                out,
                "<details><summary>{name}</summary><div class=\"pictures\">{picture}</div></details>"
            );
        }
        out += "<h2>Passes</h2>\n";
        for (name, text) in &self.passes {
            if text.trim().is_empty() {
                let _ = writeln!(out, "<p class=\"at\">{}</p>", plain(name));
                continue;
            }
            let _ = write!(out, "<details><summary>{}</summary><pre>", plain(name));
            for line in text.lines() {
                let class = match line.as_bytes().first() {
                    Some(b'+') => "line add",
                    Some(b'-') => "line sub",
                    Some(b'@') => "line at",
                    _ => "line",
                };
                let _ = write!(out, "<span class=\"{class}\">{}</span>", plain(line));
            }
            out += "</pre></details>\n";
        }
        let _ = writeln!(out, "<script>{SCRIPT}</script></body></html>");
        out
    }
}

/// A text without what means something in HTML and XML.
pub(in crate::cli) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_kernel_is_markup() {
        let text = "</pre><script>alert(\"x\")</script>&";
        let page = Page {
            title: text.to_owned(),
            facts: vec![(text.to_owned(), text.to_owned())],
            panels: vec![Panel {
                name: text.to_owned(),
                lines: vec![(Some(1), text.to_owned())],
            }],
            pictures: Vec::new(),
            passes: vec![(text.to_owned(), format!("+{text}"))],
        };
        let page = page.text();
        assert_eq!(page.matches("<script>").count(), 1);
        assert_eq!(page.matches("alert(&quot;x&quot;)").count(), 8);
    }
}
