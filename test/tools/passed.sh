#!/usr/bin/env bash
# Usage: passed.sh FOLDER COMMAND...
# Runs the command that tests the page with the programs in FOLDER, unless it has passed with all that it depends on as it is
# now: the programs, which have the page in them; every file of the repository but documents and Go sources, which the
# programs are made of; Envoy, Chromium and Node. A run in which a test had to run again is not kept.
# CI_NO_CACHE=1 runs it in any case.
set -euo pipefail
cd "$(dirname "$0")/../.."
programs=$1
shift

# inputs fails where it cannot say all.
inputs() {
	git ls-files --cached --others --exclude-standard -z -- . ':!*.go' ':!*.md' ':!/docs' ':!/site' ':!/deploy' |
		{ xargs -0 sha256sum 2>&1 || true; } && # a file that is gone is a line, too
		sha256sum "$programs"/* "$ENVOY" && "$CHROMIUM" --version && node --version
}
all=$(inputs) || exec "$@" # outside a repository of git, they run each time
key=$(sha256sum <<<"$all" | cut -c1-32)
kept=.run/tests/browser
mkdir -p "$kept"
if [ -z "${CI_NO_CACHE:-}" ] && [ -e "$kept/$key" ]; then
	cat "$kept/$key"
	echo "  (cached: nothing that the tests of the page depend on has changed; CI_NO_CACHE=1 runs them; key $key)"
	exit
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$@" 2>&1 | tee "$log"
counted=$(sed 's/\x1b\[[0-9;]*m//g' "$log" | grep -E '^ +[0-9]+ (passed|flaky|skipped|did not run)' || true)
# What changed meanwhile may not be what ran.
if [[ $counted =~ passed ]] && ! [[ $counted =~ flaky|skipped|did ]] && [ "$(inputs)" = "$all" ]; then
	echo "$counted" >"$kept/$key"
	(cd "$kept" && find . -type f -printf '%T@ %p\n' | sort -rn | tail -n +31 | cut -d' ' -f2 | xargs -r rm --) # as many as may come back
fi
