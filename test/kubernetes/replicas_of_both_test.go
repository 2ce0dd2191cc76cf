package kubernetes

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// TestKubernetesReplicasOfAGlobal installs a global with two replicas, whose users write by kubectl, and a zone that keeps
// its store itself. It kills the leader while they write.
func TestKubernetesReplicasOfAGlobal(t *testing.T) {
	r := prepareReplicas(t, "two-globals", "g-causeway-global")
	r.install("global", "g", r.namespace, "replicas=2", "persistence.enabled=false", "kubernetes.enabled=true", "secretsKey.secretName=the-key")
	r.ready(r.namespace, r.set)
	r.member("zone-9", "z", r.set, "persistence.enabled=false")
	keys := r.keys()
	written := 0
	for round := range rounds {
		leader, other := r.leader()
		stop := r.writes(&written, r.namespace)
		killed := r.kill(leader)
		took := r.awaits(other, `causeway_kds_connected{zone="zone-9"}`, 1, killed)
		stop()
		t.Logf("round %d: %s is killed, and %s has the zone's session after %s; %d policies were written", round, leader, other, took, written)
		r.kubectl("-n", r.namespace, "wait", "pod/"+leader, "--for=condition=Ready", "--timeout=90s")
		if now, _ := r.leader(); now != other {
			t.Errorf("%s leads, want %s", now, other)
		}
	}
	r.has("the global", r.set, written)
	r.has("the zone", "z-causeway-zone", written)
	if got := r.keys(); got != keys {
		t.Errorf("the keys were\n%s\nand are\n%s", keys, got)
	}
	r.eventually("get zones to say who leads", func(context.Context) error {
		leader, other := r.leader()
		if out := r.ctl("get", "zones"); !strings.Contains(out, "replicas: "+leader+"-") || !strings.Contains(out, " leads, "+other+" waits") {
			return fmt.Errorf("it says\n%s", out)
		}
		return nil
	})
}

// TestKubernetesReplicasOfAMember has a zone with two replicas join a global, and kills the one that leads while users of
// both write.
func TestKubernetesReplicasOfAMember(t *testing.T) {
	r := prepareReplicas(t, "two-members", "r-causeway-zone")
	const set = "g-causeway-global"
	r.install("global", "g", r.namespace, "persistence.enabled=false")
	r.ready(r.namespace, set)
	r.member("zone-1", "r", set, "replicas=2", "persistence.enabled=false", "kubernetes.enabled=true", "injection.enabled=true",
		"injection.envoyImage=localhost/envoy:dev", "secretsKey.secretName=the-key")
	r.workload()
	first, _ := r.leader()
	r.serves(first, 2, patience)
	keys, credentials := r.keys(), r.certificates(set)
	written := 0
	for round := range rounds {
		leader, other := r.leader()
		stop := r.writes(&written, "stalls")
		killed := r.kill(leader)
		took := r.awaits(other, `causeway_kds_connected{zone="zone-1"}`, 1, killed)
		r.serves(other, 2, patience)
		stop()
		t.Logf("round %d: %s is killed, and %s has the session with the global after %s; %d policies were written", round, leader, other, took, written)
		if issued, err := r.metric(t.Context(), r.address(other), "causeway_identity_issued_total"); err != nil || issued != 0 {
			t.Errorf("the next leader issued %v identities (%v)", issued, err)
		}
		name := fmt.Sprintf("of-global-%d", round)
		out, err := r.feed(set, fmt.Sprintf(`{"type": "MeshTrafficPermission", "mesh": "default", "name": %q,
 "spec": {"targetRef": {"kind": "Mesh"}, "default": {"allow": [{"spiffeId": {"type": "Exact", "value": "spiffe://a/b"}}]}}}`, name))
		if err != nil {
			t.Fatal(out, err)
		}
		r.eventually("the zone to have "+name, func(context.Context) error { return r.lists(other, name) })
		r.kubectl("-n", r.namespace, "wait", "pod/"+leader, "--for=condition=Ready", "--timeout=90s")
	}
	r.has("the zone", r.set, written)
	r.has("the global", set, written)
	if got := r.keys(); got != keys {
		t.Errorf("the keys were\n%s\nand are\n%s", keys, got)
	}
	if got := r.certificates(set); got != credentials {
		t.Errorf("the zone's certificates were\n%s\nand are\n%s", credentials, got)
	}
}
