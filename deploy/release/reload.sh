#!/bin/sh
# After a unit came or went. The server is not started: it has to be told where it belongs first.
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi
