package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// starts are steps of a pod with a proxy on its way, each with what Kubernetes says of it then.
var starts = []struct{ name, path, want string }{
	{"made", "{.metadata.name}", "gone-made"},
	{"addressed", "{.status.podIP}", "10."},
	{"captured", `{.status.initContainerStatuses[?(@.name=="causeway-capture")].state.terminated.reason}`, "Completed"},
	{"proxied", `{.status.initContainerStatuses[?(@.name=="causeway-proxy")].state.running.startedAt}`, "2"},
	{"served", `{.status.initContainerStatuses[?(@.name=="causeway-proxy")].started}`, "true"},
}

// checkDeleted deletes pods at each step of their start, with their address, Dataplane and certificate on the way. Of each,
// nothing is left: no Dataplane, no proxy that is connected, no process, and no certificate is issued any more.
func (k *kube) checkDeleted() {
	before := k.zoneMetric("causeway_xds_proxies")
	for _, step := range starts {
		name := "gone-" + step.name
		k.applies(waiting(name))
		k.eventually("the pod to be "+step.name, func(ctx context.Context) error {
			out, err := k.Kubectl(ctx, "-n", work, "get", "pod", name, "-o", "jsonpath="+step.path)
			if err == nil && !strings.HasPrefix(out, step.want) {
				err = errors.New(out)
			}
			return err
		})
		k.kubectl("-n", work, "delete", "pod", name, "--grace-period=0", "--force", "--wait=false")
	}
	k.proxies("gone", 0)
	for _, step := range starts {
		k.eventually("no process of the pod that was "+step.name, func(context.Context) error { return k.empty("gone-" + step.name) })
	}
	k.eventually("the zone to serve no more proxies than before", func(context.Context) error {
		if now := k.zoneMetric("causeway_xds_proxies"); now != before {
			return fmt.Errorf("it serves %v, and %v before", now, before)
		}
		return nil
	})
	// What is issued follows who is there: after the next pod, it is one more.
	issued := k.zoneMetric("causeway_identity_issued_total")
	k.applies(waiting("stays"))
	k.kubectl("-n", work, "wait", "--for=condition=Ready", "pod/stays", "--timeout=120s")
	if got := k.zoneMetric("causeway_identity_issued_total"); got != issued+1 {
		k.t.Errorf("the zone has issued %v certificates, and %v before the last pod", got, issued)
	}
	k.kubectl("-n", work, "delete", "pod", "stays")
}

// waiting is a pod with a proxy that does nothing.
func waiting(name string) string {
	return strings.NewReplacer("localhost/curl:dev", "localhost/app:dev", `"1000000"`, `"wait"`).Replace(caller(work, name, "default"))
}

// zoneMetric returns a metric of the zone.
func (k *kube) zoneMetric(name string) float64 {
	k.t.Helper()
	var value float64
	k.eventually("the zone to say "+name, func(ctx context.Context) (err error) {
		address, err := k.Kubectl(ctx, "-n", workSystem, "get", "pod", workSet+"-0", "-o", "jsonpath={.status.podIP}")
		if err == nil {
			value, err = k.metric(ctx, address, name)
		}
		return err
	})
	return value
}

// empty returns an error if a process of the pod is left.
func (k *kube) empty(pod string) error {
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err
	}
	for _, dir := range all {
		host, err := os.ReadFile(filepath.Join(dir, "root", "etc", "hostname"))
		if err == nil && strings.TrimSpace(string(host)) == pod {
			line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
			return fmt.Errorf("%s is left", strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return nil
}
