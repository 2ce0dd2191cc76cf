package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// rounds is how often the leader is killed.
var rounds = 3

// checkKilled kills the leader while users write.
func (r *replicas) checkKilled(keys string) {
	written := 0
	for round := range rounds {
		leader, other := r.leader()
		stop := r.writes(&written, "stalls")
		address := r.address(other)
		began := r.kill(leader)
		r.serves(other, 2, cmp.Or(*takeover, patience))
		took := time.Since(began)
		stop()
		r.t.Logf("round %d: %s is killed, and %s serves its proxies after %s; %d policies were written", round, leader, other, took.Round(time.Millisecond), written)
		if issued, err := r.metric(r.t.Context(), address, "causeway_identity_issued_total"); err != nil || issued != 0 {
			r.t.Errorf("the next leader issued %v identities (%v)", issued, err)
		}
		now, _ := r.leader()
		if now != other {
			r.t.Errorf("%s leads, want %s", now, other)
		}
		r.kubectl("-n", r.namespace, "wait", "pod/"+leader, "--for=condition=Ready", "--timeout=90s")
	}
	if got := r.keys(); got != keys {
		r.t.Errorf("the keys were\n%s\nand are\n%s", keys, got)
	}
	leader, other := r.leader()
	must(r.t, r.process(other).Kill())
	r.kubectl("-n", r.namespace, "wait", "pod/"+other, "--for=condition=Ready", "--timeout=90s")
	if now, _ := r.leader(); now != leader {
		r.t.Errorf("%s leads after its follower was killed, want %s", now, leader)
	}
	r.has("the store", r.set, written)
}

// policyNumber is a permission for the backend, of a namespace.
func policyNumber(i int, namespace string) string {
	return fmt.Sprintf(`{"apiVersion": "kuma.io/v1alpha1", "kind": "MeshTrafficPermission", "metadata": {"name": "written-%d", "namespace": %q},
 "spec": {"targetRef": {"kind": "Dataplane", "labels": {"app": "backend"}}, "default": {"allow": [{"spiffeId": {"type": "Exact", "value": "spiffe://a/%d"}}]}}}`, i, namespace, i)
}

// alive is how long the kubelet leaves a server alone that does not answer: three probes, 10 s apart. On a busy machine,
// proxies take longer to move.
const alive = 25 * time.Second

// checkStopped stops the leader for longer than its lease, and lets it go on: it does not serve.
func (r *replicas) checkStopped() {
	leader, other := r.leader()
	p, old := r.process(leader), r.address(leader)
	must(r.t, p.Signal(syscall.SIGSTOP))
	began := time.Now()
	r.serves(other, 2, patience) // a stopped process closes no connection: proxies notice by their pings
	restarts := r.kubectl("-n", r.namespace, "get", "pod", leader, "-o", "jsonpath={.status.containerStatuses[0].restartCount}")
	must(r.t, p.Signal(syscall.SIGCONT))
	paused := time.Since(began)
	r.eventually("the old leader to wait", func(ctx context.Context) error {
		out, err := r.Kubectl(ctx, "-n", r.namespace, "logs", leader, "--tail=5")
		if err == nil && !strings.Contains(out, "this replica waits") {
			err = errors.New(out)
		}
		return err
	})
	if conn, err := net.DialTimeout("tcp", net.JoinHostPort(old, "5678"), time.Second); err == nil {
		_ = conn.Close()
		r.t.Error("the old leader serves")
	}
	if now, _ := r.leader(); now != other {
		r.t.Errorf("%s leads, want %s", now, other)
	}
	if now := r.kubectl("-n", r.namespace, "get", "pod", leader, "-o", "jsonpath={.status.containerStatuses[0].restartCount}"); now != restarts && paused < alive {
		r.t.Errorf("its container was started again: %s times, before %s", now, restarts)
	}
	r.serves(other, 2, patience)
}

// checkAlone takes the API server away for half a minute: nobody leads, proxies go on, and afterwards one does.
func (r *replicas) checkAlone() {
	leader, _ := r.leader()
	at := r.address(leader)
	backend := r.kubectl("get", "pod", "-n", "stalls", "-l", "app=backend", "-o", "jsonpath={.items[0].status.podIP}")
	api := r.program("kube-apiserver")
	must(r.t, api.Signal(syscall.SIGSTOP))
	began := time.Now()
	must(r.t, cluster.Until(r.t.Context(), patience, "the leader to stop", func(context.Context) error {
		conn, err := net.DialTimeout("tcp", net.JoinHostPort(at, "5678"), time.Second)
		if err == nil {
			return errors.Join(errors.New("it serves"), conn.Close())
		}
		return nil
	}))
	r.t.Logf("the leader stops %s after the API server", time.Since(began).Round(time.Millisecond))
	for time.Since(began) < 30*time.Second {
		client := http.Client{Timeout: time.Second}
		if answer, err := client.Get("http://" + backend + ":8080/"); err == nil {
			_ = answer.Body.Close()
			r.t.Fatalf("the proxy lets a stranger in: %d", answer.StatusCode)
		}
		time.Sleep(500 * time.Millisecond)
	}
	must(r.t, api.Signal(syscall.SIGCONT))
	began = time.Now()
	r.eventually("a leader that serves", func(ctx context.Context) error {
		now, _ := r.leader()
		got, err := r.metric(ctx, r.address(now), "causeway_xds_streams")
		if err == nil && got != 2 {
			err = fmt.Errorf("%s serves %v", now, got)
		}
		return err
	})
	r.t.Logf("a leader serves the proxies %s after the API server is back", time.Since(began).Round(time.Millisecond))
}

// checkDeletedSecrets deletes what the replicas share: the leader writes it again, and the next one has everything.
func (r *replicas) checkDeletedSecrets() {
	names := []string{r.set + "-core", r.set + "-log", r.set + "-store-0", r.set + "-holdings-0"}
	r.kubectl(append([]string{"-n", r.namespace, "delete", "secret"}, names...)...)
	r.eventually("the Secrets to be there", func(ctx context.Context) error {
		out, err := r.Kubectl(ctx, append([]string{"-n", r.namespace, "get", "secret"}, names...)...)
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	leader, other := r.leader()
	r.kubectl("-n", r.namespace, "delete", "lease", r.set)
	r.eventually("the leader to make its Lease again", func(ctx context.Context) error {
		holder, err := r.Kubectl(ctx, "-n", r.namespace, "get", "lease", r.set, "-o", "jsonpath={.spec.holderIdentity}")
		if err == nil && !strings.HasPrefix(holder, leader+"/") {
			err = fmt.Errorf("its holder is %q", holder)
		}
		return err
	})
	must(r.t, r.process(leader).Kill())
	r.serves(other, 2, patience)
}

// checkRestarted restarts both, as an upgrade does: a leader that is told to end gives the lead away.
func (r *replicas) checkRestarted() {
	r.kubectl("-n", r.namespace, "rollout", "restart", "statefulset/"+r.set)
	r.ready(r.namespace, r.set)
	leader, _ := r.leader()
	r.serves(leader, 2, patience)
	if issued, err := r.metric(r.t.Context(), r.address(leader), "causeway_identity_issued_total"); err != nil || issued != 0 {
		r.t.Errorf("the next leader issued %v identities (%v)", issued, err)
	}
	account := "system:serviceaccount:" + r.namespace + ":" + r.set
	for _, c := range [][]string{{"get", "secrets/the-key"}, {"create", "secrets"}, {"list", "secrets"}, {"patch", "pods/other-0"}, {"update", "leases/other"}} {
		if out, _ := r.Kubectl(r.t.Context(), "auth", "can-i", c[0], c[1], "--as", account, "-n", r.namespace); !strings.Contains(out, "no") {
			r.t.Errorf("it may %s: %s", strings.Join(c, " "), out)
		}
	}
}
