#!/usr/bin/env bash
# Installs the Debian packages that a node of Kubernetes and the pods of its tests need, when they are missing.
exec "$(dirname "$0")/../packages.sh" runc containernetworking-plugins iptables nftables iproute2 util-linux procps \
	mariadb-server-core mariadb-client-core
