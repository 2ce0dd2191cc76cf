#!/usr/bin/env bash
# Builds what a node of Kubernetes runs, or some of it, from Go modules, into a folder: build.sh FOLDER [PROGRAM...]. All takes
# about ten minutes on two cores when nothing is cached. Programs that are there in the versions that are wanted are left.
set -euo pipefail

KUBERNETES=1.36.3 # the versions are also in the go.mod files
CONTAINERD=2.3.7
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
wanted=" $* "
here=$(cd "$(dirname "$0")" && pwd)
export CGO_ENABLED=0 GOFLAGS=-trimpath

# Two makes in one checkout may want the same programs: the second waits and then finds them there.
if command -v flock >/dev/null; then
	exec 9>>"$out/.lock" # its time stays: tests look at this folder
	flock 9
fi

# build MODULE PROGRAM PACKAGE VERSION [FLAGS...] builds one program, unless it is there in that version.
build() {
	local module=$1 program=$2 package=$3 version=$4 start=$SECONDS
	shift 4
	[[ $wanted == "  " || $wanted == *" $program "* ]] || return 0
	[ ! -e "$out/.$program-$version" ] || return 0
	echo "building $program"
	"${GO:-go}" -C "$here/$module" build -o "$out/$program" "$@" "$package"
	rm -f "$out/.$program"-*
	touch "$out/.$program-$version"
	echo "built $program in $((SECONDS - start)) s"
}

# content is a sum of the files of a module of ours, wherever the checkout is.
content() { (cd "$here/$1" && sha256sum -- * | sha256sum | cut -c1-12); }

v=k8s.io/component-base/version
minor=${KUBERNETES#1.} minor=${minor%%.*}
flags="-s -w -X $v.gitVersion=v$KUBERNETES -X $v.gitMajor=1 -X $v.gitMinor=$minor -X $v.gitTreeState=clean"
for program in kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl; do
	build k8s $program k8s.io/kubernetes/cmd/$program $KUBERNETES -ldflags "$flags"
done
build k8s etcd go.etcd.io/etcd/server/v3 $KUBERNETES -ldflags '-s -w'
c=github.com/containerd/containerd/v2
flags="-s -w -X $c/version.Version=v$CONTAINERD"
build containerd containerd $c/cmd/containerd $CONTAINERD -tags urfave_cli_no_docs -ldflags "$flags"
build containerd ctr $c/cmd/ctr $CONTAINERD -tags urfave_cli_no_docs -ldflags "$flags"
build containerd containerd-shim-runc-v2 $c/cmd/containerd-shim-runc-v2 $CONTAINERD -tags urfave_cli_no_docs,no_grpc -ldflags "$flags"
build coredns coredns . "$(content coredns)" -ldflags '-s -w'
build pause pause . "$(content pause)" -ldflags '-s -w'
build health health . "$(content health)" -ldflags '-s -w'
for program in "$@"; do
	[ -e "$out/$program" ] || { echo "$program is no program of a node: see $0" >&2 && exit 1; }
done
