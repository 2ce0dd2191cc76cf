package server

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

const (
	// notifyInterval is how often the service manager gets the server's state, unless its watchdog needs it more often.
	notifyInterval = 10 * time.Second
	// readyInterval is how often a server that is not ready checks again.
	readyInterval = 100 * time.Millisecond
	// maxStatus bounds a line of status, in bytes; systemctl shows one line.
	maxStatus = 512
)

// Notify reports the server's state to systemd, by the socket in NOTIFY_SOCKET, until ctx ends: READY once every
// readiness check has passed, then the state of the checks as the status line, and STOPPING at the end. With
// WatchdogSec in the unit, which is WATCHDOG_USEC here, it sends WATCHDOG every third of that time while the
// diagnostics port, which is served on a, answers /livez: a server that hangs is restarted, one that is not ready is
// left alone. Without NOTIFY_SOCKET it returns nil at once. It logs a socket that does not respond.
func (d *Diagnostics) Notify(ctx context.Context, a net.Addr, log *slog.Logger) error {
	n := &notifier{log: log}
	if !n.send("STATUS=starting") {
		return nil
	}
	watchdog, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("cannot serve the service manager's watchdog", "error", err)
	}
	ready := time.NewTicker(readyInterval)
	defer ready.Stop()
	for err := d.notReady(); err != nil; err = d.notReady() {
		n.send("STATUS=" + statusLine(err))
		select {
		case <-ctx.Done():
			n.send(daemon.SdNotifyStopping)
			return nil
		case <-ready.C:
		}
	}
	n.send(daemon.SdNotifyReady)
	interval := notifyInterval
	if watchdog > 0 {
		interval = min(interval, watchdog/3) // the check may take that long again
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		state := []string{"STATUS=" + statusLine(d.notReady())}
		if watchdog > 0 && alive(ctx, a, interval) {
			state = append(state, daemon.SdNotifyWatchdog)
		}
		n.send(strings.Join(state, "\n"))
		select {
		case <-ctx.Done():
			n.send(daemon.SdNotifyStopping)
			return nil
		case <-tick.C:
		}
	}
}

// notifier sends states. It logs only the first of consecutive failures.
type notifier struct {
	log    *slog.Logger
	failed bool
}

// send reports whether there is a service manager: NOTIFY_SOCKET is set.
func (n *notifier) send(state string) bool {
	there, err := daemon.SdNotify(false, state)
	if err != nil && !n.failed {
		n.log.Warn("cannot notify the service manager: NOTIFY_SOCKET does not answer", "error", err)
	}
	n.failed = err != nil
	return there || err != nil
}

// statusLine returns the status line for a state of the readiness checks.
func statusLine(err error) string {
	if err == nil {
		return "ready"
	}
	line := "not ready: " + strings.ReplaceAll(err.Error(), "\n", "; ")
	return line[:min(len(line), maxStatus)]
}
