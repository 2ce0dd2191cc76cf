package kubernetes

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestKubernetesReplicasByUpgrade installs a zone with one replica, gives it a second one, and takes it away again, after
// that one has led: the first goes on with all that was written meanwhile. Without the Lease it does not start.
func TestKubernetesReplicasByUpgrade(t *testing.T) {
	r := prepareReplicas(t, "more-and-less", "u-causeway-zone")
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_, _ = runHelm(ctx, r.Kubeconfig(), "uninstall", "u", "--namespace", r.namespace)
		_, _ = r.Kubectl(ctx, "delete", "pv", r.namespace+"-data-"+r.set+"-0", r.namespace+"-data-"+r.set+"-1", "--wait=false")
	})
	r.volumes("folders", true, r.namespace+"/data-"+r.set+"-0", r.namespace+"/data-"+r.set+"-1")
	change := func(verb, replicas string) {
		t.Helper()
		r.helm(verb, "u", filepath.Join("deploy", "charts", "causeway-zone"), "--namespace", r.namespace, "--set",
			"zone=zone-1,kubernetes.enabled=true,secretsKey.secretName=the-key,replicas="+replicas, "--wait", "--timeout", "5m")
	}
	written := 0
	write := func() {
		t.Helper()
		r.eventually("a policy to be taken", func(ctx context.Context) error {
			out, err := r.Apply(ctx, policyNumber(written, r.namespace))
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
		written++
	}
	change("install", "1")
	write()
	keys := keysOf(r.kubectl("-n", r.namespace, "exec", r.set+"-0", "--", "/usr/bin/causewayctl", "keys", "list"))

	change("upgrade", "2")
	write()
	if leader, other := r.leader(); leader == r.set+"-0" { // its volume is old then
		r.awaits(other, "causeway_replica_stored", 1, r.kill(leader))
	}
	r.eventually("the second replica to lead", func(context.Context) error {
		if leader, _ := r.leader(); leader != r.set+"-1" {
			return fmt.Errorf("%s leads", leader)
		}
		return nil
	})
	write()

	change("upgrade", "1")
	if leader, _ := r.leader(); leader != r.set+"-0" {
		t.Errorf("%s leads", leader)
	}
	write()
	r.has("the replica that is left", r.set, written)
	if got := r.keys(); got != keys {
		t.Errorf("the keys were\n%s\nand are\n%s", keys, got)
	}

	// What was installed at first knows nothing of the Lease.
	r.helm("rollback", "u", "1", "--namespace", r.namespace)
	r.eventually("the server to say why it does not start", func(ctx context.Context) error {
		out, err := r.Kubectl(ctx, "-n", r.namespace, "logs", r.set+"-0", "--tail=20")
		if err == nil && !strings.Contains(out, "replicas have shared the content of this data folder") {
			err = fmt.Errorf("it says %s", out)
		}
		return err
	})
	change("upgrade", "1")
	r.has("the replica that is back", r.set, written)
	if got := r.keys(); got != keys {
		t.Errorf("the keys were\n%s\nand are\n%s", keys, got)
	}
}
