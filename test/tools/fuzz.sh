#!/usr/bin/env bash
# Runs every fuzz target of the packages, one after another, each for the given time. What a target finds is a file below
# testdata/fuzz of its package, which plain `go test` runs from then on: mend it, and commit the file.
# What is only interesting is hardly made smaller: sessions are not the same twice, so that would take all of the time.
# usage: fuzz.sh TIME [PACKAGE...]    e.g. fuzz.sh 10m ./kds ; PARALLEL=n workers (as many as processors by default)
set -euo pipefail

time=$1
shift
go=${GO:-go}
parallel=${PARALLEL:-$(nproc)}

# go test -list prints the names of a package's targets, and then a line that names the package.
targets=$("$go" test -list '^Fuzz' "${@:-./...}" | awk '/^Fuzz/ { names[++n] = $1 } /^ok/ { for (i = 1; i <= n; i++) print $2, names[i]; n = 0 }')
[ -n "$targets" ] || { echo "no fuzz targets in ${*:-./...}" >&2; exit 1; }

failed=()
while read -r package name; do
	echo "== $name in $package for $time"
	"$go" test -run '^$' -fuzz "^$name\$" -fuzztime "$time" -fuzzminimizetime 10x -parallel "$parallel" "$package" </dev/null || failed+=("$package $name")
done <<<"$targets"

if [ ${#failed[@]} -gt 0 ]; then
	printf 'found something: %s\n' "${failed[@]}" >&2
	exit 1
fi
