package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/kds/tracker"
)

// ownFindings judges a zone's report of its own session.
func ownFindings(s *syncSession) []finding {
	switch {
	case !s.Connected && s.Started.IsZero() && len(s.Types) == 0:
		return []finding{{Status: findingOK, Check: "sync", About: s.Zone, What: "it runs alone, without a global"}}
	case !s.Connected && s.Since.IsZero() && !s.Started.IsZero():
		return []finding{{
			findingProblem, "sync", s.Zone, "it has not connected to its global since it started" + sinceText(s.Started),
			"the zone continues with what it has; later changes on the global are unknown here",
			"see this zone's log for the reason; on the global: causewayctl doctor",
		}}
	}
	var out []finding
	if !s.Connected {
		what := "not connected to the global"
		if !s.Since.IsZero() {
			what += " since " + s.Since.UTC().Format(time.RFC3339)
		}
		out = append(out, finding{
			findingProblem, "sync", s.Zone, what,
			"the zone continues with what it has; changes from the global do not reach it",
			"see this zone's log for the reason; on the global: causewayctl doctor",
		})
	}
	if out = append(out, sessionFindings(s)...); len(out) == 0 {
		out = append(out, finding{Status: findingOK, Check: "sync", About: s.Zone, What: "connected, " + s.pace()})
	}
	return out
}

// pace describes a session without problems: it is in sync, or a part is still in transit.
func (s *syncSession) pace() string {
	late, behind, mute := 0.0, []string{}, false
	for i := range s.Types {
		if s.Types[i].LagUnknown && !s.Connected {
			return "but its session has just ended"
		}
		mute = mute || s.Types[i].LagUnknown
		if t := &s.Types[i]; t.LagSeconds > 0 || t.LagRevisions > 0 {
			late, behind = max(late, t.LagSeconds), append(behind, string(t.Type))
		}
	}
	switch {
	case len(behind) == 0 && !s.OutdatedSince.IsZero():
		return "and has what this replica has; " + s.outdatedText()
	case len(behind) == 0 && mute:
		return "and lacks nothing; what it has not sent yet is unknown: it does not send its revisions"
	case len(behind) == 0:
		return "in sync"
	}
	return fmt.Sprintf("behind by %s in %s, which is still normal", cmp.Or(lagText(late), "less than 1ms"),
		strings.Join(behind, ", "))
}

// proxiesText reports that the zone has sent no state of its proxies in this session, as a zone of another product
// never does.
func (s *syncSession) proxiesText() string {
	if s.Connected && s.Reported.Before(s.Since) {
		return "; what its proxies have is unknown: it has not reported"
	}
	return ""
}

// sessionFindings judges the lag, refusals and held deletions of one session, from either side.
func sessionFindings(s *syncSession) []finding {
	var out []finding
	late, behind := 0.0, []string{}
	for i := range s.Types {
		t := &s.Types[i]
		if t.LagSeconds >= noticedLag {
			late, behind = max(late, t.LagSeconds), append(behind, string(t.Type))
		}
		if len(t.Refused) > 0 {
			out = append(out, refusalFinding(s.Zone, t))
		}
		if t.Held != nil {
			out = append(out, heldFinding(s.Zone, string(t.Type), t.Held.Count))
		}
	}
	for t, n := range s.HeldByZone {
		f := heldFinding(s.Zone, string(t), n)
		f.Do = fmt.Sprintf("the zone holds it: if it is intended, causewayctl zone accept-deletes %s --type %s --address ZONE, "+
			"with the address of that zone's API; if not, write them again on the global", s.Zone, t)
		out = append(out, f)
	}
	for i := range s.Over {
		out = append(out, overFinding(s.Zone, &s.Over[i]))
	}
	if s.NewStore != nil {
		out = append(out, finding{
			findingWarning, "zone", s.Zone,
			"the global's store is not the one that the zone knew: it was restored, rolled back or recreated",
			"the zone deletes nothing that the new store lacks, until an operator agrees",
			"causewayctl inspect sync --zone " + s.Zone + " shows what is held; docs/operations/disaster-recovery.md",
		})
	}
	if s.NewZoneStore != nil {
		out = append(out, finding{
			findingWarning, "zone", s.Zone,
			"the zone's store is not the one that the global knew: it was restored, rolled back or recreated",
			"the global has the only copies of what that store lacks, and deletes none of them until an operator agrees",
			"causewayctl inspect sync --zone " + s.Zone + " shows what is held: apply it to the zone again, or accept the removal with causewayctl zone accept-deletes " + s.Zone,
		})
	}
	if s.Replaced != nil {
		out = append(out, finding{
			findingWarning, "zone", s.Zone, replacedText(s.Replaced),
			"that store may be older: later changes, including revoked access, are undone",
			"the zone's log and causewayctl inspect sync at the zone name the first of them: apply again what changed since the backup",
		})
	}
	if len(behind) > 0 && s.Connected {
		out = append(out, finding{
			findingProblem, "zone", s.Zone, fmt.Sprintf("behind by %s in %s", lagText(late), strings.Join(behind, ", ")),
			"changes from that time do not take effect on the other side yet",
			"check the load of both machines and the network between them; causewayctl zone resync " + s.Zone +
				" compares everything again",
		})
	}
	return out
}

// overFinding describes the limit that a zone has reached, and what follows.
func overFinding(zone string, o *tracker.OverLimit) finding {
	f := finding{Status: findingWarning, Check: "limits", About: zone,
		Why: "what exceeds it is refused or dropped; other zones are not affected"}
	switch o.Limit {
	case "resources":
		f.Status, f.What = findingProblem, fmt.Sprintf("it has as many %s as a zone may have, %d; %d more were refused",
			o.Type, o.Most, o.Count)
		f.Do = "is it compromised, or does something create resources without end? Delete what is not needed, or raise --kds-zone-resources on the global; then causewayctl zone resync " + zone
	case "bytes":
		f.Status, f.What = findingProblem,
			fmt.Sprintf("its resources are as large as a zone's may be, %d bytes; %d were refused", o.Most, o.Count)
		f.Do = "delete what is not needed, or raise --kds-zone-bytes on the global; then causewayctl zone resync " + zone
	case "refusals":
		f.What = fmt.Sprintf("more resources are refused than the server keeps by name (%d): %d are only counted", o.Most, o.Count)
		f.Do = "causewayctl inspect sync --zone " + zone + " shows the others: find what creates so many invalid resources"
	case "resume":
		f.What = fmt.Sprintf("it announced more %s than the server compares, and got the complete list (%d times)",
			o.Type, o.Count)
		f.Do = "nothing, if that happened once; a zone that repeats it has a problem"
	case "changes":
		f.Why = "what it changes arrives late on the global and in other zones; they are not affected"
		f.What = fmt.Sprintf("it changes its resources faster than the global takes from one zone for long, %d a second", o.Most)
		f.Do = "causewayctl audit on the zone, and its resources: what changes without end, and is it compromised?"
	default:
		f.What = fmt.Sprintf("it met the limit of %s, %d, %d times", o.Limit, o.Most, o.Count)
		f.Do = "see the log of the zone's server for why it opens so many"
	}
	return f
}

func refusalFinding(zone string, t *tracker.TypeSync) finding {
	return finding{
		findingProblem, "zone", zone, fmt.Sprintf("%d %s refused (%s); the first: %s", len(t.Refused), t.Type,
			t.Direction, refusalText(&t.Refused[0], t.Type)),
		"these resources do not take effect on the other side; all others do",
		refusalAdvice,
	}
}

// refusalAdvice says what to do about refused resources.
const refusalAdvice = "change or delete them where they were written: the sender offers them again when they change"

func heldFinding(zone, typ string, n int) finding {
	return finding{
		findingProblem, "zone", zone, fmt.Sprintf("the removal of %d %s is held", n, typ),
		"so many at once may be a mistake; they remain in force until an operator agrees",
		heldAdvice(zone, typ),
	}
}

// heldAdvice says what to do about a held deletion.
func heldAdvice(zone, typ string) string {
	return fmt.Sprintf("if it is intended: causewayctl zone accept-deletes %s --type %s; if not, write them again where they came from", zone, typ)
}
