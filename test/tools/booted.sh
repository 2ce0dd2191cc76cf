#!/usr/bin/env bash
# Boots a fresh Debian with systemd as process 1, in namespaces, installs the packages in it, and checks what their scripts and units
# do: hardening, credentials, the watchdog, a killed server, removal and reinstallation. It runs as root, and needs debootstrap, dpkg,
# rpm and a network. BOOTED_ROOT=DIR keeps the system for the next run. The first argument is a folder with the packages.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [ "${1:-}" = inside ]; then
	root=$2
	mount --make-rprivate /
	mount --bind "$root" "$root"
	mount -t proc proc "$root/proc"
	mount -t sysfs sysfs "$root/sys"
	mount -t tmpfs -o mode=755 tmpfs "$root/sys/fs/cgroup"
	if [ -d /sys/fs/cgroup/systemd ]; then
		mkdir "$root/sys/fs/cgroup/systemd" "$root/sys/fs/cgroup/unified"
		mount -t cgroup -o none,name=systemd cgroup "$root/sys/fs/cgroup/systemd"
		mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup/unified"
	else
		mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
	fi
	for folder in run tmp dev; do mount -t tmpfs -o mode=755 tmpfs "$root/$folder"; done
	chmod 1777 "$root/tmp"
	for device in null zero full random urandom tty; do
		touch "$root/dev/$device" && mount --bind "/dev/$device" "$root/dev/$device"
	done
	mkdir "$root/dev/pts" "$root/dev/shm"
	mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts" && ln -s pts/ptmx "$root/dev/ptmx"
	mount -t tmpfs tmpfs "$root/dev/shm"
	ip link set lo up
	cd "$root"
	pivot_root . mnt && umount -l /mnt
	mount --make-rshared / # credentials come to a service by a mount that systemd makes elsewhere
	exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --log-target=null --show-status=no
fi

packages=$(realpath "$1")
work=$(mktemp -d)
root=${BOOTED_ROOT:-$work/root}
[ -x "$root/lib/systemd/systemd" ] || debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus bookworm "$root"
arch=$(dpkg --print-architecture)
machine=
finish() {
	[ -z "$machine" ] || kill -9 "$machine" 2>/dev/null || true
	wait 2>/dev/null || true
	for tree in systemd unified .; do rmdir "/sys/fs/cgroup/$tree/causeway-booted" 2>/dev/null || true; done
	rm -rf --one-file-system "$work"
}
trap finish EXIT
say() { printf '%4ds ok: %s\n' "$SECONDS" "$1"; }
failed() {
	echo "FAILED: $1" >&2
	in_it journalctl --no-pager -n 30 -u 'causeway-*' >&2 || true
	exit 1
}
in_it() { nsenter -t "$machine" -a /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"; }
is() { [ "$(in_it systemctl show -p "$2" --value "$1")" = "$3" ]; }
# eventually WHAT COMMAND...: a minute for the command to succeed.
eventually() {
	for _ in $(seq 60); do
		if "${@:2}" >/dev/null 2>&1; then
			say "$1"
			return
		fi
		sleep 1
	done
	failed "$1"
}
online() { in_it causewayctl get zones | grep -q 'zone-1 *online'; }

# An rpm has the same files as the deb, and says itself that it is whole.
for program in causeway-global causeway-zone causewayctl; do
	rpm=$(echo "$packages/${program}"_*_"$arch.rpm") deb=$(echo "$packages/${program}"_*_"$arch.deb")
	rpm -K --nosignature "$rpm" >/dev/null || failed "$rpm is damaged"
	diff <(rpm -qpl "$rpm" 2>/dev/null | sort) \
		<(dpkg-deb -c "$deb" | awk '$1 !~ /^d/ {sub(/^\./, "", $6); print $6}' | sort) || failed "$rpm and $deb have different files"
	cp "$deb" "$root/srv/$program.deb"
done
rpm -qp --scripts "$packages"/causeway-zone_*_"$arch.rpm" 2>/dev/null | grep -q 'systemctl stop causeway-zone' || failed 'the rpm does not stop its server'
say 'rpms are whole, and have the files of the debs'

rm -rf --one-file-system "$root"/var/lib/private/causeway-* "$root"/etc/credstore "$root"/etc/systemd/system/multi-user.target.wants/causeway-*
for tree in systemd unified .; do
	folder=/sys/fs/cgroup/$tree/causeway-booted
	[ ! -e "/sys/fs/cgroup/$tree/cgroup.procs" ] || { mkdir -p "$folder" && echo "$BASHPID" >"$folder/cgroup.procs"; }
done
unshare --mount --pid --net --uts --ipc --cgroup --fork "$0" inside "$root" 2>/dev/null &
for _ in $(seq 60); do
	machine=$(pgrep -P "$!" || true)
	[ -z "$machine" ] || [ "$(cat "/proc/$machine/comm")" != systemd ] || break
	sleep 1
done
for tree in systemd unified .; do # leave the machine's own group, so that it can be removed
	[ ! -e "/sys/fs/cgroup/$tree/cgroup.procs" ] || echo $$ >"/sys/fs/cgroup/$tree/cgroup.procs"
done
eventually 'systemd runs' in_it systemctl is-system-running
in_it dpkg --purge causeway-global causeway-zone >/dev/null 2>&1 || true
in_it dpkg -i /srv/causewayctl.deb /srv/causeway-global.deb >/dev/null
echo CAUSEWAY_KDS_ADVERTISE_ADDRESS=127.0.0.1:5685 >"$root/etc/causeway/global.env"
printf '%s\n' CAUSEWAY_API_ADDRESS=127.0.0.1:6681 CAUSEWAY_DIAGNOSTICS_ADDRESS=127.0.0.1:6680 >"$root/etc/causeway/zone.env"
is causeway-global ActiveState inactive || failed 'a new package starts its server'
in_it systemctl enable --now causeway-global 2>/dev/null
is causeway-global StatusText ready || failed 'the global is not ready'
say 'a new package does not start its server; enable --now starts it with the whole hardening, until it is ready'

in_it causewayctl zone create zone-1 --out /srv/zone-1.join 2>/dev/null
in_it install -d -m 0700 /etc/credstore
in_it install -m 0600 /srv/zone-1.join /etc/credstore/causeway-zone.join
in_it dpkg -i /srv/causeway-zone.deb >/dev/null
in_it systemctl enable --now causeway-zone 2>/dev/null
eventually 'the zone joins with the credential of its unit' online

in_it systemctl kill -s KILL causeway-zone
eventually 'a killed server runs again' is causeway-zone NRestarts 1
eventually 'and is online' online
in_it systemctl kill -s STOP causeway-zone
for _ in $(seq 6); do is causeway-zone NRestarts 2 || sleep 10; done
eventually 'a server that hangs is restarted by the watchdog' is causeway-zone NRestarts 2
eventually 'and is online again' online

in_it dpkg -r causeway-zone >/dev/null
is causeway-zone ActiveState inactive || failed 'a removed package leaves its server running'
in_it dpkg -i /srv/causeway-zone.deb >/dev/null
eventually 'removal stops the server, and reinstallation starts it' online
before=$(in_it systemctl show -p MainPID --value causeway-zone)
in_it dpkg -i /srv/causeway-zone.deb >/dev/null
restarted() { [ "$(in_it systemctl show -p MainPID --value causeway-zone)" != "$before" ] && is causeway-zone StatusText ready; }
eventually 'an upgrade restarts it' restarted
