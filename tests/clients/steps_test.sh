#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
#
# steps_test.sh HOLDFAST: steps that `holdfast run` reads from log lines, and the pictures of `holdfast plot`.
set -uo pipefail
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh"
program=$(realpath "$1")
dir=$(mktemp -d)
export HOLDFAST_DIR=$dir/state
unset KUBECONFIG
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1

# A program that knows nothing of Holdfast: a bar as tqdm draws it, to the end or to its failure.
cat >bar.py <<-'PY'
	import os, select, sys
	total = 20
	done = 8 if os.path.exists("failed") else 0
	for step in range(done + 1, total + 1):
	    select.select([], [], [], 0.05)
	    bar = "#" * (step // 2) + " " * (10 - step // 2)
	    print(f"\r{step * 5:3}%|{bar}| {step}/{total} [00:{step:02}<00:20,  4.50it/s, loss={1 / step:.3f}]",
	          end="", file=sys.stderr, flush=True)
	    if "--fail" in sys.argv and step == 12 and done == 0:
	        open("failed", "w").close()
	        sys.exit(3)
	print(file=sys.stderr)
PY
cat >words.py <<-'PY'
	import select
	for step in range(1, 9):
	    print(f"epoch 1 batch {step} of 8: loss {1 / step:.2f}", flush=True)
	    select.select([], [], [], 0.05)
	print("a" * 300 + "!", flush=True)
PY
code() {
	local wanted=$1 rc=0
	shift
	"$@" >out 2>&1 || rc=$?
	[ "$rc" = "$wanted" ] || { echo "wanted $wanted, got $rc:"; cat out; return 1; }
	cat out
}
on_terminal() { env TERM=xterm python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' "$@"; }
has_steps() { python3 -c 'import json, sys; r = json.load(open(sys.argv[1]))["ranks"][0]; print(r["name"], r["points"][-1][1:3])' "$(echo "$HOLDFAST_DIR"/runs/"$1"-*/steps.json)"; }
well_formed() { python3 -c 'import sys, xml.dom.minidom as m; print(m.parse(sys.argv[1]).documentElement.tagName)' "$1"; }

expect 'steps of a progress bar are read, and shown in the block' 'master-0  [^ ]*  step 1?[0-9]/20  4[.]5/s  loss 0[.][0-9]*  eta [0-9]+s' \
	on_terminal "$program" run bar.py
expect 'the steps of the bar are kept' 'master-0 .20, 0[.]05' has_steps bar
rm -rf "$HOLDFAST_DIR"
expect 'the row of losses shows the restart' 'loss [^ ]*[|┆][^ ]* ' \
	on_terminal env LC_ALL=C.UTF-8 "$program" run --max-restarts 2 bar.py --fail
expect '--step-regex none reads no lines' 'job/bar succeeded' sh -c "rm -f failed; '$program' run --step-regex none bar.py"
expect 'an expression that takes too long gives one line, and the run goes on' \
	'note: --step-regex is off from now on: on a line of master-0 the match took too many steps; use an expression without nested repeats' \
	"$program" run --step-regex '^(a+)+$' words.py
expect '--step-regex reads the lines of its form' 'job/words succeeded' \
	"$program" run --step-regex 'batch (?<step>\d+) of (?<total>\d+): loss (?<loss>\S+)' words.py
expect 'a wrong expression ends at once' \
	"^holdfast: --step-regex 'step [(]': missing closing parenthesis, at character 7.See 'holdfast run --help'" \
	code 2 "$program" run --step-regex 'step (' bar.py
expect 'an expression without a group is refused' "the expression has no group: write the step in brackets, as in 'step" \
	code 2 "$program" run --step-regex 'step' bar.py

# ---- plot ----
expect 'a run of this machine is drawn' '^run.svg.<svg .*generation 2.*<title>master-0</title>' \
	sh -c "'$program' plot @4 -o run.svg && cat run.svg"
expect 'the picture is XML' 'svg' well_formed run.svg
expect 'the steps of an expression are drawn' '<title>master-0</title>' "$program" plot @latest -o -
expect 'the name of the file comes from the run' '^words.svg.$' sh -c "'$program' plot words"
expect 'standard output' '^<svg .*</svg>' "$program" plot words -o -
refuse 'a run without steps' "run 'bar' has no steps: its program reported none, and no log line had one" "$program" plot bar
refuse 'a run that does not exist is refused' "no kept run 'nosuch'; 'holdfast runs' lists 4" "$program" plot nosuch
refuse 'for an unknown run the nearest name is printed' "no kept run 'wrods': did you mean 'words'[?]" "$program" plot wrods
refuse 'no runs at all' 'no runs are kept in .*/empty/runs' env HOLDFAST_DIR="$PWD/empty" "$program" plot
expect '-o refuses a file of another kind' "^holdfast: -o takes a file that ends in [.]svg or [.]png, or -, not 'run.jpg'" \
	code 2 "$program" plot -o run.jpg
refuse 'a missing folder is an error' "cannot write '/nonexistent/run.svg'" "$program" plot words -o /nonexistent/run.svg
if command -v rsvg-convert >/dev/null; then
	expect 'a PNG' '^run.png.PNG.$' sh -c "'$program' plot words -o run.png && head -c 8 run.png | tr -cd A-Z"
	refuse 'a PNG in a folder that is not there' 'rsvg-convert has failed' "$program" plot words -o /nonexistent/run.png
fi
mkdir none
refuse 'a PNG without rsvg-convert' 'a PNG needs the program rsvg-convert .Debian package librsvg2-bin.; an SVG needs nothing' \
	env PATH="$PWD/none" "$program" plot words -o run2.png
finish
