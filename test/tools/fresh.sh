#!/usr/bin/env bash
# Builds and tries what the README shows, in a fresh Debian that has what the README lists and nothing else: Go, a C compiler,
# Python with pip, make, curl. It runs as root, in namespaces of its own, and needs debootstrap, git and a network. FRESH_ROOT=DIR keeps
# the system for the next run.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [ "${1:-}" != inside ]; then
	root=${FRESH_ROOT:-$(mktemp -d)}
	[ -n "${FRESH_ROOT:-}" ] || trap 'rm -rf --one-file-system "$root"' EXIT
	[ -x "$root/usr/bin/make" ] || debootstrap --variant=minbase --include=ca-certificates,curl,gcc,iproute2,libc6-dev,make,python3,python3-pip \
		bookworm "$root"
	rm -rf "$root/src" && mkdir -p "$root/src" "$root/usr/local/go" "$root/root/go/pkg/mod" "$root/root/.cache/go-build"
	git archive HEAD | tar x -C "$root/src"
	cat /etc/ssl/certs/ca-certificates.crt >"$root/etc/ssl/certs/ca-certificates.crt"
	cat /etc/resolv.conf >"$root/etc/resolv.conf"
	unshare --mount --pid --fork "$0" inside "$root" 'make build tools-envoy'
	unshare --mount --net --pid --fork "$0" inside "$root" "ip link set lo up && make demo ONCE=1 && go test -count=1 ./test/e2e -run 'TestREADME\$'"
	exit
fi

root=$2
mount --make-rprivate /
go=$("${GO:-go}" env GOROOT GOMODCACHE GOCACHE)
{ read -r goroot && read -r modules && read -r cache; } <<<"$go"
mount --bind "$goroot" "$root/usr/local/go"
mount --bind "$modules" "$root/root/go/pkg/mod"
mount --bind "$cache" "$root/root/.cache/go-build"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
exec chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
	SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt PIP_CERT=/etc/ssl/certs/ca-certificates.crt \
	NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt GOFLAGS=-trimpath CGO_ENABLED=0 bash -euc "cd /src && $3"
