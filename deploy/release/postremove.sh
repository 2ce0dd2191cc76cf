#!/bin/sh
# After the package of @UNIT@ was removed.
[ ! -d /run/systemd/system ] || systemctl daemon-reload || true
