package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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

// documents reads a file of test/demo, as its author writes it: in a cluster as objects, the operator's in the system
// namespace. The Service in zone-1 is a MeshService already.
func (m *mesh) documents(a applied) ([]*resources.Resource, error) {
	raw, err := os.ReadFile(filepath.Join(m.root, "test", "demo", a.file))
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

// clusterOf returns the cluster in which a server's users write; nil for zone-2, which has none.
func (m *mesh) clusterOf(server string) *node.Node {
	return map[string]*node.Node{onGlobal: m.global, zone1: m.one}[server]
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
		_, err := m.beside.CTL(ctx, m.two, nil, "apply", "-f", filepath.Join(m.root, "test", "demo", a.file))
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
		_, err := m.beside.CTL(ctx, m.two, nil, "delete", "-f", filepath.Join(m.root, "test", "demo", a.file))
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

// judge calls once. Pods call by their proxies, and clients of zone-2 with identities of their own.
func (m *mesh) judge(ctx context.Context, c call) (outcome, error) {
	if w := m.workloads[c.to]; w != nil {
		v, err := w.Judge(ctx, m.clients[c.from], httpPort, "/")
		return outcome{v.Allowed(), v.DecidedBy}, err
	}
	_, name, _ := strings.Cut(c.from, "/")
	namespace := map[bool]string{true: "observability", false: "default"}[name == "prometheus"]
	out, err := kubectl(ctx, m.one, "-n", namespace, "exec", name, "-c", "curl", "--", "/usr/bin/curl", "-s", "-m", "5", "-o", "/dev/null",
		"-w", "%{http_code}", fmt.Sprintf("http://backend.backend-ns:%d/", max(c.port, 80)))
	if err != nil {
		return outcome{}, err
	}
	switch strings.TrimSpace(out) {
	case "200":
		return allow(""), nil
	case "403":
		return deny(""), nil
	}
	return outcome{}, fmt.Errorf("it is answered with %s", out)
}

func (o outcome) word() string {
	if o.allowed {
		return "allowed"
	}
	return "denied"
}
