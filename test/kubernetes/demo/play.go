package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/test/kubernetes/node"
)

// play shows everything, and returns a row for all that it checked.
func (m *mesh) play(ctx context.Context) ([]row, error) {
	var rows []row
	err := m.step("playing the user stories", func() error {
		for _, s := range stories() {
			told, err := m.tell(ctx, s)
			rows = append(rows, told...)
			if err != nil {
				return fmt.Errorf("%s: %w", s.title, err)
			}
		}
		return nil
	})
	if err != nil {
		return rows, err
	}
	err = m.step("waiting for slow answers, by a producer's and a consumer's policy", func() error {
		shown, err := m.showTimeouts(ctx)
		rows = append(rows, shown...)
		return err
	})
	if err != nil {
		return rows, err
	}
	err = m.step("denying in the shadow, and then in earnest", func() error {
		shown, err := m.showShadow(ctx)
		rows = append(rows, shown...)
		return err
	})
	if err != nil {
		return rows, err
	}
	err = m.step("looking for roles and copies", func() error {
		shown, err := m.showRoles(ctx)
		rows = append(rows, shown...)
		return err
	})
	return rows, err
}

// tell plays one story: every policy is programmed before the calls are made.
func (m *mesh) tell(ctx context.Context, s story) ([]row, error) {
	var rows []row
	for _, a := range s.applied {
		programmed, err := m.write(ctx, a)
		if err != nil {
			return rows, err
		}
		for _, r := range programmed {
			r.title = s.title
			rows = append(rows, r)
		}
	}
	for _, c := range s.calls {
		rows = append(rows, m.try(ctx, s.title, c))
	}
	for i := range s.applied {
		if err := m.remove(ctx, s.applied[len(s.applied)-1-i]); err != nil {
			return rows, err
		}
	}
	for _, c := range s.calls { // the next story does not see them
		if c.want.allowed {
			c.want = deny("")
			if r := m.try(ctx, s.title, c); !r.ok() {
				return rows, fmt.Errorf("the policies were removed, but %s: %s", r.what, r.got)
			}
		}
	}
	return rows, nil
}

// documents reads a file as its author writes it: in a cluster as objects, the operator's in the system namespace. The
// Service in zone-1 is a MeshService already.
func (m *mesh) documents(a applied) ([]*resources.Resource, error) {
	raw, err := os.ReadFile(m.path(a))
	if err != nil {
		return nil, err
	}
	all, err := resources.DecodeDocuments(raw, resources.DecodeOptions{})
	if err != nil {
		return nil, err
	}
	var out []*resources.Resource
	for _, r := range all {
		if a.on != zone2 && r.Type == resources.TypeMeshService {
			continue
		}
		r = r.Clone()
		if a.on == onGlobal {
			r.Namespace = globalNamespace
		}
		out = append(out, r)
	}
	return out, nil
}

// path returns where a file is: in this folder or in test/demo.
func (m *mesh) path(a applied) string {
	own := filepath.Join(m.root, "test", "kubernetes", "demo", a.file)
	if _, err := os.Stat(own); err == nil {
		return own
	}
	return filepath.Join(m.root, "test", "demo", a.file)
}

// clusterOf returns the cluster in which a server's users write; nil for zone-2, which has none.
func (m *mesh) clusterOf(server string) *node.Node {
	return map[string]*node.Node{onGlobal: m.global, zone1: m.one, zone3: m.three}[server]
}

// write applies a file by kubectl, and waits until its policies are programmed everywhere. In zone-2 it is causewayctl
// that applies it.
func (m *mesh) write(ctx context.Context, a applied) ([]row, error) {
	all, err := m.documents(a)
	k := m.clusterOf(a.on)
	if err != nil {
		return nil, err
	}
	if k == nil {
		_, err := m.beside.CTL(ctx, m.two, nil, "apply", "-f", m.path(a))
		return nil, err
	}
	var rows []row
	for _, r := range all {
		if err := cluster.Until(ctx, patience, "the webhook to answer", func(ctx context.Context) error {
			return apply(ctx, k, string(resources.AppendKubernetes(nil, r)))
		}); err != nil {
			return rows, err
		}
		one := row{what: fmt.Sprintf("kubectl apply, on %s: %s %s", a.on, r.Type, r.Name), want: "Programmed"}
		kind := strings.ToLower(string(r.Type))
		if _, err := kubectl(ctx, k, "-n", r.Namespace, "wait", "--for=condition=Programmed", kind+"/"+r.Name, "--timeout=90s"); err == nil {
			one.got = one.want
		}
		one.note, err = kubectl(ctx, k, "-n", r.Namespace, "get", kind, r.Name, "-o", `jsonpath={.status.conditions[?(@.type=="Programmed")].message}`)
		if rows = append(rows, one); err != nil {
			return rows, err
		}
	}
	return rows, nil
}

func (m *mesh) remove(ctx context.Context, a applied) error {
	k := m.clusterOf(a.on)
	if k == nil {
		_, err := m.beside.CTL(ctx, m.two, nil, "delete", "-f", m.path(a))
		return err
	}
	all, err := m.documents(a)
	for _, r := range all {
		if err == nil {
			_, err = kubectl(ctx, k, "-n", r.Namespace, "delete", strings.ToLower(string(r.Type)), r.Name)
		}
	}
	return err
}

// try calls until the outcome is the expected one.
func (m *mesh) try(ctx context.Context, title string, c call) row {
	r := row{title: title, what: c.from + " calls " + c.to, want: c.want.word()}
	if c.port != 0 {
		r.what += fmt.Sprintf(":%d", c.port)
	}
	err := cluster.Until(ctx, patience, r.what, func(ctx context.Context) error {
		got, err := m.judge(ctx, c)
		if err != nil {
			return err
		}
		if r.got, r.note = got.word(), got.by; got.allowed != c.want.allowed || c.want.by != "" && got.by != c.want.by {
			return fmt.Errorf("it is %s by %s", r.got, r.note)
		}
		return nil
	})
	if err != nil {
		r.want, r.got = c.want.word()+" "+c.want.by, err.Error()
	}
	return r
}

// judge calls once. Pods and workloads call through their proxy, clients of zone-2 with their own identity.
func (m *mesh) judge(ctx context.Context, c call) (outcome, error) {
	if w := m.workloads[c.to]; w != nil {
		v, err := w.Judge(ctx, m.clients[c.from], httpPort, "/")
		return outcome{v.Allowed(), v.DecidedBy}, err
	}
	switch status, err := m.status(ctx, c); {
	case err != nil:
		return outcome{}, err
	case status == http.StatusOK:
		return allow(""), nil
	case status == http.StatusForbidden:
		return deny(""), nil
	default:
		return outcome{}, fmt.Errorf("it is answered with %d", status)
	}
}

// namespaces are those of pods that are not in the namespace default.
var namespaces = map[string]string{prometheus1: "observability", consumer: "frontend-ns"}

// status calls backend of zone-1 once, and returns the status of the answer. In zone-1, backend is a Service; in
// zone-3, it has the name that a HostnameGenerator gives it; the proxy on this machine has an outbound.
func (m *mesh) status(ctx context.Context, c call) (int, error) {
	if w := m.workloads[c.from]; w != nil {
		status, _, err := w.Call(ctx, "backend", "/"+c.path)
		return status, err
	}
	zone, name, _ := strings.Cut(c.from, "/")
	host, port := "backend.backend-ns", max(c.port, 80)
	args := []string{"-n", cmp.Or(namespaces[c.from], "default"), "exec", name, "-c", "curl", "--", "/usr/bin/curl", "-s", "-m", "5", "-o", "/dev/null",
		"-w", "%{http_code}"}
	if zone == zone3 {
		host += ".svc.zone-1.mesh.local"
		address, err := m.resolve(ctx, host)
		if err != nil {
			return 0, err
		}
		args = append(args, "--resolve", fmt.Sprintf("%s:%d:%s", host, port, address))
	}
	out, err := kubectl(ctx, m.clusterOf(zone), append(args, fmt.Sprintf("http://%s:%d/%s", host, port, c.path))...)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(out))
}

// resolve asks the nameserver of zone-3, like the resolver of a cluster that forwards these names to it.
func (m *mesh) resolve(ctx context.Context, host string) (string, error) {
	server, err := kubectl(ctx, m.three, "-n", otherNamespace, "get", "service", otherSet+"-dns", "-o", "jsonpath={.spec.clusterIP}")
	if err != nil {
		return "", err
	}
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(server, "53"))
	}}
	all, err := resolver.LookupNetIP(ctx, "ip4", host+".")
	if err != nil {
		return "", err
	}
	return all[0].String(), nil
}

func (o outcome) word() string {
	if o.allowed {
		return "allowed"
	}
	return "denied"
}
