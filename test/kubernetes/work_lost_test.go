package kubernetes

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// checkLostData has the zone lose its volume, and with it the authorities of its own certificate and of the proxies'. Pods
// from before answer each other, by what they have. Their events and doctor say that they must be restarted, and then all
// do.
func (k *kube) checkLostData() {
	k.kubectl("-n", workSystem, "scale", "statefulset/"+workSet, "--replicas=0")
	k.kubectl("-n", workSystem, "wait", "--for=delete", "pod/"+workSet+"-0", "--timeout=90s")
	folder := filepath.Join(scratch, "volumes", workFolder)
	all, err := os.ReadDir(folder)
	must(k.t, err)
	for _, one := range all {
		must(k.t, os.RemoveAll(filepath.Join(folder, one.Name())))
	}
	k.kubectl("-n", workSystem, "scale", "statefulset/"+workSet, "--replicas=1")
	k.ready(workSystem, workSet)
	k.answers("http://backend", "200")
	k.eventually("the pods to say that they must be restarted", func(ctx context.Context) error {
		out, err := k.Kubectl(ctx, "-n", work, "get", "events", "--field-selector", "reason=OtherCA", "-o",
			`jsonpath={range .items[*]}{.involvedObject.name}: {.message}{"\n"}{end}`)
		if err == nil && (!strings.Contains(out, "client: ") || strings.Count(out, "backend-") != 3 || !strings.Contains(out, "Restart")) {
			err = errors.New(out)
		}
		return err
	})
	if out, _ := k.ctl(workSystem, workSet, "doctor"); !strings.Contains(out, "pods whose proxies trust another CA than this zone's: 4") {
		k.t.Errorf("doctor says\n%s", out)
	}
	k.kubectl("-n", work, "delete", "pod", "client")
	k.applies(workload)
	k.kubectl("-n", work, "rollout", "restart", "deployment/backend")
	k.kubectl("-n", work, "rollout", "status", "deployment/backend", "--timeout=180s")
	k.kubectl("-n", work, "wait", "--for=condition=Ready", "pod/client", "--timeout=120s")
	k.proxies("backend", 3)
	k.answers("http://backend", "200")
	k.eventually("doctor to name none of them", func(context.Context) error {
		if out, _ := k.ctl(workSystem, workSet, "doctor"); strings.Contains(out, "trust another CA") {
			return errors.New(out)
		}
		return nil
	})
}
