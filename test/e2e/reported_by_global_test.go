package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/questions/questionspb"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// readers are roles of the global, all of which may read the server: anna may also read everything else, ben the
// Dataplanes of the backend's namespace, and cleo those of another. Dora may read all resources, and not the server.
const readers = `
type: AccessRole
name: server
spec: {rules: [{verbs: [read], types: [Server, Zone]}]}
---
type: AccessRole
name: all
spec: {rules: [{verbs: [read], types: ["*"]}]}
---
type: AccessRole
name: backend
spec: {rules: [{verbs: [read], types: [Dataplane], meshes: [default], namespaces: [backend-ns]}]}
---
type: AccessRole
name: elsewhere
spec: {rules: [{verbs: [read], types: [Dataplane], meshes: [default], namespaces: [elsewhere]}]}
---
type: AccessRole
name: resources
spec: {rules: [{verbs: [read], types: [Dataplane, MeshTrafficPermission, Zone, Mesh]}]}
---
{type: AccessRoleBinding, name: anna, spec: {subjects: [{type: User, name: anna}], roles: [all]}}
---
{type: AccessRoleBinding, name: ben, spec: {subjects: [{type: User, name: ben}], roles: [server, backend]}}
---
{type: AccessRoleBinding, name: cleo, spec: {subjects: [{type: User, name: cleo}], roles: [server, elsewhere]}}
---
{type: AccessRoleBinding, name: dora, spec: {subjects: [{type: User, name: dora}], roles: [resources]}}
`

// TestReportsByWayOfTheGlobal asks the global for what a zone's proxies denied, would deny and allowed: it says what the
// zone says, to those who may read it by the roles of the global, and to nobody else. What it suggests selects the
// Dataplane by its zone. While the zone is away, the answer is that it is unknown.
func TestReportsByWayOfTheGlobal(t *testing.T) {
	t.Parallel()
	m := &truth{newMesh(t)}
	zone := m.startZoneWith("zone-1", "--access-log", "als")
	m.startZoneWith("zone-2")
	backend := m.workload(zone, cluster.InboundConfig{Name: "http", Protocol: cluster.ProtocolHTTP})
	client, id := m.client(zone, "frontend")
	port := backend.Inbound("http").Port
	calls := func(path string, status int) {
		m.eventually(fmt.Sprintf("GET %s to be %d", path, status), func(ctx context.Context) error {
			got, _, err := client.Get(ctx, port, path)
			if err == nil && got != status {
				err = fmt.Errorf("it is %d", got)
			}
			return err
		})
	}
	calls("/denied", http.StatusForbidden)
	m.isTold(m.global, []string{"name the zone", "--zone NAME asks that zone by way of the global"}, "report", "denied")
	m.isTold(m.global, []string{"there is no Zone nowhere"}, "report", "denied", "--zone", "nowhere")
	m.isTold(zone, []string{"this server is zone zone-1"}, "report", "denied", "--zone", "zone-2")
	m.says(m.global, 2, []string{"what was denied is unknown: the zone runs without --access-log als"}, "report", "denied", "--zone", "zone-2")
	m.says(m.global, 0, []string{id.SpiffeID, "/denied", "default"}, "report", "denied", "--zone", "zone-1")
	m.says(m.global, 1, []string{"/denied", "denied by default"}, "why", id.SpiffeID, "backend", "-n", "backend-ns", "--zone", "zone-1")
	m.says(m.global, 1, []string{"add --zone NAME"}, "why", id.SpiffeID, "backend", "-n", "backend-ns")

	m.apply(m.global, operator(entry("allowWithShadowDeny", "Exact", id.SpiffeID)))
	calls("/allowed", http.StatusOK)
	m.says(m.global, 0, []string{id.SpiffeID, byOperator + ": not safe to enforce: 1 would be denied"}, "report", "shadow", "--zone", "zone-1")
	m.says(m.global, 0, []string{"kuma.io/zone: zone-1", "value: /allowed"}, "suggest", "permissions", "--dataplane", "backend", "-n",
		"backend-ns", "--zone", "zone-1")
	m.says(m.global, 0, []string{"kuma.io/zone: zone-1"}, "suggest", "permissions", "--dataplane", "kri_dp_default_zone-1_backend-ns_backend_")
	m.says(m.global, 0, []string{"allow, in the shadow deny"}, "report", "access", "--zone", "zone-1", "--only", "tried")
	m.says(m.global, 2, []string{"name the zone"}, "report", "access", "--only", "tried")
	for _, path := range []string{"/_report/denied?zone=zone-1", "/_report/shadow?zone=zone-1"} {
		m.eventually("the global to say what the zone says of "+path, func(ctx context.Context) error {
			var here, there map[string]any
			if err := m.global.API.Get(ctx, path, &here); err != nil {
				return err
			}
			if err := zone.API.Get(ctx, path, &there); err != nil {
				return err
			}
			if a, b := fmt.Sprint(here["items"], here["dropped"]), fmt.Sprint(there["items"], there["dropped"]); a != b || len(here["items"].([]any)) == 0 {
				return fmt.Errorf("the global says %s\nthe zone says %s", a, b)
			}
			return nil
		})
	}

	m.apply(m.global, readers)
	for user, want := range map[string]struct{ items, leftOut, status int }{
		"anna": {1, 0, 200}, "ben": {1, 0, 200}, "cleo": {0, 1, 200}, "dora": {0, 0, 403},
	} {
		m.reportTo(user, "/_report/denied?zone=zone-1", want.status, func(r *api.DenialReport) error {
			if min(len(r.Items), 1) != want.items || min(r.LeftOut, 1) != want.leftOut {
				return fmt.Errorf("%d items, %d left out, want %+v", len(r.Items), r.LeftOut, want)
			}
			return nil
		})
		suggested := map[string]int{"cleo": 403, "dora": 403}[user]
		if suggested == 0 {
			suggested = 200
		}
		m.answersTo(user, "/_suggest/permissions?zone=zone-1&dataplane=backend&namespace=backend-ns", suggested)
	}
	// Ben may not read the policy: neither what it would deny, nor its name.
	m.reportTo("ben", "/_report/shadow?zone=zone-1", 200, func(r *api.DenialReport) error {
		if len(r.Items) != 0 || r.LeftOut == 0 {
			return fmt.Errorf("%d items, %d left out", len(r.Items), r.LeftOut)
		}
		return nil
	})

	zone.Pause()
	m.isTold(m.global, []string{"unknown: zone zone-1 did not answer within 5s, last heard of at 20"}, "report", "denied", "--zone", "zone-1")
	m.says(m.global, 2, []string{"who called is unknown: unknown: zone zone-1 did not answer"}, "report", "access", "--zone", "zone-1", "--only", "tried")
	zone.Resume()
	m.must(zone.Stop(t.Context()))
	m.isTold(m.global, []string{"unknown: zone zone-1 is offline, since 20"}, "report", "denied", "--zone", "zone-1")
	m.says(m.global, 0, []string{"what was denied lately is unknown", "zone zone-1 is offline, since 20"}, "why", id.SpiffeID, "backend",
		"-n", "backend-ns", "--zone", "zone-1", "--path", "/x")
}

// reportTo asks the global for a report of denials as a user until it has a status, and is as it should be.
func (m *truth) reportTo(user, path string, status int, check func(*api.DenialReport) error) {
	m.t.Helper()
	m.answersWith(user, path, status, func(body []byte) error {
		if status != http.StatusOK {
			return nil
		}
		report := &api.DenialReport{}
		if err := json.Unmarshal(body, report); err != nil {
			return err
		}
		return check(report)
	})
}

// TestZonesThatLieAboutReports: whatever a zone reports, the global shows nothing of other zones' proxies, and nothing
// that a terminal would obey.
func TestZonesThatLieAboutReports(t *testing.T) {
	t.Parallel()
	m := &truth{newMesh(t)}
	m.startZoneWith("zone-1", "--access-log", "als")
	l := &liar{}
	defer m.joins("zone-2", true, l.beside)()
	defer m.joins("zone-3", false, func(ctx context.Context, _ grpc.ClientConnInterface) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})()
	denied := []string{"report", "denied", "--zone", "zone-2"}
	says := func(body string) {
		l.set(func(ctx context.Context, client questionspb.QuestionServiceClient, id []byte) error {
			_, err := client.Answer(ctx, &questionspb.AnswerPart{Id: id, Body: []byte(body[:min(len(body), 1<<20)]), Last: len(body) <= 1<<20})
			for number, rest := uint32(1), body[min(len(body), 1<<20):]; err == nil && rest != ""; number++ {
				size := min(len(rest), 1<<20)
				_, err = client.Answer(ctx, &questionspb.AnswerPart{Id: id, Number: number, Body: []byte(rest[:size]), Last: size == len(rest)})
				rest = rest[size:]
			}
			return err
		})
	}
	entry := func(zone, client string) string {
		return `{"collecting":true,"entries":[{"inbound":"kri_dp_default_` + zone + `__backend_1","client":"` + client +
			`","method":"GET","policy":"default","count":1,"elsewhere":1,"last":"2999-01-01T00:00:00Z"}]}`
	}
	m.isTold(m.global, []string{"zone zone-3 takes no such questions", "a version before them"}, "report", "denied", "--zone", "zone-3")
	m.isTold(m.global, []string{"unknown: zone zone-2 did not answer within 5s"}, denied...)
	says(entry("zone-2", "spiffe://a/b"))
	m.says(m.global, 0, []string{"spiffe://a/b"}, denied...)
	says(entry("zone-2", `\u001b]0;owned\u0007\u001b[2J`))
	if said := m.says(m.global, 0, []string{"owned"}, denied...); strings.ContainsAny(said, "\x1b\a") {
		t.Errorf("a terminal would obey %q", said)
	}
	for _, body := range []string{entry("zone-1", "spiffe://a/b"), "<html>", `{"entries":[` + strings.Repeat("{},", 1<<20) + `{}]}`,
		`{"entries":[]}` + strings.Repeat(" ", 5<<20), strings.Repeat(`{"entries":[`, 1<<16)} {
		says(body)
		m.isTold(m.global, []string{"zone zone-2 answers with what is not a report of its own proxies"}, denied...)
	}
	m.says(m.global, 0, []string{"no such denial was reported since 20"}, "report", "denied", "--zone", "zone-1")
	m.must(m.global.Alive())
}
