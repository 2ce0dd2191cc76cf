package kubernetes

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	// crowd is how many pods start at once, if the node has room for the requests of their proxies.
	crowd = 100
	// proxyCPU is what a proxy requests, in thousandths of a processor: so little that a node with two of them has room for all.
	proxyCPU = 10
)

// room returns for how many more pods with a proxy the node has processors.
func (k *kube) room() int {
	k.t.Helper()
	thousandths := func(text string) int {
		text, isThousandths := strings.CutSuffix(text, "m")
		n, err := strconv.Atoi(text)
		must(k.t, err)
		if isThousandths {
			return n
		}
		return 1000 * n
	}
	free := thousandths(k.kubectl("get", "nodes", "-o", "jsonpath={.items[0].status.allocatable.cpu}"))
	_, allocated, _ := strings.Cut(k.kubectl("describe", "nodes"), "Allocated resources:")
	for line := range strings.Lines(allocated) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "cpu" {
			return (free - thousandths(f[1])) / proxyCPU
		}
	}
	k.t.Fatalf("what pods request is not in %s", allocated)
	return 0
}

// checkCrowd starts as many pods at once as the node has room for: all become ready, all are online, and all are called by
// a proxy that was there before.
func (k *kube) checkCrowd() {
	count := min(crowd, k.room())
	k.applies(deployment("crowd", count, `serve, -http, ":8080"`))
	began := time.Now()
	k.kubectl("-n", work, "rollout", "status", "deployment/crowd", fmt.Sprint("--timeout=", patience+3*time.Minute))
	k.t.Logf("%d pods are ready after %s", count, time.Since(began).Round(time.Second))
	if count < crowd {
		k.t.Logf("the node has no processors for more than %d", count)
	}
	k.proxies("crowd", count)
	k.reaches("crowd", count)
	k.kubectl("-n", work, "delete", "deployment,service", "crowd")
	k.proxies("crowd", 0)
}
