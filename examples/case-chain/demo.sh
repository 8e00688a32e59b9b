#!/bin/sh
# Runs the example with the best carried and with the last carried, and replays a recorded chain where there is one.
# BIN is the directory of the jumar command (default: from PATH), RECORDED that of the recording, OUT where the reports go.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
jumar=${BIN:+$BIN/}jumar
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
out=${OUT:-$PWD}
mkdir -p "$out"
cp -R "$here/." "$work"
cd "$work"

chain() { # where the run lies is of no interest: it is removed at the end
    "$jumar" cases run cases.toml --output-root runs "$@" | sed -e '/^run  /d' -e '/^report  /d'
}

echo "== Five incidents, one after the other: the best graph of each is carried into the next"
chain --run-id best
echo
echo "== The same, but the last graph is carried, as loops usually do"
chain --run-id last --no-select-best
echo
for run in best last; do
    "$jumar" cases replay "runs/run_$run" --json >"$run.json"
    "$jumar" cases report "runs/run_$run" --format html -o "$out/cases-$run.html" >/dev/null
done
python3 steps/compare.py best.json last.json

echo
if [ -n "${RECORDED:-}" ] && [ -d "$RECORDED" ]; then
    echo "== A real recording: its last iterations were carried; what would have been selected"
    "$jumar" cases replay "$RECORDED"
    "$jumar" cases report "$RECORDED" --format html -o "$out/cases-recorded.html" >/dev/null
else
    echo "== No recording at ${RECORDED:-RECORDED}: set JUMAR_DATA to replay one"
fi
echo
echo "reports:"
ls "$out"/cases-best.html "$out"/cases-last.html
[ ! -f "$out/cases-recorded.html" ] || ls "$out/cases-recorded.html"
