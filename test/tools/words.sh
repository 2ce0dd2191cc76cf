#!/usr/bin/env bash
# Fails when a file of the repository holds what must not be published in it: paths of somebody's machine, numbers of
# a tracker that readers do not have, addresses of package registries (the tools' own configuration says those).
# Each dot is in brackets so that this file does not match itself.
set -euo pipefail

patterns=(
	'(^|[^[:alnum:]._/-])/(work|root|home)/[a-z]'
	'/tmp/(brief|bash_jobs)'
	'\b[Ii]ssues? #?[0-9]+\b'
	'\bpypi[.]org|pythonhosted[.]org|npmjs[.]org|(proxy|sum)[.]golang[.]org|goproxy[.]io|crates[.]io'
)

found=0
for pattern in "${patterns[@]}"; do
	# -I: not binary files. go.sum and the licence are others' words. xargs fails where one of its greps finds nothing, so
	# what counts is the output.
	matches=$(git ls-files -co --exclude-standard -z -- ':!go.sum' ':!LICENSE' ':!test/tools/words.sh' |
		xargs -0 grep -nHIsE -d skip -e "$pattern" -- || true)
	if [ -n "$matches" ]; then
		echo "$matches"
		echo "^ matches $pattern, which must not stand in the repository" >&2
		found=1
	fi
done
exit "$found"
