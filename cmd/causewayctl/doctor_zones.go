package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/api"
)

// noticedLag is how long a zone may be behind before it is worth a look, in seconds.
const noticedLag = 30

// asAPIError finds the server's error in err.
func asAPIError(err error, into **api.Error) bool { return errors.As(err, into) }

// sync checks the sessions between the global and its zones, from the side that answers.
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
		e.unknown("zone", z.Name, err, "ask as somebody who may read the zone: causewayctl auth can-i read Zone")
		session = &syncSession{}
	}
	e.add(presenceFindings(seen, credentials, session.Started)...)
	e.add(credentialFindings(credentials, time.Now())...)
	if isCloned(z) {
		e.add(finding{
			findingProblem, "zone", z.Name, "two servers take turns as this zone",
			"each ends the other's session: neither zone's proxies can rely on being up to date",
			"stop the one that was copied; it wants a zone of its own: causewayctl zone create NAME, and a new data folder",
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
		f.Why, f.Do = "it gets and gives nothing, and other zones do not see its services",
			"causewayctl zone enable "+z.Name+", when it shall take part again"
	case revoked != nil && state != stateOnline:
		f.What = "all its credentials are void since " + revoked.UTC().Format(time.RFC3339)
		f.Why = "it goes on with what it has, and cannot come back by itself"
		f.Do = "causewayctl zone create " + z.Name + " makes a join string for its server; causewayctl zone delete " +
			z.Name + " removes it for good"
	case state == stateUnknown:
		f.What = "whether it is connected is unknown since " + since.UTC().Format(time.RFC3339) + ": " + z.Unknown.Reason
		f.Why = "what it and its proxies do is not known here"
		f.Do = "ask another replica (causewayctl get replicas), and look for why this one does not reach etcd"
	case state == stateUnseen && isUnused(credentials):
		f.Status, f.What = findingWarning, "not seen since the global started"+sinceText(started)+
			"; nobody has used its join string"
		f.Why, f.Do = "it is registered, and nobody came", "is its server started, and does it reach the address in the join string? causewayctl zone create "+z.Name+" makes another one"
	case state == stateUnseen:
		f.What = "not seen since the global started" + sinceText(started) + lastSeen(credentials)
		f.Why = "whether it runs, and what its proxies enforce, is not known: changes, revocations of access among them, have not reached it since then"
		f.Do = "if the global has just started, ask again in a minute; otherwise, on the zone's machine: is causeway-zone running, what does its log say, does it reach the global's KDS port?"
	case state == stateOffline:
		f.What = "offline since " + since.UTC().Format(time.RFC3339)
		f.Why = "its proxies keep what they have: changes, revocations of access among them, do not reach them"
		f.Do = "on the zone's machine: is causeway-zone running, what does its log say, does it reach the global's KDS port?"
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
		return "; the store does not say when it was before"
	}
	return "; it was there at " + last.UTC().Format(time.RFC3339) + ", when its newest certificate was issued"
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
		findingProblem, "zone", c.Zone, "its certificate ends at " + newest.Expires.UTC().Format(time.RFC3339) +
			" and was not renewed",
		"from then on the zone is not let in",
		"the zone renews by itself while it is connected: bring it online, and look in its log for why it does not",
	}
	if left <= 0 {
		f.What, f.Why = "its certificate ended at "+newest.Expires.UTC().Format(time.RFC3339),
			"the zone is not let in any more"
		f.Do = "causewayctl zone create " + c.Zone +
			" makes a join string, and causeway-zone join takes it on the zone's machine; its data stays"
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
		e.unknown("zones", "", err, "whether servers are turned away is not known: causewayctl zone adopt lists them")
		return
	}
	for _, a := range answer.Items {
		e.add(finding{
			findingProblem, "zone", a.Zone, "its server is turned away: " + a.Reason,
			"the global was restored or begun anew, and does not know this zone's certificate; the zone gets no changes",
			"look whether it is the right server, then causewayctl zone adopt " + a.Zone,
		})
	}
}
