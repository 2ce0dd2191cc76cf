#!/usr/bin/env bash
# Fails when the Go code of the protobuf messages and services is not what their sources generate.
#
#   generated.sh BUF
set -euo pipefail

buf=$1
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT

"$buf" generate -o "$fresh"
stale=0
while IFS= read -r file; do
	if ! diff -q "$fresh/$file" "$file" >/dev/null 2>&1; then
		echo "$file is not what its .proto generates: run make generate"
		stale=1
	fi
done < <(cd "$fresh" && find . -name '*.pb.go' | sed 's|^\./||')
while IFS= read -r file; do
	if [ ! -e "$fresh/$file" ]; then
		echo "$file has no .proto any more: remove it"
		stale=1
	fi
done < <(git ls-files '*.pb.go')
exit "$stale"
