package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
)

// noticedLag is how long a zone may be behind before it is worth a look, in seconds.
const noticedLag = 30

// asAPIError finds the server's error in err.
func asAPIError(err error, into **api.Error) bool { return errors.As(err, into) }

// sync checks the sessions between the global and its zones, from the side that responds.
func (e *examination) sync(ctx context.Context) error {
	own, err := fetchSession(ctx, e.client, "/_sync", "")
	if err == nil {
		e.compare(own)
		e.add(ownFindings(own)...)
		return nil
	}
	if !api.IsNotFound(err) {
		e.unread = true
		e.unknown("sync", "", err, "use a credential that may read the server: causewayctl auth can-i read Server")
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
		e.note("zones", "", "no zone has joined yet")
	}
	for i, z := range zones {
		e.cli.waiting.say("checking zone %d of %d", i+1, len(zones))
		e.zone(ctx, z, seen[z.Name])
	}
	e.adoptions(ctx)
	return nil
}

// compare remembers a zone in which not all that the global says is in force.
func (e *examination) compare(s *syncSession) {
	if s.heldByZone() > 0 || slices.ContainsFunc(s.Types, func(t tracker.TypeSync) bool {
		return t.Direction == "toZone" && (t.LagSeconds > 0 || t.LagRevisions > 0 || t.Held != nil)
	}) {
		e.late = append(e.late, s.Zone)
	}
}

// zone checks one zone, from the global.
func (e *examination) zone(ctx context.Context, z *item, seen *zoneOverview) {
	if seen == nil {
		seen = &zoneOverview{Name: z.Name}
	}
	before := len(e.Findings)
	credentials := &enrolment.Credentials{}
	err := e.client.JSON(ctx, api.Request{Path: zonePath(z.Name, "_credentials")}, credentials)
	if err != nil && !api.IsNotFound(err) {
		e.unknown("zone", z.Name, err, "")
	}
	session, err := fetchSession(ctx, e.client, zonePath(z.Name, "_sync"), "")
	if err != nil {
		e.unknown("zone", z.Name, err, "use a credential that may read the zone: causewayctl auth can-i read Zone")
		session, e.unread = &syncSession{}, true
	}
	e.compare(session)
	e.add(presenceFindings(seen, credentials, session.Started)...)
	e.add(credentialFindings(credentials, time.Now())...)
	if isCloned(z) {
		e.add(finding{
			findingProblem, "zone", z.Name, "two servers alternate as this zone",
			"each ends the other's session: neither zone's proxies can rely on being up to date",
			"stop the copy; it needs a zone of its own: causewayctl zone create NAME, and a new data folder; this is shown until 15 minutes after they last alternated",
		})
	}
	if latest := seen.latest(); latest.GetVersion().GetKumaCp().GetVersion() != "" {
		if f := versionFinding(z.Name, latest.GetVersion().GetKumaCp().GetVersion(), e.version); f.Status != findingOK {
			e.add(f)
		}
	}
	e.add(sessionFindings(session)...)
	if len(e.Findings) == before {
		e.note("zone", z.Name, "%s", "online, "+session.pace()+session.proxiesText())
	}
}

// presenceFindings explains why a zone is not online. started is when the global started to observe.
func presenceFindings(z *zoneOverview, credentials *enrolment.Credentials, started time.Time) []finding {
	state, since := z.connection()
	revoked := credentials.Revoked
	f := finding{Status: findingProblem, Check: "zone", About: z.Name}
	switch {
	case z.enabled() == "false":
		f.Status, f.What = findingWarning, "disabled"
		f.Why, f.Do = "it does not sync, and other zones do not see its services",
			"causewayctl zone enable "+z.Name+" resumes the sync"
	case revoked != nil && state != stateOnline:
		f.What = "all its credentials were revoked at " + revoked.UTC().Format(time.RFC3339)
		f.Why = "it continues with what it has, and cannot reconnect"
		f.Do = "causewayctl zone create " + z.Name + " prints a join string for its server; causewayctl zone delete " +
			z.Name + " removes it permanently"
	case state == stateUnknown:
		f.What = "whether it is connected is unknown since " + since.UTC().Format(time.RFC3339) + ": " + z.Unknown.Reason
		f.Why = "what it and its proxies do is not known here"
		f.Do = "ask another replica (causewayctl get replicas), and look for why this one does not reach etcd"
	case state == stateUnseen && isUnused(credentials):
		f.Status, f.What = findingWarning, "not seen since the global started"+sinceText(started)+
			"; its join string was never used"
		f.Why, f.Do = "it is registered, and no server has joined as this zone", "check that its server runs and reaches the address in the join string; causewayctl zone create "+z.Name+" prints another one"
	case state == stateUnseen:
		f.What = "not seen since the global started" + sinceText(started) + lastSeen(credentials)
		f.Why = "whether it runs, and what its proxies enforce, is unknown: changes, including revoked access, have not reached it since then"
		f.Do = "if the global has just started, run this again in a minute; otherwise, check on the zone's machine that causeway-zone runs and reaches the global's KDS port, and see its log"
	case state == stateOffline:
		f.What = "offline since " + since.UTC().Format(time.RFC3339)
		f.Why = "its proxies keep what they have: changes, including revoked access, do not reach them"
		f.Do = "check on the zone's machine that causeway-zone runs and reaches the global's KDS port, and see its log"
	default:
		return nil
	}
	return []finding{f}
}

// isUnused reports whether a zone has a join string but has never used one.
func isUnused(c *enrolment.Credentials) bool {
	used := slices.ContainsFunc(c.Joins, func(j enrolment.Join) bool { return j.Used })
	return len(c.Joins) > 0 && !used && len(c.Certificates) == 0 && len(c.Tokens) == 0
}

// lastSeen returns a time at which the zone was certainly present. The store keeps the times at which certificates were
// issued, but no sessions.
func lastSeen(c *enrolment.Credentials) string {
	var last time.Time
	for _, cert := range c.Certificates {
		if cert.Issued.After(last) {
			last = cert.Issued
		}
	}
	if last.IsZero() {
		return "; the store does not record when it was last connected"
	}
	return "; it was connected at " + last.UTC().Format(time.RFC3339) + ", when its newest certificate was issued"
}

// sinceText returns ` at TIME`, or an empty string if the time is unknown.
func sinceText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " at " + t.UTC().Format(time.RFC3339)
}

// credentialFindings judges the newest certificate of a zone. A connected zone renews it at half of its lifetime.
func credentialFindings(c *enrolment.Credentials, now time.Time) []finding {
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
		findingProblem, "zone", c.Zone, "its certificate expires at " + newest.Expires.UTC().Format(time.RFC3339) +
			" and was not renewed",
		"after that the global rejects the zone",
		"a connected zone renews its certificate: connect it, and see its log for why it does not",
	}
	if left <= 0 {
		f.What, f.Why = "its certificate expired at "+newest.Expires.UTC().Format(time.RFC3339),
			"the global rejects the zone"
		f.Do = "causewayctl zone create " + c.Zone +
			" prints a join string for causeway-zone join on the zone's machine; its data remains"
	}
	return []finding{f}
}

// adoptions lists servers that a restored global rejects.
func (e *examination) adoptions(ctx context.Context) {
	var answer enrolment.Candidates
	switch err := e.client.JSON(ctx, api.Request{Path: "/_adoptions"}, &answer); {
	case api.IsNotFound(err):
		return // a server without adoptions
	case err != nil:
		e.unknown("zones", "", err, "whether the global rejects servers is unknown: causewayctl zone adopt lists them")
		return
	}
	for _, a := range answer.Items {
		e.add(finding{
			findingProblem, "zone", a.Zone, "the global rejects its server: " + a.Reason,
			"the global was restored or recreated, and does not know this zone's certificate; the zone gets no changes",
			"check that it is the right server, then run causewayctl zone adopt " + a.Zone,
		})
	}
}
