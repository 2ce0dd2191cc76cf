#!/usr/bin/env bash
# Builds the images of deploy/containers with podman and runs the Compose file. Images that it cannot pull stand in as scenery: Go,
# Envoy and Python of this machine, each in an image of its own. It runs as root, and needs podman, netavark, aardvark-dns, catatonit,
# busybox-static and Python with pip. CONTAINERS_CONF is podman's own variable, for machines that need it.
set -euo pipefail
cd "$(dirname "$0")/../.."
envoy=$(realpath "$ENVOY")
work=$(mktemp -d)
declare -A identity
say() { printf '%4ds %s\n' "$SECONDS" "$1"; }
compose() {
	PYTHONPATH="$PODMAN_COMPOSE" "$PYTHON" "$PODMAN_COMPOSE/podman_compose.py" --podman-path "$work/podman" --in-pod 0 \
		-f deploy/containers/compose.yaml "$@"
}
ctl() { podman exec "causeway_$1_1" /usr/bin/causewayctl "${@:2}"; }
# until WHAT WORDS COMMAND...: run the command until its output has the words.
until_says() {
	local what=$1 words=$2 said
	shift 2
	for _ in $(seq 120); do
		if said=$("$@" 2>&1) && grep -qE "$words" <<<"$said"; then
			say "$what"
			return
		fi
		sleep 1
	done
	printf 'in two minutes not: %s\n%s\n' "$what" "$said" >&2
	podman ps -a --format '{{.Names}} {{.Status}}' >&2
	exit 1
}
finish() {
	compose down --volumes -t 0 >/dev/null 2>&1 || true
	rm -rf "$work"
}
trap finish EXIT

# In a container that may not raise its own limits, and without systemd, podman needs to be told.
if [ -z "${CONTAINERS_CONF:-}" ] && ! (ulimit -Hn 1048576) 2>/dev/null; then
	export CONTAINERS_CONF=$work/containers.conf
	printf '[containers]\ndefault_ulimits = ["nofile=%s:%s", "nproc=1024:1024"]\n' "$(ulimit -Sn)" "$(ulimit -Hn)" >"$CONTAINERS_CONF"
	printf '[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n[network]\nnetwork_backend = "netavark"\n' \
		>>"$CONTAINERS_CONF"
fi

# podman before 4.6 cannot wait for a health check, needs systemd to make one, and does not start what requires something that requires
# something else. This one is asked by podman-compose instead.
cat >"$work/podman" <<'END'
#!/usr/bin/env bash
args=()
for arg; do [[ $arg == --requires=* ]] || args+=("$arg"); done
case "$*" in
--version) echo podman version 4.6.0 ;;
"wait --condition=healthy "*) for one in "${@:3}"; do until podman healthcheck run "$one" >/dev/null 2>&1; do sleep 1; done; done ;;
*) exec podman "${args[@]}" ;;
esac
END
chmod +x "$work/podman"

# stand_in NAME FILE...: an image with busybox, the files, and the libraries that they need.
stand_in() {
	local root=$work/root
	rm -rf "$root" && mkdir -p "$root/bin" "$root/tmp" "$root/etc/ssl/certs" "$root/usr"
	ln -s ../bin "$root/usr/bin"
	cp /bin/busybox "$root/bin/busybox"
	for applet in sh mkdir sleep; do ln -s busybox "$root/bin/$applet"; done
	cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
	for file in "${@:2}"; do
		mkdir -p "$root$(dirname "${file#*:}")"
		cp -rL "${file%%:*}" "$root${file#*:}"
	done
	while read -r library; do
		mkdir -p "$root$(dirname "$library")" && cp -L "$library" "$root$library"
	done < <(find "$root" -type f \( -perm -u+x -o -name '*.so*' \) -exec ldd {} + 2>/dev/null |
		grep -oE '(=> |^\s+)/[^ ]+' | grep -oE '/.*' | sort -u)
	tar -C "$root" -c . | podman import -q -c 'ENV PATH=/bin' -c 'ENV GOMODCACHE=/modules' -c 'ENV GOCACHE=/cache' \
		-c 'ENV GOPROXY=off' - "$1" >/dev/null
}
python=$(/usr/bin/python3 -c 'import sys, sysconfig; print(sys.executable, sysconfig.get_path("stdlib"))')
read -r interpreter library <<<"$python"
stand_in docker.io/library/python:3-alpine "$(realpath "$interpreter"):/bin/python3" "$library:$library"
stand_in docker.io/envoyproxy/envoy:v1.40.0 "$envoy:/usr/local/bin/envoy"
# Modules are those of this machine: what the build does not need is not there.
printf '#!/bin/sh\n[ "$1 $2" = "mod download" ] || exec /usr/local/go/bin/go "$@"\n' >"$work/go" && chmod +x "$work/go"
stand_in docker.io/library/golang:1.26-bookworm "$work/go:/bin/go"
say 'the images that are pulled elsewhere have stand-ins'

read -r goroot modules cache <<<"$("${GO:-go}" env GOROOT GOMODCACHE GOCACHE | tr '\n' ' ')"
for target in causeway-global causeway-zone; do
	podman build -q --format docker --pull=never -f deploy/containers/Containerfile --target "$target" -t "$target" --network none \
		-v "$goroot:/usr/local/go:ro" -v "$modules:/modules:ro" -v "$cache:/cache" --build-arg VERSION=v9.8.7 . >/dev/null
	said=$(podman image inspect "$target" --format '{{.Architecture}} {{.User}} {{.Config.Entrypoint}} {{.HealthCheck}}{{.Config.Healthcheck}}')
	[[ $said == "$("${GO:-go}" env GOARCH) 65532:65532 [/usr/bin/$target]"*"/usr/bin/$target healthcheck"* ]] || { echo "$target: $said" >&2; exit 1; }
	said=$(podman run --rm --read-only --network none "$target" version)
	[[ $said == *v9.8.7* ]] || { echo "$target has another version: $said" >&2; exit 1; }
done
say 'both images are built, say their version with a read-only root, and have their health checks'

compose up -d --no-build >"$work/up" 2>&1 || { cat "$work/up" >&2; exit 1; }
zones() { ctl global get zones | tr '\n' ' '; }
until_says 'both zones are online' 'zone-1 +online.*zone-2 +online' zones
for n in 1 2; do until_says "zone-$n has its Envoy" 'online' ctl "zone-$n" get dataplanes; done
until_says 'the policy is enforced everywhere' 'enforced by 2 of 2' ctl global rollout status kri_mtp_default___allow-frontend_

# Requests pass both Envoys: the policy allows the frontend of zone-1, in both zones, and nobody else.
for n in 1 2; do
	ctl "zone-$n" svid frontend --out-dir /run/causeway/frontend >/dev/null
	identity[$n]=$(podman volume inspect "causeway_share-$n" --format '{{.Mountpoint}}')/frontend
done
# request ZONE IDENTITY: the status of a request to the backend of a zone, with the identity of a zone's frontend.
request() {
	nsenter --net="/proc/$(podman inspect --format '{{.State.Pid}}' "causeway_zone-$1_1")/ns/net" /usr/bin/python3 - "${identity[$2]}" <<'END'
import http.client, ssl, sys
context = ssl._create_unverified_context()  # its certificate names a SPIFFE ID, and no host
context.load_cert_chain(sys.argv[1] + "/svid.pem", sys.argv[1] + "/svid_key.pem")
call = http.client.HTTPSConnection("127.0.0.1", 8080, context=context, timeout=5)
call.request("GET", "/allow-frontend.yaml")
answer = call.getresponse()
print(answer.status, answer.read().decode()[:30])
END
}
for n in 1 2; do
	until_says "the Envoy of zone-$n lets the frontend of zone-1 in" '^200 type: MeshTrafficPermission' request "$n" 1
	until_says "the Envoy of zone-$n denies the frontend of zone-2" '^403 RBAC: access denied' request "$n" 2
done

# What restarts finds the others: they share the network of a machine that does not.
network() { podman inspect --format '{{.State.Pid}}' "causeway_$1_1" | xargs -I{} readlink /proc/{}/ns/net; }
before=$(network zone-1)
podman restart -t 5 causeway_zone-1_1 >/dev/null
for one in zone-1 envoy-1 backend-1; do
	[[ $(network "$one") == "$before" ]] || { echo "$one is in another network after a restart of its zone" >&2; exit 1; }
done
until_says 'after a restart of its zone, the Envoy is connected' 'online' ctl zone-1 get dataplanes
until_says 'and the zone is online' 'zone-1 +online' zones
until_says 'and its Envoy lets the frontend in' '^200 ' request 1 1
until_says 'and denies others' '^403 ' request 1 2
