#!/usr/bin/env bash
# Line coverage of src/ by all tests, smoke runs of the fuzz targets included.
#
#   fuzz/coverage.sh                 runs everything, prints the tables
#   fuzz/coverage.sh ARGUMENTS       runs `cargo test ARGUMENTS`, adds it to what ran before, prints the tables
#   fuzz/coverage.sh --lines FILE    the lines of FILE that nothing ran
#
# Needs llvm-profdata and llvm-cov of LLVM 19 or later (Debian: llvm-19; LLVM_BIN can name their folder), and for the tests what
# they always need: TILELIFT_PTXAS, or those with an assembler are skipped. Builds apart from all else, in target/coverage.
#
# Only this crate is instrumented. Lines of modules under `#[cfg(test)]` and of generated code are left out; a generic line is
# covered if one of its instances is. The tables: each module, each file under 90 %. What is behind `cuda` counts, and what of it
# needs a GPU is not run without one. Counted as not run, whatever runs them: `const fn`s at compile time, and functions so
# small that rustc inlines them in other crates, where only tests there call them.
set -euo pipefail

# Called by cargo in the place of rustc, for this crate alone, and with what it would execute.
case "${1-}" in
*rustc)
  case "$*" in *"--crate-name build_script_build"*) exec "$@" ;; esac
  exec "$@" -C instrument-coverage
  ;;
*/target/coverage/debug/deps/*)
  # Counters are memory that all threads of a process share: on two processors they take it from each other with each step. So
  # each test is a process that finds one processor for its threads. What it says is shown if it fails.
  "$@" --list --format terse | sed -n 's/: test$//p' |
    xargs -r -n 1 -P "$(nproc)" --process-slot-var CPU \
      sh -c 'told=$(taskset -c "$CPU" "$0" --exact "$1" 2>&1) || { echo "$told"; exit 1; }' "$1"
  exit
  ;;
/*) exec "$@" ;;
esac

cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=$PWD/target/coverage CARGO_INCREMENTAL=0
export RUSTC_WORKSPACE_WRAPPER=$PWD/fuzz/coverage.sh
# One file for each executable, to which each of its processes adds; a folder for each run, as executables change.
export LLVM_PROFILE_FILE=$CARGO_TARGET_DIR/profiles/$(date +%s)/%m.profraw
lines=$CARGO_TARGET_DIR/lines

tool() {
  local name
  for name in ${LLVM_BIN:+"$LLVM_BIN/$1"} "$1"-{24..19} "$1"; do
    if command -v "$name"; then return; fi
  done
  echo "coverage: $1 of LLVM 19 or later is needed" >&2
  return 1
}

if [ "${1-}" = --lines ]; then
  awk -v file="$2" '$1 == file && $3 == 0 { print $2 }' "$lines" |
    awk 'NR == FNR { gap[$1]; next } FNR in gap { printf "%5d %s\n", FNR, $0 }' - "$2"
  exit
fi
profdata=$(tool llvm-profdata)
cov=$(tool llvm-cov)

# Failures are told, and what ran counts.
run() {
  cargo test --config "target.'cfg(all())'.runner = '$PWD/fuzz/coverage.sh'" --no-fail-fast "$@" || echo "coverage: cargo test $*: failures" >&2
}
if [ $# = 0 ]; then
  rm -rf "$CARGO_TARGET_DIR/profiles"
  run
  run --features cuda --lib driver
  run --features cuda --test runtime
else
  run "$@"
fi

# Every executable of the last builds: where several have the same function, the counts add up.
objects=$(find "$CARGO_TARGET_DIR/debug/deps" -maxdepth 1 -type f -executable ! -name '*.so')
"$profdata" merge -sparse "$CARGO_TARGET_DIR"/profiles/*/*.profraw -o "$CARGO_TARGET_DIR/profile"
# shellcheck disable=SC2046
"$cov" export -format=lcov -instr-profile "$CARGO_TARGET_DIR/profile" $(printf -- '-object %s ' $objects) > "$CARGO_TARGET_DIR/lcov.info"

# FILE LINE COUNT for each line with code, but for tests. Of modules under `#[cfg(test)]` some are files:
modules=$(grep -rA1 '^ *#\[cfg(test)\]$' src |
  sed -nE 's#^(src.*)/(mod|lib)\.rs-.*mod (\w+);$#\1/\3#p; s#^(src/.*)\.rs-.*mod (\w+);$#\1/\2#p' | paste -sd '|')
awk -v root="$PWD/" -v modules="^($modules)(/|\\.rs)" '
  # Others are lines of a file, from the attribute to the end of the item, which rustfmt has set.
  function tests(path,   n, line, indent, inside) {
    split("", skip)
    while ((getline line < path) > 0) {
      n++
      if (line ~ /^ *#\[cfg\(test\)\]$/ && !inside) { inside = 1; indent = line; sub(/#.*/, "", indent) }
      if (inside) {
        skip[n]
        if (line == indent "}" || (line ~ /;$/ && index(line, indent "    ") != 1)) inside = 0
      }
    }
    close(path)
  }
  /^SF:/ {
    path = substr($0, 4); file = ""
    if (index(path, root "src/") == 1) file = substr(path, length(root) + 1)
    if (file ~ modules) file = ""
    if (file != "") tests(path)
  }
  /^DA:/ && file != "" { split(substr($0, 4), a, ","); if (!(a[1] in skip)) print file, a[1], a[2] }
' "$CARGO_TARGET_DIR/lcov.info" > "$lines"

# Lines, covered, percent and name, of what `key` makes of a file.
table() {
  awk -v of="$1" -v least="$2" '
    {
      key = $1
      if (of == "modules") { sub(/^src\//, "", key); sub(/\.rs$/, "", key); sub(/\/.*/, "", key) }
      all[key]++
      covered[key] += $3 > 0
      if (of == "modules") { all["all"]++; covered["all"] += $3 > 0 }
    }
    END {
      for (key in all) {
        percent = 100 * covered[key] / all[key]
        if (percent < least) printf "%7d %7d %6.1f %% %s\n", all[key], covered[key], percent, key
      }
    }
  ' "$lines" | sort -k 5
}
echo "  lines covered"
table modules 101
echo "files under 90 %"
table files 90 | sort -n -k 3
