#!/bin/sh
# After the package of @UNIT@ was installed. A new server is not started: it has to be told where it belongs first. One that
# runs, or that starts with the machine, gets the new program.
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload || true
if systemctl --quiet is-enabled @UNIT@; then
	systemctl --no-block restart @UNIT@ || true
else
	systemctl --no-block try-restart @UNIT@ || true
fi
