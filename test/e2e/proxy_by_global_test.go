package e2e

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/enrolment/enrolmentpb"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/questions/questionspb"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/server/porttest"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// observers are roles of the global: alice may observe what is in shop, bob read everything and observe nothing, carol
// observe another namespace of the same mesh, dave the namespace of that name in another mesh.
const observers = `
type: AccessRole
name: alice
spec: {rules: [{verbs: [observe], types: [Dataplane], meshes: [default], namespaces: [shop]}]}
---
type: AccessRole
name: bob
spec: {rules: [{verbs: [read], types: ["*"]}]}
---
type: AccessRole
name: carol
spec: {rules: [{verbs: [read, observe], types: [Dataplane], meshes: [default], namespaces: [elsewhere]}]}
---
type: AccessRole
name: dave
spec: {rules: [{verbs: [read, observe], types: [Dataplane], meshes: [other], namespaces: [shop]}]}
---
{type: AccessRoleBinding, name: alice, spec: {subjects: [{type: User, name: alice}], roles: [alice]}}
---
{type: AccessRoleBinding, name: bob, spec: {subjects: [{type: User, name: bob}], roles: [bob]}}
---
{type: AccessRoleBinding, name: carol, spec: {subjects: [{type: User, name: carol}], roles: [carol]}}
---
{type: AccessRoleBinding, name: dave, spec: {subjects: [{type: User, name: dave}], roles: [dave]}}
`

// TestProxiesByWayOfTheGlobal reads a real Envoy through the global: it shows what the zone's own API shows, to those
// who may observe the Dataplane there, and to nobody else. While the zone is away, the answer is that it is unknown.
func TestProxiesByWayOfTheGlobal(t *testing.T) {
	t.Parallel()
	m := &truth{newMesh(t, "zone-1", "zone-2")}
	zone := m.zones["zone-1"]
	port, err := porttest.Free()
	m.must(err)
	inbound, err := porttest.Free()
	m.must(err)
	m.apply(zone, fmt.Sprintf("{type: Dataplane, mesh: default, name: backend, namespace: shop, networking: {address: 127.0.0.1, "+
		"admin: {port: %d}, inbound: [{name: main, port: %d, servicePort: 9, tags: {kuma.io/protocol: http}}]}}", port, inbound))
	m.apply(m.zones["zone-2"], "{type: Dataplane, mesh: default, name: backend, namespace: shop, networking: {address: 127.0.0.1, "+
		"inbound: [{name: main, port: 1, tags: {kuma.io/protocol: http}}]}}")
	proxy, err := m.StartProxy(t.Context(), cluster.ProxyConfig{Zone: zone, Mesh: "default", Namespace: "shop", Dataplane: "backend"})
	m.must(err)
	m.must(proxy.WaitListeners(t.Context(), inbound, port))

	for _, name := range [][]string{{"backend", "-n", "shop", "--zone", "zone-1"}, {"kri_dp_default_zone-1_shop_backend_"}} {
		m.says(m.global, 0, []string{`"configs"`, "self_inbound_dp_main", "W3JlZGFjdGVkXQ=="}, append([]string{"proxy", "config"}, name...)...)
		m.says(m.global, 0, []string{"server.live: 1"}, append([]string{"proxy", "stats", "--match", "^server"}, name...)...)
		m.says(m.global, 0, []string{"::127.0.0.1:9::"}, append([]string{"proxy", "clusters"}, name...)...)
		m.says(m.global, 0, []string{"spiffe://default.zone-1.mesh.local/"}, append([]string{"proxy", "certs"}, name...)...)
	}
	m.says(m.global, 0, []string{`"name": "server.live"`}, "proxy", "stats", "backend", "-n", "shop", "--zone", "zone-1", "-o", "json")
	m.isTold(m.global, []string{"zone zone-2: no proxy of this Dataplane is connected"}, "proxy", "stats", "backend", "-n", "shop", "--zone", "zone-2")
	m.isTold(m.global, []string{"there is no"}, "proxy", "stats", "backend", "-n", "elsewhere", "--zone", "zone-1")

	m.apply(m.global, observers)
	for user, status := range map[string]int{"alice": 200, "bob": 403, "carol": 403, "dave": 403} {
		for _, part := range []string{"xds", "stats", "clusters", "certs"} {
			m.answersTo(user, "/meshes/default/dataplanes/backend/"+part+"?namespace=shop&zone=zone-1", status)
		}
		// What is not there is told to nobody who may not observe it.
		m.answersTo(user, "/meshes/default/dataplanes/nothing/xds?namespace=shop&zone=zone-1", map[int]int{200: 404, 403: 403}[status])
	}
	m.answersTo("alice", "/meshes/default/dataplanes/backend/stats?namespace=shop&zone=zone-1&match=[", 400)

	proxy.Kill()
	m.isTold(m.global, []string{"zone zone-1: no proxy of this Dataplane is connected"}, "proxy", "stats", "backend", "-n", "shop", "--zone", "zone-1")
	zone.Pause()
	m.isTold(m.global, []string{"unknown: zone zone-1 did not answer within 5s, last heard of at 20"}, "proxy", "stats",
		"backend", "-n", "shop", "--zone", "zone-1")
	zone.Resume()
	m.must(zone.Stop(t.Context()))
	m.isTold(m.global, []string{"unknown: zone zone-1 is offline, since 20"}, "proxy", "stats", "backend", "-n", "shop", "--zone", "zone-1")
}

// isTold runs causewayctl until it fails with all words in its error.
func (m *truth) isTold(s *cluster.Server, words []string, args ...string) {
	m.t.Helper()
	m.eventually(fmt.Sprintf("causewayctl %v to fail with %q", args, words), func(ctx context.Context) error {
		out, err := m.CTL(ctx, s, nil, args...)
		if err == nil {
			return fmt.Errorf("it succeeds: %.300s", out)
		}
		for _, word := range words {
			if !strings.Contains(err.Error(), word) {
				return fmt.Errorf("it does not say %q: %w", word, err)
			}
		}
		return nil
	})
}

// answersTo asks the global as a user until it answers with a status.
func (m *truth) answersTo(user, path string, status int) {
	m.t.Helper()
	m.answersWith(user, path, status, func([]byte) error { return nil })
}

// answersWith asks the global as a user until it answers with a status, and with what check accepts.
func (m *truth) answersWith(user, path string, status int, check func(body []byte) error) {
	m.t.Helper()
	token, err := m.CTL(m.t.Context(), m.global, nil, "user", "token", "--name", user, "--valid-for", "1h")
	m.must(err)
	m.eventually(fmt.Sprintf("GET %s as %s to be %d", path, user, status), func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, m.global.API.URL()+path, nil)
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			return err
		}
		if answer.StatusCode != status {
			return fmt.Errorf("%s: %.300s", answer.Status, body)
		}
		return check(body)
	})
}

// liar is a zone that has joined, and whose answers are not those of any Envoy.
type liar struct {
	mu sync.Mutex
	// answers to one question; nil never takes any. Guarded by mu.
	answers func(ctx context.Context, client questionspb.QuestionServiceClient, id []byte) error
}

func (l *liar) set(answers func(context.Context, questionspb.QuestionServiceClient, []byte) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers = answers
}

// beside implements kds.ZoneConfig.Beside.
func (l *liar) beside(ctx context.Context, conn grpc.ClientConnInterface) error {
	client := questionspb.NewQuestionServiceClient(conn)
	return enrolment.Membership{Conn: conn}.Follow(ctx, func(a *enrolmentpb.Advice) {
		l.mu.Lock()
		answers := l.answers
		l.mu.Unlock()
		if answers == nil || !a.GetQuestions() {
			return
		}
		taken, err := client.Take(ctx, &questionspb.TakeRequest{})
		if err != nil {
			return
		}
		for _, q := range taken.GetQuestions() {
			_ = answers(ctx, client, q.GetId()) // refused, for good reason
		}
	})
}

// joins connects as a zone that has joined with a join string and has one Dataplane, `backend`.
func (m *truth) joins(name string, answers bool, beside func(context.Context, grpc.ClientConnInterface) error) (leave func()) {
	m.t.Helper()
	dir := m.t.TempDir()
	box, err := secrets.OpenBox(secrets.Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	m.must(err)
	holder, err := enrolment.OpenHolder(dir, box, time.Now)
	m.must(err)
	join, err := m.JoinString(m.t.Context(), m.global, name)
	m.must(err)
	offer, err := enrolment.ParseJoinString(join)
	m.must(err)
	_, err = holder.Join(m.t.Context(), offer, nil, slog.New(slog.DiscardHandler))
	m.must(err)
	spec, err := resources.NewSpecOf(resources.TypeDataplane, &meshpb.Dataplane{Networking: &meshpb.Dataplane_Networking{
		Address: "127.0.0.1", Inbound: []*meshpb.Dataplane_Networking_Inbound{{Port: 1, Tags: map[string]string{"kuma.io/protocol": "http"}}}}})
	m.must(err)
	dp := &resources.Resource{Key: resources.Key{Type: resources.TypeDataplane, Mesh: "default", Name: "backend"}, Spec: spec}
	dp.Labels = resources.Home{Zone: name, SystemNamespace: resources.DefaultSystemNamespace}.ComputedLabels(dp)
	held := store.NewMemory()
	_, err = held.Apply(m.t.Context(), store.Batch{Ops: []store.Op{{Put: dp}}})
	m.must(err)
	link := kds.NewZone(kds.ZoneConfig{Zone: name, Target: holder.Current().Addresses[0],
		Credentials: credentials.NewTLS(holder.TLSConfig()), Store: held, Beside: beside, Answers: answers})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = link.Run(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// TestZonesThatLieAboutProxies: whatever a zone answers, the global says what is wrong, shows nothing that a terminal
// would obey, and serves the zone beside it.
func TestZonesThatLieAboutProxies(t *testing.T) {
	t.Parallel()
	m := &truth{newMesh(t, "zone-1")}
	l := &liar{}
	defer m.joins("zone-2", true, l.beside)()
	defer m.joins("zone-3", false, func(ctx context.Context, _ grpc.ClientConnInterface) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})()
	stats := []string{"proxy", "stats", "backend", "--zone", "zone-2"}
	says := func(body []byte) func(context.Context, questionspb.QuestionServiceClient, []byte) error {
		return func(ctx context.Context, client questionspb.QuestionServiceClient, id []byte) error {
			for number := uint32(0); ; number++ {
				size := min(len(body), 1<<20)
				_, err := client.Answer(ctx, &questionspb.AnswerPart{Id: id, Number: number, Body: body[:size], Last: size == len(body)})
				if body = body[size:]; err != nil || len(body) == 0 {
					return err
				}
			}
		}
	}
	m.isTold(m.global, []string{"zone zone-3 takes no such questions", "a version before them"}, "proxy", "stats", "backend", "--zone", "zone-3")
	m.isTold(m.global, []string{"unknown: zone zone-2 did not answer within 5s, last heard of at 20"}, stats...)
	l.set(says([]byte("server.live: 1\n\x1b]0;owned\a\x1b[2J\n")))
	if said := m.says(m.global, 0, []string{"server.live: 1"}, stats...); strings.ContainsAny(said, "\x1b\a") {
		t.Errorf("a terminal would obey %q", said)
	}
	l.set(says(make([]byte, 100<<20)))
	m.isTold(m.global, []string{"zone zone-2 answers with more than 16 MiB"}, stats...)
	l.set(says([]byte("<html>")))
	m.isTold(m.global, []string{"zone zone-2 sent an answer that is not JSON"}, "proxy", "config", "backend", "--zone", "zone-2")
	l.set(says([]byte(`{"configs":["\u001b]0;owned\u0007"]}`)))
	if said := m.says(m.global, 0, []string{"configs"}, "proxy", "config", "backend", "--zone", "zone-2"); strings.ContainsAny(said, "\x1b\a") {
		t.Errorf("a terminal would obey %q", said)
	}
	l.set(func(ctx context.Context, client questionspb.QuestionServiceClient, id []byte) error {
		_, err := client.Answer(ctx, &questionspb.AnswerPart{Id: id, Last: true, Status: 302, Detail: "\x1b[2Jgo to " + url.QueryEscape("x")})
		return err
	})
	m.isTold(m.global, []string{"zone zone-2: ", "go to x"}, stats...)
	l.set(func(context.Context, questionspb.QuestionServiceClient, []byte) error { return nil })
	m.isTold(m.global, []string{"unknown: zone zone-2 took the question, and did not finish its answer"}, stats...)

	m.apply(m.zones["zone-1"], "{type: Dataplane, mesh: default, name: beside, networking: {address: 127.0.0.1, "+
		"inbound: [{name: main, port: 1, tags: {kuma.io/protocol: http}}]}}")
	m.isTold(m.global, []string{"zone zone-1: no proxy of this Dataplane is connected"}, "proxy", "stats", "beside", "--zone", "zone-1")
	m.must(m.global.Alive())
}
