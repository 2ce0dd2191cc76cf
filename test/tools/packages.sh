#!/usr/bin/env bash
# packages.sh PACKAGE...: installs Debian packages that are missing. As root; elsewhere, and on other systems, it says what is missing.
set -euo pipefail

missing=()
for package; do
	dpkg -s "$package" >/dev/null 2>&1 || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0
if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
	echo "this needs root and, of Debian, the packages ${missing[*]}" >&2
	exit 1
fi
apt-get -qq update
DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends "${missing[@]}" >/dev/null
