#!/usr/bin/env bash
# Fails when a comment, or a text that a user reads, has a phrase that english.txt lists, and says what to write instead.
set -euo pipefail
cd "$(dirname "$0")/../.."

found=0
while IFS=$'\t' read -r pattern better where; do
	case $pattern in '' | '#'*) continue ;; esac
	before='//.*' files=('*.go')
	[ "$where" != text ] || before='"([^"\\]|\\.)*' files=('*.go' ':!*_test.go' ':!test')
	matches=$(git grep -nE "$before$pattern" -- "${files[@]}" || true)
	if [ -n "$matches" ]; then
		echo "$matches"
		echo "^ write instead: $better (CONTRIBUTING.md, \"How text is written\")" >&2
		found=1
	fi
done <test/tools/english.txt
exit "$found"
