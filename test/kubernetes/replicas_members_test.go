package kubernetes

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/enrolment"
)

// podOf is the pod of a StatefulSet that serves: of the replicas', the one that leads.
func (r *replicas) podOf(set string) string {
	r.t.Helper()
	if set != r.set {
		return set + "-0"
	}
	leader, _ := r.leader()
	return leader
}

// feed gives causewayctl apply, in the pod of another StatefulSet, a document.
func (r *replicas) feed(set, document string) (string, error) {
	return r.Feed(r.t.Context(), document, "-n", r.namespace, "exec", "-i", r.podOf(set), "--", "/usr/bin/causewayctl", "apply", "-f", "-")
}

// member installs a zone that joins the global of a StatefulSet.
func (r *replicas) member(zone, name, global string, more ...string) {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), filepath.Join(r.Programs, "kubectl"), "--kubeconfig", r.Kubeconfig(), "-n", r.namespace, "exec",
		r.podOf(global), "--", "/usr/bin/causewayctl", "zone", "create", zone)
	join, err := cmd.Output()
	must(r.t, err)
	r.kubectl("-n", r.namespace, "create", "secret", "generic", zone+"-join", "--from-literal=join="+strings.TrimSpace(string(join)))
	r.install("zone", name, r.namespace, append([]string{"join.secretName=" + zone + "-join"}, more...)...)
	r.ready(r.namespace, name+"-causeway-zone")
}

// writes has a user write policies into a namespace, one after another, until the returned function is called. What the
// webhook does not answer is not written.
func (r *replicas) writes(written *int, namespace string) (stop func()) {
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ended:
				return
			default:
			}
			if _, err := r.Apply(r.t.Context(), policyNumber(*written, namespace)); err == nil {
				*written++
			}
		}
	}()
	time.Sleep(time.Second) // it writes
	return func() {
		close(ended)
		<-done
	}
}

// kill kills the server of a pod hard, and returns when.
func (r *replicas) kill(pod string) time.Time {
	r.t.Helper()
	must(r.t, r.process(pod).Kill())
	return time.Now()
}

// awaits waits until a metric of a pod has a value, and returns how long after a time that was.
func (r *replicas) awaits(pod, metric string, want float64, since time.Time) time.Duration {
	r.t.Helper()
	address, within := r.address(pod), cmp.Or(*takeover, patience)
	for {
		got, err := r.metric(r.t.Context(), address, metric)
		took := time.Since(since)
		if err == nil && got == want {
			if took > within {
				r.t.Errorf("%s of %s is %v after %s, want within %s", metric, pod, got, took, within)
			}
			return took.Round(time.Millisecond)
		}
		if took > patience {
			r.t.Fatalf("%s of %s is %v after %s, want %v (%v)", metric, pod, got, took, want, err)
		}
		time.Sleep(20 * time.Millisecond) // it asks again
	}
}

// lists returns an error unless the server in a pod has permissions with all names.
func (r *replicas) lists(pod string, names ...string) error {
	out, err := r.Kubectl(r.t.Context(), "-n", r.namespace, "exec", pod, "--", "/usr/bin/causewayctl", "get", "mtp", "-A", "-o", "name")
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	for _, name := range names {
		if !strings.Contains(out, "_"+name+"_") {
			return fmt.Errorf("%s of %d is missing in %.300s", name, len(names), out)
		}
	}
	return nil
}

// has waits until the server of a StatefulSet has all policies that were written.
func (r *replicas) has(who, set string, written int) {
	r.t.Helper()
	var names []string
	for i := range written {
		names = append(names, fmt.Sprintf("written-%d", i))
	}
	if written == 0 {
		r.t.Fatal("nothing was written")
	}
	r.eventually(who+" to have what was written", func(context.Context) error { return r.lists(r.podOf(set), names...) })
}

// certificates lists the certificates that a global has issued to zone-1.
func (r *replicas) certificates(global string) string {
	r.t.Helper()
	pod := r.podOf(global)
	token := strings.Fields(r.kubectl("-n", r.namespace, "exec", pod, "--", "/usr/bin/causewayctl", "user", "token", "--name", "alice", "--group", "mesh-system:admin"))
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // a pod of this test
	q, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet,
		"https://"+net.JoinHostPort(r.address(pod), "5681")+"/zones/zone-1/_credentials", http.NoBody)
	must(r.t, err)
	q.Header.Set("Authorization", "Bearer "+token[len(token)-1])
	answer, err := client.Do(q)
	must(r.t, err)
	defer answer.Body.Close()
	var all enrolment.Credentials
	must(r.t, json.NewDecoder(answer.Body).Decode(&all))
	if len(all.Certificates) == 0 {
		r.t.Fatalf("the global has issued no certificates: %s", answer.Status)
	}
	var serials []string
	for i := range all.Certificates {
		serials = append(serials, fmt.Sprint(all.Certificates[i].Serial))
	}
	slices.Sort(serials)
	return strings.Join(serials, "\n")
}
