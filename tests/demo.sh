#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The demo: records a training loop that two loader workers starve, on the simulated GPU, and explains it. Leaves
# demo.whyidle, demo.json and the workload's own ground truth demo.truth.json in the build folder. Where BPF is not
# allowed it explains a session that ships with the project instead.
#
#   tests/demo.sh [BUILD_FOLDER]
set -eu
cd "$(dirname "$0")/.."
build=${1:-build}
sample=docs/samples/starved-h200

if ! "$build/whyidle" doctor > "$build/demo.doctor.txt" 2>&1; then
	echo "BPF cannot be used here ('$build/whyidle doctor' says why): no recording is possible."
	echo "This explains a session that ships with the project, recorded on a real GPU: $sample.whyidle"
	echo "(docs/samples/README.md), over the part that the recorded program itself measured."
	echo
	cp "$sample.truth.json" "$build/demo.truth.json"
	cp "$sample.whyidle" "$build/demo.whyidle"
	window=$(python3 -c 'import json, sys; t = json.load(open(sys.argv[1])); print(t["start_ns"], t["end_ns"], sep="..")' \
		"$sample.truth.json")
	"$build/whyidle" report --json --window "$window" "$sample.whyidle" > "$build/demo.json"
	exec "$build/whyidle" report --window "$window" "$sample.whyidle"
fi

echo "Recording 5 seconds of a starved training loop on a simulated GPU (no GPU is needed or used) …"
"$build/whyidle" record --quiet --no-report -o "$build/demo.whyidle" -- \
	"$build/sim/loader_starved" --seconds 5 --truth "$build/demo.truth.json"
"$build/whyidle" report --json "$build/demo.whyidle" > "$build/demo.json"
echo
"$build/whyidle" report "$build/demo.whyidle"
echo
echo "Session: $build/demo.whyidle   JSON: $build/demo.json   the workload's own account: $build/demo.truth.json"
