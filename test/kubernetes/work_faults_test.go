package kubernetes

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// TestKubernetesWorkFaults breaks what pods with proxies depend on, while they start and while they are called.
func TestKubernetesWorkFaults(t *testing.T) {
	k := newWork(t, 3)
	t.Run("many pods at once", func(t *testing.T) { k.as(t).checkCrowd() })
	t.Run("pods deleted while they start", func(t *testing.T) { k.as(t).checkDeleted() })
	t.Run("the API server away during a scale-up", func(t *testing.T) { k.as(t).checkAPIServerAway() })
	t.Run("an expired token", func(t *testing.T) { k.as(t).checkExpired() })
	t.Run("clocks that differ", func(t *testing.T) { k.as(t).checkClocks() })
	t.Run("the zone killed during a rolling update", func(t *testing.T) { k.as(t).checkKilledInRollout() })
	t.Run("an image that is missing", func(t *testing.T) { k.as(t).checkMissingImage() })
	t.Run("a mesh that does not exist", func(t *testing.T) { k.as(t).checkNoMesh() })
	t.Run("a zone that lost its data", func(t *testing.T) { k.as(t).checkLostData() })
}

// noneLost checks what the load of the client says.
func (k *kube) noneLost(said string) {
	k.t.Helper()
	k.t.Log(said)
	if !strings.HasPrefix(said, "requests ") || !strings.Contains(said, " failed 0 ") {
		k.t.Errorf("the client says %s", said)
	}
}

// checkKilledInRollout kills the zone while pods are replaced: those that are there answer, and the rest follows.
func (k *kube) checkKilledInRollout() {
	k.noneLost(k.loads(100, 60, func() {
		k.kubectl("-n", work, "rollout", "restart", "deployment/backend")
		k.eventually("the first new pod", func(ctx context.Context) error {
			out, err := k.Kubectl(ctx, "-n", work, "get", "deployment", "backend", "-o", "jsonpath={.status.updatedReplicas}")
			if err == nil && (out == "" || out == "0") {
				err = errors.New("there is none")
			}
			return err
		})
		must(k.t, k.processIn(workSet+"-0", "--kubernetes-webhook-configuration=").Kill())
		k.kubectl("-n", work, "rollout", "status", "deployment/backend", "--timeout=120s")
	}))
}

// checkMissingImage updates a Deployment while the image of Envoy cannot be had: the old pods answer, and the new one says
// what is missing. With the image, the update goes on.
func (k *kube) checkMissingImage() {
	k.upgradeWork("injection.envoyImage=localhost/missing:dev")
	k.ready(workSystem, workSet)
	k.noneLost(k.loads(100, 30, func() {
		k.kubectl("-n", work, "rollout", "restart", "deployment/backend")
		k.eventually("the pod to say what is missing", func(ctx context.Context) error {
			return shows(ctx, k, "localhost/missing:dev", "-n", work, "get", "events", "--field-selector", "type=Warning",
				"-o", "jsonpath={.items[*].message}")
		})
	}))
	k.upgradeWork()
	k.ready(workSystem, workSet)
	k.kubectl("-n", work, "rollout", "restart", "deployment/backend")
	k.kubectl("-n", work, "rollout", "status", "deployment/backend", "--timeout=120s")
}

// checkNoMesh: a pod of a mesh that does not exist does not become ready, and says why. Envoy waits 15 s for a
// configuration by itself, for clusters and then for listeners.
func (k *kube) checkNoMesh() {
	k.applies(strings.Replace(deployment("lost", 1, `serve, -http, ":8080"`), "metadata: {labels: {app: lost}}",
		"metadata: {labels: {app: lost, kuma.io/mesh: nowhere}}", 1))
	k.eventually("the pod to say why", func(ctx context.Context) error {
		return shows(ctx, k, `mesh "nowhere" not found`, "-n", work, "get", "events", "--field-selector", "reason=NoMesh", "-o", "jsonpath={.items[*].message}")
	})
	if out, err := k.Kubectl(k.t.Context(), "-n", work, "wait", "--for=condition=Ready", "pod", "-l", "app=lost", "--timeout=50s"); err == nil {
		k.t.Error(out)
	}
	k.kubectl("-n", work, "delete", "deployment,service", "lost")
}
