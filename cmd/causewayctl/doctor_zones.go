package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/api"
)

// noticedLag is how long a zone may be behind before somebody should look, in seconds.
const noticedLag = 30

// asAPIError finds the server's own error in err.
func asAPIError(err error, into **api.Error) bool { return errors.As(err, into) }

// sync looks at the sessions between the global and its zones, from the side that was asked.
func (e *examination) sync(ctx context.Context) error {
	own, err := fetchSession(ctx, e.client, "/_sync", "")
	if err == nil {
		e.add(ownFindings(own)...)
		return nil
	}
	if !api.IsNotFound(err) {
		e.unknown("sync", "", err, "ask as somebody who may read the server: causewayctl auth can-i read Server")
		return nil
	}
	d, _ := resources.Lookup(resources.TypeZone)
	zones, err := listItems(ctx, e.client, listQuery{descriptor: d})
	if err != nil {
		return err
	}
	overviews, err := listAll[zoneOverview](ctx, e.client, listPath(d, "")+overviewSuffix, listQuery{descriptor: d})
	if err != nil {
		return err
	}
	seen := map[string]*zoneOverview{}
	for _, o := range overviews {
		seen[o.Name] = o
	}
	if len(zones) == 0 {
		e.note("zones", "", "none has joined yet")
	}
	for i, z := range zones {
		e.cli.waiting.say("looking at zone %d of %d", i+1, len(zones))
		e.zone(ctx, z, seen[z.Name])
	}
	e.adoptions(ctx)
	return nil
}

// zone looks at one zone from the global.
func (e *examination) zone(ctx context.Context, z *item, seen *zoneOverview) {
	if seen == nil {
		seen = &zoneOverview{Name: z.Name}
	}
	before := len(e.Findings)
	credentials := &zoneCredentials{}
	err := e.client.JSON(ctx, api.Request{Path: zonePath(z.Name, "_credentials")}, credentials)
	if err != nil && !api.IsNotFound(err) {
		e.unknown("zone", z.Name, err, "")
	}
	e.add(presenceFindings(seen, credentials.Revoked)...)
	e.add(credentialFindings(credentials, time.Now())...)
	if isCloned(z) {
		e.add(finding{
			findingProblem, "zone", z.Name, "two servers take turns as this zone",
			"each ends the other's session: neither zone's proxies can rely on being up to date",
			"stop the one that was copied; it wants a zone of its own: causewayctl zone create NAME, and a new data folder",
		})
	}
	if latest := seen.latest(); latest.Version.ControlPlane.Version != "" {
		if f := versionFinding(z.Name, latest.Version.ControlPlane.Version, e.version); f.Status != findingOK {
			e.add(f)
		}
	}
	session, err := fetchSession(ctx, e.client, zonePath(z.Name, "_sync"), "")
	switch {
	case err == nil:
		e.add(sessionFindings(session)...)
	case !api.IsNotFound(err):
		e.unknown("zone", z.Name, err, "")
	}
	if len(e.Findings) == before {
		e.note("zone", z.Name, "online, in sync")
	}
}

// presenceFindings says why a zone that is not online is not.
func presenceFindings(z *zoneOverview, revoked *time.Time) []finding {
	state, since := z.connection()
	f := finding{Status: findingProblem, Check: "zone", About: z.Name}
	switch {
	case z.enabled() == "false":
		f.Status, f.What = findingWarning, "disabled"
		f.Why, f.Do = "it gets and gives nothing, and other zones do not see its services", "causewayctl zone enable "+z.Name+", when it shall take part again"
	case revoked != nil && state != stateOnline:
		f.What = "all its credentials are void since " + revoked.UTC().Format(time.RFC3339)
		f.Why = "it goes on with what it has, and cannot come back by itself"
		f.Do = "causewayctl zone create " + z.Name + " makes a join string for its server; causewayctl zone delete " + z.Name + " removes it for good"
	case state == stateNever:
		f.Status, f.What = findingWarning, "has not connected"
		f.Why, f.Do = "it is registered, and nobody came", "is its server started, and does it reach the address in the join string? causewayctl zone create "+z.Name+" makes another one"
	case state == stateOffline:
		f.What = "offline since " + since.UTC().Format(time.RFC3339)
		f.Why = "its proxies keep what they have: changes, revocations of access among them, do not reach them"
		f.Do = "on the zone's machine: is causeway-zone running, what does its log say, does it reach the global's KDS port?"
	default:
		return nil
	}
	return []finding{f}
}

// zoneCredentials is the part of GET /zones/{name}/_credentials that is judged here.
type zoneCredentials struct {
	Zone         string            `json:"zone"`
	Certificates []zoneCertificate `json:"certificates"`
	Revoked      *time.Time        `json:"revocationTime"`
}

type zoneCertificate struct {
	Serial  string    `json:"serial"`
	Issued  time.Time `json:"issued"`
	Expires time.Time `json:"expires"`
}

// credentialFindings judges the newest certificate of a zone: a connected zone renews it at half of its life.
func credentialFindings(c *zoneCredentials, now time.Time) []finding {
	if c.Revoked != nil || len(c.Certificates) == 0 {
		return nil
	}
	newest := c.Certificates[0]
	for _, cert := range c.Certificates {
		if cert.Expires.After(newest.Expires) {
			newest = cert
		}
	}
	left := newest.Expires.Sub(now)
	if left > newest.Expires.Sub(newest.Issued)/4 {
		return nil
	}
	f := finding{
		findingProblem, "zone", c.Zone, "its certificate ends at " + newest.Expires.UTC().Format(time.RFC3339) + " and was not renewed",
		"from then on the zone is not let in", "the zone renews by itself while it is connected: bring it online, and look in its log for why it does not",
	}
	if left <= 0 {
		f.What, f.Why = "its certificate ended at "+newest.Expires.UTC().Format(time.RFC3339), "the zone is not let in any more"
		f.Do = "causewayctl zone create " + c.Zone + " makes a join string, and causeway-zone join takes it on the zone's machine; its data stays"
	}
	return []finding{f}
}

// adoptions looks for servers that a restored global turns away.
func (e *examination) adoptions(ctx context.Context) {
	var answer struct {
		Items []adoptable `json:"items"`
	}
	if e.client.JSON(ctx, api.Request{Path: "/_adoptions"}, &answer) != nil {
		return // this server does not know them, or does not tell us
	}
	for _, a := range answer.Items {
		e.add(finding{
			findingProblem, "zone", a.Zone, "its server is turned away: " + a.Reason,
			"the global was restored or begun anew, and does not know this zone's certificate; the zone gets no changes",
			"look whether it is the right server, then causewayctl zone adopt " + a.Zone,
		})
	}
}

// ownFindings is what a zone says of its own session.
func ownFindings(s *syncSession) []finding {
	if len(s.Types) == 0 && !s.Connected {
		return []finding{{Status: findingOK, Check: "sync", About: s.Zone, What: "not connected to a global: it runs alone, or has not met one since it started"}}
	}
	var out []finding
	if !s.Connected {
		out = append(out, finding{
			findingProblem, "sync", s.Zone, "not connected to the global",
			"the zone works on with what it has; changes from the global do not reach it",
			"look in this zone's log for why; on the global: causewayctl doctor",
		})
	}
	if out = append(out, sessionFindings(s)...); len(out) == 0 {
		out = append(out, finding{Status: findingOK, Check: "sync", About: s.Zone, What: "connected, in sync"})
	}
	return out
}

// sessionFindings judges lag, refusals and held removals of one session, from either side.
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
		out = append(out, heldFinding(s.Zone, string(t), n))
	}
	for i := range s.Over {
		out = append(out, overFinding(s.Zone, &s.Over[i]))
	}
	if s.NewStore != nil {
		out = append(out, finding{
			findingWarning, "zone", s.Zone, "the global's store is not the one that the zone knew: it was restored, or begun anew",
			"the zone deletes nothing for what that store lacks, until somebody agrees",
			"causewayctl inspect sync --zone " + s.Zone + " shows what is held; docs/operations/disaster-recovery.md",
		})
	}
	if len(behind) > 0 && s.Connected {
		out = append(out, finding{
			findingProblem, "zone", s.Zone, fmt.Sprintf("behind by %s in %s", lagText(late), strings.Join(behind, ", ")),
			"what was changed in that time does not hold yet on the other side",
			"look at the load of both machines and the network between them; causewayctl zone resync " + s.Zone + " compares everything anew",
		})
	}
	return out
}

// overFinding says which bound a zone has met, and what follows from it.
func overFinding(zone string, o *overLimit) finding {
	f := finding{Status: findingWarning, Check: "limits", About: zone, Why: "what is beyond it is refused or forgotten; other zones do not notice"}
	switch o.Limit {
	case "resources":
		f.Status, f.What = findingProblem, fmt.Sprintf("it has as many %s as a zone may have, %d; %d more were refused", o.Type, o.Most, o.Count)
		f.Do = "is it taken over, or does something make them without end? Delete what is not needed, or raise --kds-zone-resources on the global; then causewayctl zone resync " + zone
	case "bytes":
		f.Status, f.What = findingProblem, fmt.Sprintf("its resources are as large as a zone's may be, %d bytes; %d were refused", o.Most, o.Count)
		f.Do = "delete what is not needed, or raise --kds-zone-bytes on the global; then causewayctl zone resync " + zone
	case "refusals":
		f.What = fmt.Sprintf("more is refused than is kept by name, %d: %d are counted only", o.Most, o.Count)
		f.Do = "causewayctl inspect sync --zone " + zone + " shows the others: what makes so many that are no good?"
	case "resume":
		f.What = fmt.Sprintf("it says that it has more %s than is looked at, and was sent the complete list (%d times)", o.Type, o.Count)
		f.Do = "nothing, if it was sent that list once; a zone that does this again and again is not well"
	default:
		f.What = fmt.Sprintf("it met the limit of %s, %d, %d times", o.Limit, o.Most, o.Count)
		f.Do = "look in the log of the zone's server for why it opens so many"
	}
	return f
}

func refusalFinding(zone string, t *syncType) finding {
	return finding{
		findingProblem, "zone", zone, fmt.Sprintf("%d %s refused (%s); the first: %s", len(t.Refused), t.Type, t.Direction, t.Refused[0].text(t.Type)),
		"these resources do not hold on the other side; all others do", "change or delete them where they were written: they are offered again when they change",
	}
}

func heldFinding(zone, typ string, n int) finding {
	return finding{
		findingProblem, "zone", zone, fmt.Sprintf("the removal of %d %s is held", n, typ),
		"so many at once may be a mistake; until somebody agrees they stay in force",
		fmt.Sprintf("if it was meant: causewayctl zone accept-deletes %s --type %s; if not, write them again where they came from", zone, typ),
	}
}
