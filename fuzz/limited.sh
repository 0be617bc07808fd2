#!/usr/bin/env bash
# The text targets under a limit of 512 MB of address space, which a text that makes the compiler or the emulator use memory
# without bound meets: an allocation that fails ends the process.
#
#   fuzz/limited.sh [SECONDS [ARGUMENTS]]    each target for so many seconds, 5 if nothing is said
#
# ARGUMENTS go to `cargo test`, in the place of `--release`. TILELIFT_FUZZ_SEED gives the first seed, as ever. Fails if a
# target does.
set -euo pipefail

cd "$(dirname "$0")/.."
seconds=${1:-5}
shift $(($# > 0))
targets=(ir_text ptx_text source_text)

built=$(cargo test "${@:---release}" --no-run --test=fuzz 2>&1) || {
  echo "$built" >&2
  exit 1
}

program=$(sed -n "s|^ *Executable .*(\(.*/fuzz-[^)]*\))\$|\1|p" <<<"$built")
if [[ ! -x $program ]]; then
  echo "limited: cargo names no program" >&2
  exit 1
fi

failed=()
for target in "${targets[@]}"; do
  # In KiB, for this one process.
  if ! (ulimit -v 524288 && TILELIFT_FUZZ_SECONDS=$seconds exec "$program" --exact "$target" --nocapture); then
    failed+=("$target")
  fi
done

if ((${#failed[@]})); then
  echo "limited: failed under 512 MB: ${failed[*]}" >&2
  exit 1
fi
