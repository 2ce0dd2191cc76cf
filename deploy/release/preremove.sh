#!/bin/sh
# Before the package of @UNIT@ is removed: "remove" says dpkg, 0 says rpm. An upgrade leaves the server running until the new
# program is there.
case "$1" in
remove | 0) [ ! -d /run/systemd/system ] || systemctl stop @UNIT@ || true ;;
esac
