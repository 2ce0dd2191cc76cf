package kubernetes

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/test/kubernetes/images"
)

// buildAhead builds the library by which a program's clock is 40 days ahead.
func (k *kube) buildAhead() (path string) {
	k.t.Helper()
	path = filepath.Join(k.t.TempDir(), "ahead.so")
	source := filepath.Join(root, "test", "kubernetes", "testdata", "ahead.c")
	if out, err := exec.CommandContext(k.t.Context(), "cc", "-shared", "-fPIC", "-O2", "-o", path, source).CombinedOutput(); err != nil {
		k.t.Fatalf("%v: %s", err, out)
	}
	return path
}

// ahead is a pod whose proxy has a clock that is ahead by more than certificates of proxies last.
var ahead = strings.Replace(waiting("ahead"), `"name": "ahead",`, `"name": "ahead",
 "annotations": {"kuma.io/sidecar-env-vars": "LD_PRELOAD=/usr/lib/ahead.so"},`, 1)

// checkClocks sets the clocks of the zone and of a proxy. Nothing is admitted that should not be, and those whose clocks are
// right answer each other all the time. Once a clock is right, all is as before.
func (k *kube) checkClocks() {
	ctx := k.t.Context()
	folder := filepath.Join(scratch, "volumes", workFolder)
	clock, err := cluster.NewClock(filepath.Join(folder, "clock"))
	must(k.t, err)
	defer clock.Close()
	must(k.t, os.Chown(filepath.Join(folder, "clock"), nobody, nobody))
	bin := k.t.TempDir()
	must(k.t, cluster.BuildWithClocks(ctx, bin))
	zone := images.Server(root, bin, "causeway-zone")
	zone.Name = strings.Replace(zone.Name, ":dev", ":clock", 1)
	must(k.t, k.Load(ctx, zone))
	envoy, err := images.Envoy(ctx, root)
	must(k.t, err)
	envoy.Name, envoy.Files["usr/lib/ahead.so"] = "localhost/envoy:clock", k.buildAhead()
	must(k.t, k.Load(ctx, envoy))
	k.upgradeWork("image.tag=clock", "injection.envoyImage=localhost/envoy:clock",
		"extraEnv[0].name="+cluster.ClockVariable, "extraEnv[0].value=/var/lib/causeway/clock")
	k.ready(workSystem, workSet)
	k.proxies("backend", 3)

	refused := func(off time.Duration, reason string) {
		k.noneLost(k.loadsInside(50, 30, func() {
			must(k.t, clock.Set(off))
			must(k.t, k.processIn(workSet+"-0", zoneArgument).Kill())
			k.eventually("the zone to refuse tokens of another time", func(ctx context.Context) error {
				return shows(ctx, k, `"reason":"`+reason+`"`, "-n", workSystem, "logs", workSet+"-0")
			})
		}))
		must(k.t, clock.Set(0))
		k.proxies("backend", 3)
		k.proxies("client", 1)
		k.answers("http://backend", "200")
	}
	k.kubectl("-n", work, "rollout", "restart", "deployment/backend") // for tokens that are new
	k.kubectl("-n", work, "rollout", "status", "deployment/backend", "--timeout=120s")
	refused(-50*time.Minute, "not-yet")
	refused(25*time.Hour, "expired")

	k.applies(ahead)
	k.kubectl("-n", work, "wait", "--for=condition=Ready", "pod/ahead", "--timeout=120s")
	k.eventually("the proxy whose clock is ahead to trust no certificate of others", func(ctx context.Context) error {
		return shows(ctx, k, "503", "-n", work, "exec", "ahead", "-c", "curl", "--", "/usr/bin/app", "get", "http://backend")
	})
	k.answers("http://backend", "200")
	k.kubectl("-n", work, "delete", "pod", "ahead")
	k.upgradeWork()
	k.ready(workSystem, workSet)
	k.proxies("backend", 3)
}
