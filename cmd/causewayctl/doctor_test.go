package main

import (
	"crypto/x509"
	"encoding/json"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
)

// TestFindings checks the thresholds of each check. Every finding except ok says why it matters and what to do.
func TestFindings(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	cert := func(from, until time.Duration) *x509.Certificate {
		return &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(from), NotAfter: now.Add(until)}
	}
	key := func(until time.Duration) []api.SigningKey {
		at := now.Add(until)
		return []api.SigningKey{{Purpose: "zone-ca", ID: "x", Expires: &at}, {Purpose: "token-signing", ID: "y"}}
	}
	credentials := func(left time.Duration) *enrolment.Credentials {
		return &enrolment.Credentials{Zone: "z", Certificates: []enrolment.IssuedCertificate{
			{Issued: now.Add(-90 * day), Expires: now.Add(-60 * day)}, {Issued: now.Add(left - 30*day), Expires: now.Add(left)},
		}}
	}
	session := func(s syncSession) []finding { s.Zone, s.Connected = "z", true; return sessionFindings(&s) }
	lag := func(seconds float64) syncSession {
		return syncSession{Types: []tracker.TypeSync{{Type: "Mesh", Direction: "toZone", LagSeconds: seconds}}}
	}
	one := func(f finding) []finding { return []finding{f} }
	rows := map[string]struct {
		found []finding
		want  string // the statuses, with a word of the finding
	}{
		"clocks agree":                       {one(clockFinding(2 * time.Second)), "ok"},
		"clock ahead":                        {one(clockFinding(time.Minute)), "warning ahead of"},
		"clock behind":                       {one(clockFinding(-time.Minute)), "warning behind"},
		"clock so far off that nothing fits": {one(clockFinding(-6 * time.Minute)), "problem 6m0s behind"},
		"certificate is good":                {one(certificateFinding("x", cert(-day, 90*day), now)), "ok"},
		"certificate ends this month":        {one(certificateFinding("x", cert(-day, 20*day), now)), "warning good until"},
		"certificate ends this week":         {one(certificateFinding("x", cert(-day, 6*day), now)), "problem good until"},
		"certificate has ended": {one(certificateFinding("x", cert(-day, -time.Second), now)),
			"problem ended at"},
		"certificate begins later": {one(certificateFinding("x", cert(time.Hour, 90*day), now)),
			"problem not valid before"},
		"keys are good":       {keyFindings(key(90*day), now), "ok 2 keys"},
		"key ends this month": {keyFindings(key(20*day), now), "warning ends at"},
		"key ends this week":  {keyFindings(key(time.Hour), now), "problem ends at"},
		"same version":        {one(versionFinding("x", "dev", "dev")), "ok"},
		"next minor version":  {one(versionFinding("x", "v1.3.9", "v1.4.0")), "ok"},
		"two minor versions apart": {one(versionFinding("x", "v1.2.0", "v1.4.0")),
			"problem v1.2.0, the server is v1.4.0"},
		"another major version":           {one(versionFinding("x", "v2.4.0", "v1.4.0")), "problem"},
		"versions without numbers":        {one(versionFinding("x", "dev", "v1.4.0")), "warning"},
		"room on the disk":                {one(spaceFinding("x", 50<<30, 100<<30)), "ok"},
		"little room":                     {one(spaceFinding("x", 10<<30, 100<<30)), "warning 10240 MiB free"},
		"hardly any room":                 {one(spaceFinding("x", 3<<30, 100<<30)), "problem"},
		"hardly any room on a small disk": {one(spaceFinding("x", 200<<20, 1<<30)), "problem"},
		"a replica waits": {replicaFindings("causeway_replica_leads{pod=\"z-0\"} 0\ncauseway_replica_leads{pod=\"z-1\"} 1\n" +
			"causeway_replica_ready{pod=\"z-0\"} 1\ncauseway_replica_ready{pod=\"z-1\"} 1\n"), "ok z-1 leads, z-0 waits"},
		"no replica waits": {replicaFindings("causeway_replica_leads{pod=\"z-0\"} 1\ncauseway_replica_leads{pod=\"z-1\"} 0\n" +
			"causeway_replica_ready{pod=\"z-1\"} 0\n"), "warning z-0 leads, z-1 is not ready"},
		"no replicas": {replicaFindings("causeway_replica_stored 1\n"), ""},
		"zone that was not seen": {presenceFindings(&zoneOverview{Name: "z"}, credentials(20*day), now),
			"problem not seen since the global started at 2026-05-01T12:00:00Z; it was connected at "},
		"zone whose join string was not used": {presenceFindings(&zoneOverview{Name: "z"},
			&enrolment.Credentials{Joins: []enrolment.Join{{}}}, now), "warning its join string was never used"},
		"zone certificate is renewed":     {credentialFindings(credentials(20*day), now), ""},
		"zone certificate is not renewed": {credentialFindings(credentials(5*day), now), "problem was not renewed"},
		"zone certificate has ended":      {credentialFindings(credentials(-day), now), "problem its certificate expired"},
		"in sync":                         {session(lag(1)), ""},
		"behind":                          {session(lag(31)), "problem behind by 31s in Mesh"},
		"refused": {session(syncSession{Types: []tracker.TypeSync{{Type: "Mesh",
			Refused: []tracker.RefusedResource{{Name: "m", Reason: "too big", By: "self"}}}}}),
			"problem 1 Mesh refused"},
		"removal held": {session(syncSession{Types: []tracker.TypeSync{{Type: "Mesh",
			Held: &tracker.HeldDeletions{Count: 12}}}}), "problem the removal of 12 Mesh is held"},
		"removal held by the zone": {session(syncSession{HeldByZone: map[resources.Type]int{"Mesh": 11}}),
			"problem the removal of 11 Mesh is held"},
		"too many resources": {session(syncSession{Over: []tracker.OverLimit{{Limit: "resources",
			Type: "MeshService", Most: 5, Count: 2}}}), "problem 2 more were refused"},
		"too large": {session(syncSession{Over: []tracker.OverLimit{{Limit: "bytes", Most: 5,
			Count: 2}}}), "problem as large as a zone's may be"},
		"too many refusals": {session(syncSession{Over: []tracker.OverLimit{{Limit: "refusals", Most: 5,
			Count: 2}}}), "warning only counted"},
		"too many calls": {session(syncSession{Over: []tracker.OverLimit{{Limit: "calls", Most: 8,
			Count: 2}}}), "warning it met the limit of calls, 8, 2 times"},
		"another store": {session(syncSession{NewStore: &tracker.NewStore{}}), "warning restored"},
		"zone knows since when": {ownFindings(&syncSession{Zone: "z", Since: now.Add(-time.Hour),
			Types: []tracker.TypeSync{{}}}), "problem not connected to the global since " +
			now.Add(-time.Hour).UTC().Format(time.RFC3339)},
		"zone has lost its global": {ownFindings(&syncSession{Zone: "z", Types: []tracker.TypeSync{{}}}),
			"problem not connected to the global"},
		"a MeshTrust that is not believed": {trustFindings(notBelieved),
			"warning is a MeshTrust that this zone does not trust: it lives elsewhere"},
		"all is believed": {trustFindings(&api.Trust{}), ""},
		"zone in sync": {ownFindings(&syncSession{Zone: "z", Connected: true,
			Types: []tracker.TypeSync{{}}}), "ok connected, in sync"},
		"zone of a peer that says no revisions": {ownFindings(&syncSession{Zone: "z", Connected: true,
			Types: []tracker.TypeSync{{LagUnknown: true}}}),
			"ok connected, and lacks nothing; what it has not sent yet is unknown: it does not send its revisions"},
		"zone whose content was replaced": {ownFindings(&syncSession{Zone: "z", Connected: true, Types: []tracker.TypeSync{{}},
			Replaced: &tracker.Replaced{Count: 2, Names: []string{"a", "b"}}}),
			"warning since 0001-01-01T00:00:00Z the global's store, which was restored, rolled back or recreated, replaced the content of 2 resources here: a, b"},
		"zone not in sync yet": {ownFindings(&syncSession{Zone: "z", Connected: true,
			Types: []tracker.TypeSync{{Type: "Mesh", LagSeconds: 1, LagRevisions: 2}}}), "ok connected, behind by 1s in Mesh"},
		"zone alone": {ownFindings(&syncSession{Zone: "z"}), "ok runs alone"},
		"ingress without a proxy": {ingressFindings([]ingress{{"z", "in", &resources.Condition{
			Status: resources.ConditionFalse, Message: "no proxy has been connected since then"}}}), "problem no proxy has been connected"},
		"ingress with a proxy": {ingressFindings([]ingress{{"z", "in", &resources.Condition{
			Status: resources.ConditionTrue, Message: "its proxy is connected"}}}), "ok its proxy is connected"},
		"ingresses of other servers": {ingressFindings([]ingress{{"y", "in", nil}, {"z", "in", nil}}),
			"unknown only their zones know whether a proxy is connected for in of y, in of z"},
		"proxy refuses": {behindFindings("m", []tracker.ProxyBehind{{Mesh: "m", Name: "a", Reason: "no such filter"}}),
			"problem no such filter"},
		"proxy is late": {behindFindings("m", []tracker.ProxyBehind{{Mesh: "m", Name: "a"}}), "warning not acknowledged"},
	}
	for name, row := range rows {
		status, words, _ := strings.Cut(row.want, " ")
		if len(row.found) != map[bool]int{true: 0, false: 1}[row.want == ""] {
			t.Errorf("%s: %+v", name, row.found)
			continue
		}
		for _, f := range row.found {
			if f.Status != status || !strings.Contains(f.What, words) {
				t.Errorf("%s: %s, %q; want %s, %q", name, f.Status, f.What, status, words)
			}
			if f.Status != findingOK && (f.Why == "" || f.Do == "") {
				t.Errorf("%s: it does not say why it matters, or what to do: %+v", name, f)
			}
		}
	}
}

var notBelieved = func() *api.Trust {
	out := &api.Trust{}
	_ = json.Unmarshal([]byte(`{"refused": [{"kri": "kri_mtrust_default_zone-1_payments_a_", "name": "a", "reason": "it lives elsewhere"}]}`), out)
	return out
}()

// TestDoctorDoesNotGuessThatProxiesAreInSync: whoever may not read how zones are is not told that proxies have the newest.
func TestDoctorDoesNotGuessThatProxiesAreInSync(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	client, err := api.NewClient(api.ClientConfig{Address: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	e := &examination{client: client, cli: &cli{errOut: io.Discard}}
	if got := e.pace(&rolloutStatus{}); got != "in sync" {
		t.Errorf("where nothing is amiss: %s", got)
	}
	e.zone(t.Context(), &item{Name: "zone-1"}, nil)
	if got := e.pace(&rolloutStatus{}); !strings.Contains(got, "whether there are newer changes is unknown") {
		t.Errorf("beside a zone that cannot be read: %s", got)
	}
	e.unread = false
	if err := e.sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := e.pace(&rolloutStatus{}); !strings.Contains(got, "whether there are newer changes is unknown") {
		t.Errorf("in a zone whose sync cannot be read: %s", got)
	}
}

// TestRemovalsThatAZoneHolds checks that the advice of a global names the server that holds a removal: the zone.
func TestRemovalsThatAZoneHolds(t *testing.T) {
	t.Parallel()
	found := sessionFindings(&syncSession{Zone: "zone-1", HeldByZone: map[resources.Type]int{"Mesh": 11}})
	if len(found) != 1 || !strings.Contains(found[0].Do, "accept-deletes zone-1 --type Mesh --address ZONE") {
		t.Errorf("%+v", found)
	}
}
