package main

import (
	"fmt"

	"github.com/causeway-mesh/causeway/kds/tracker"
)

// advice says what to do about an incomplete rollout, one line per thing that it waits for.
func (s *rolloutStatus) advice() []string {
	var out []string
	if len(s.Zones.Refused) > 0 {
		out = append(out, "change or delete it where it was written: it is offered again when it changes")
	}
	if away := textsOf(s.Zones.Offline, func(z tracker.RolloutOffline) string { return z.Zone }); len(away) > 0 {
		out = append(out, fmt.Sprintf("%s: %s; it catches up by itself once it is connected", firstOf(away, 3), s.awayAdvice()))
	}
	if len(s.Zones.Pending) > 0 {
		out = append(out, fmt.Sprintf("%s: %s", firstOf(s.Zones.Pending, 3), s.pendingAdvice()))
	}
	if len(s.Proxies.Behind) > 0 {
		p := &s.Proxies.Behind[0]
		command := "causewayctl doctor"
		if p.Zone != "" && s.Zone == "" {
			command += ", asked of " + p.Zone + ","
		}
		out = append(out, command+" says why a proxy does not take it; the proxy's own log has the details; one that hangs has to be restarted")
	}
	if s.selectsNothing() && s.Stored {
		out = append(out, "if it should select proxies, compare its targetRef with what causewayctl get dataplanes -o wide shows")
	}
	return out
}

// awayAdvice is for zones, or the global, that are not connected.
func (s *rolloutStatus) awayAdvice() string {
	if s.Zone != "" {
		return "see this zone's log for why it does not reach its global"
	}
	return "check on the zone's machine that causeway-zone runs and reaches the global's KDS port, and see its log"
}

// pendingAdvice is for zones, or the global, that are connected but have not acknowledged it.
func (s *rolloutStatus) pendingAdvice() string {
	if s.Zone != "" {
		return "causewayctl inspect sync shows how far the global is behind"
	}
	return "connected, and it has not acknowledged it: if that lasts, its server hangs or is overloaded: look at its machine and its log; causewayctl inspect sync --zone NAME shows how far it is behind"
}
