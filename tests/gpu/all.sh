#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Runs the tests that need a real GPU within a time budget, and packs what they leave.
#
#   tests/gpu/all.sh [--budget SECONDS] [--workloads DIR] [--whyidle FILE] STEP…
#
# STEP is NAME, NAME@SECONDS (a budget of its own) or NAME:ARGUMENTS, with NAME one of workloads, names, cost, busy,
# tables, taken, capture, inferred, attach, daemon, within (the daemon within one run), ranks, ddp (two GPUs), or run, whose arguments are a whole command:
#   tests/gpu/all.sh --budget 560 'workloads@200:--keep a1' 'cost@300:--programs a5 --pairs 5' busy taken \
#       'run@60:python3 tests/gpu/bridge_cost.py --rounds 3'
# Without a STEP: workloads, names, cost, busy, tables and taken. Tables come last on stdout. Everything is left in
# build/gpu; logs, tables and sessions also go, packed into at most 7 files of less than 16 MiB, to $OUT
# (build/gpu/out if unset), anew after each step.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
budget=560 workloads='' whyidle=$root/build/whyidle
while [[ ${1:-} == --* ]]; do
	case $1 in
	--budget) budget=$2 ;;
	--workloads) workloads=$(cd "$2" && pwd) || exit 2 ;;
	--whyidle) whyidle=$(realpath "$2") ;;
	*) echo "$0: unknown option $1: see the head of this file" >&2; exit 2 ;;
	esac
	shift 2 || exit 2
done
[[ $# -gt 0 ]] || set -- workloads names cost busy tables taken

SECONDS=0
grace=45           # a step that is told to end gets this long to end its programs and print what it has
reserve=20         # for packing
most=$((15 << 20)) # bytes of a packed file
work=$root/build/gpu
out=${OUT:-$work/out}
python=${PYTHON:-python3}
export PYTHONUNBUFFERED=1
rm -rf "$work"
mkdir -p "$work" "$out"
cd "$root" || exit 1

deliver() {
	(cd "$work" && find . -type f -size -4096k ! -path './out/*' ! -name '*.whyidle' ! -name 'kept-*' ! -name trace.json \
		-print0 | tar czf "$out/logs.tar.gz" --null -T -)
	find "$work" -maxdepth 2 -name 'kept-*.tar.gz' -size -$((most / 1024))k | sort | head -2 | xargs -r -d '\n' cp -t "$out"
	rm -f "$out"/sessions-*.tar
	find "$work" -path '*/sessions/*.whyidle' -print0 | sort -z |
		xargs -r -0 "$python" tests/gpu/pack.py "$out/sessions" 3 "$most"
}

# Before anything is measured: what machine this is, and torch read from disk once.
{
	echo "commit: $(git rev-parse --short HEAD 2>/dev/null || echo unknown)"
	timeout 120 "$python" -c 'import torch; print("cuda available:", torch.cuda.is_available(), float(torch.ones(1, device="cuda")))'
	timeout 60 "$python" tests/gpu/harness.py
	timeout 30 "$whyidle" --version
	timeout 60 "$whyidle" doctor
} >"$work/machine.txt" 2>&1
cat "$work/machine.txt"

names=()
failed=0
for step in "$@"; do
	arguments=()
	[[ $step == *:* ]] && eval "arguments=(${step#*:})" # so that arguments can be quoted
	name=${step%%:*} limit=$((budget - SECONDS - reserve - grace))
	if [[ $name == *@* ]]; then
		own=${name#*@} name=${name%@*}
		((own < limit)) && limit=$own
	fi
	script=
	case $name in
	capture) script=capture.py ;;
	workloads | names | cost | inferred | attach | daemon | within)
		script=${name/%daemon/daemon_cost} && script=${script/%within/daemon_within}.py && [[ -n $workloads ]] && arguments=(--workloads "$workloads" "${arguments[@]}")
		;;
	busy) script=busy_agreement.py ;;
	tables) script=tables.py ;;
	taken) script=cupti_taken.py ;;
	ranks) script=ranks.py ;;
	ddp) script=ranks.py && arguments=(--ddp "${arguments[@]}") ;;
	run) ;;
	*) echo "$0: unknown step $name" >&2 && failed=1 && continue ;;
	esac
	label=$name
	for ((n = 2; ; n++)); do
		[[ " ${names[*]} " == *" $label "* ]] || break
		label=$name-$n
	done
	name=$label
	names+=("$name")
	if ((limit < 30)); then
		echo "== $name: skipped, ${limit} s are too little" | tee "$work/$name.log"
		failed=1
		continue
	fi
	echo "== $name: at most $limit s, at $SECONDS s of $budget"
	[[ -z $script ]] || arguments=("$python" "tests/gpu/$script" --whyidle "$whyidle" --out "$work/$name" \
		--budget $((limit - 20)) --markdown "$work/$name.md" "${arguments[@]}")
	timeout -k "$grace" "$limit" "${arguments[@]}" >"$work/$name.log" 2>&1 </dev/null
	status=$?
	echo "== $name: exit $status, at $SECONDS s"
	((status == 0)) || failed=1
	deliver
done

# The tables, last and short enough to be read in one piece.
{
	head -5 "$work/machine.txt"
	for name in "${names[@]}"; do
		if [[ -s $work/$name.md ]]; then
			head -c 4500 "$work/$name.md"
		else
			echo "== $name: last lines"
			tail -n 20 "$work/$name.log" | cut -c 1-300
		fi
		echo
	done
} >"$work/tables.md"
cp "$work/tables.md" "$out/tables.md"
deliver
head -c 11500 "$work/tables.md"
exit $failed
