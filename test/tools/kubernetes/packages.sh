#!/usr/bin/env bash
# Installs the Debian packages that a node of Kubernetes needs, when they are missing.
exec "$(dirname "$0")/../packages.sh" runc containernetworking-plugins iptables nftables iproute2 util-linux procps
