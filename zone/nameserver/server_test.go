package nameserver

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestServe: answers follow the store: whose name it is, where it is, and that nobody has it any more.
func TestServe(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	home := resources.Home{Zone: "zone-1"}
	put := func(typ resources.Type, mesh, namespace, name, status, spec string) {
		t.Helper()
		parsed, err := resources.NewSpec(typ, []byte(spec))
		if err != nil {
			t.Fatal(err)
		}
		r := &resources.Resource{Key: resources.Key{Type: typ, Mesh: mesh, Namespace: namespace, Name: name}, Spec: parsed, Labels: map[string]string{}}
		if status != "" {
			r.Status = []byte(status)
		}
		if _, err := s.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: r}}}); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, conn, Config{Store: s, Home: home}) }()
	is := func(name, want string) {
		t.Helper()
		got := ""
		for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if got = ask(t, conn.LocalAddr().String(), name); strings.HasPrefix(got, want) {
				return
			}
		}
		t.Errorf("%s: %s, want %s", name, got, want)
	}
	const service = `{"ports":[{"port":80}]}`
	put(resources.TypeMesh, "", "", "default", "", "{}")
	put(resources.TypeMesh, "", "", "other", "", "{}")
	is("backend.shop.svc.mesh.local.", "ServerFailure")
	put(resources.TypeHostnameGenerator, "", "", "services", "",
		`{"selector":{"meshService":{}},"template":"{{ .DisplayName }}.{{ .Namespace }}.svc.mesh.local"}`)
	is("backend.shop.svc.mesh.local.", "NameError")
	put(resources.TypeMeshService, "default", "shop", "backend", `{"vips":[{"ip":"10.1.0.7"}]}`, service)
	is("backend.shop.svc.mesh.local.", "Success 10.1.0.7 30")
	put(resources.TypeMeshService, "default", "shop", "headless", "", service)
	is("headless.shop.svc.mesh.local.", "Success 241.")
	put(resources.TypeMeshService, "other", "shop", "theirs", `{"vips":[{"ip":"10.1.0.8"}]}`, service)
	is("theirs.shop.svc.mesh.local.", "Success 10.1.0.8 30")
	put(resources.TypeMeshService, "other", "shop", "backend", `{"vips":[{"ip":"10.1.0.9"}]}`, service)
	is("backend.shop.svc.mesh.local.", "NameError")
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestQuestionsDoNotReadTheStore: how often the store is read follows from the time and from changes, whether there are names
// or not. Anybody may ask.
func TestQuestionsDoNotReadTheStore(t *testing.T) {
	t.Parallel()
	for _, generators := range []int{0, 1} {
		s := store.NewMemory()
		put := func(typ resources.Type, name, text string) {
			t.Helper()
			spec, err := resources.NewSpec(typ, []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			r := &resources.Resource{Key: resources.Key{Type: typ, Name: name}, Spec: spec, Labels: map[string]string{}}
			if _, err := s.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: r}}}); err != nil {
				t.Fatal(err)
			}
		}
		for range generators {
			put(resources.TypeHostnameGenerator, "services", `{"selector":{"meshService":{}},"template":"{{ .DisplayName }}.mesh.local"}`)
		}
		n := &names{cfg: &Config{Store: s, Home: resources.Home{Zone: "zone-1"}}}
		now := time.Now()
		isRead := func(at time.Time) bool {
			n.table["mark"] = nil
			n.renew(at)
			_, still := n.table["mark"]
			return !still
		}
		n.renew(now)
		if n.ready != (generators > 0) || isRead(now.Add(time.Hour)) {
			t.Errorf("%d generators: ready is %v, or the store is read again unchanged", generators, n.ready)
		}
		put(resources.TypeMesh, "default", "{}")
		if isRead(now.Add(renewTime-1)) || !isRead(now.Add(renewTime)) {
			t.Errorf("%d generators: the store is not read again after %s", generators, renewTime)
		}
	}
}

// ask sends a question until it has an answer.
func ask(t *testing.T, address, name string) string {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "udp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	buffer := make([]byte, maxAnswer)
	for range 30 {
		_, _ = c.Write(query(t, name, dnsmessage.TypeA, dnsmessage.ClassINET))
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
		if n, err := c.Read(buffer); err == nil {
			return text(t, buffer[:n])
		}
	}
	return "nothing"
}
