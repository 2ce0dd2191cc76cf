package kubernetes

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var roundsFlag = flag.Int("rounds", 3, "how often BenchmarkPods measures everything")

var startsFlag = flag.Bool("starts", false, "BenchmarkPods measures only how pods start")

var rollsFlag = flag.Bool("rolls", false, "BenchmarkPods measures only rolling updates")

var writeFlag = flag.String("write", "", "write the figures of BenchmarkPods into a `file`: docs/performance.md of the repository")

const (
	// startsEach is how many Deployments start in each round, of each kind.
	startsEach = 10
	// rolled is how many pods a rolling update replaces, if the node has room, so many at a time. rollRate requests are sent a
	// second, for rollTime seconds in each round.
	rolled, rollSurge, rollRate, rollTime = 50, 2, 500, 300
	// calmRate and calmTime are the requests by which latency is measured.
	calmRate, calmTime = 100, 20
	// mostLaterByPlugin and mostLaterByContainer are the goals, in seconds, for the delay of a pod's start. Both are what the
	// kubelet's own intervals come to, and half a second for all else: see docs/performance.md.
	mostLaterByPlugin, mostLaterByContainer = 1.5, 2.5
)

// plainPods are a namespace without proxies, and a client in it.
var plainPods = `
apiVersion: v1
kind: Namespace
metadata: {name: plain-work}
---
` + strings.NewReplacer(`"namespace": "work"`, `"namespace": "plain-work"`).Replace(waiting("client"))

// BenchmarkPods measures what proxies cost pods, in rounds: how much later a Deployment is ready, the requests that a
// rolling update loses, and the latency that two proxies add. Then a plugin captures pods, and it measures again how much
// later a Deployment is ready. It fails if a median exceeds its goal.
func BenchmarkPods(b *testing.B) {
	k := newWork(b, 1)
	b.Cleanup(func() {
		if out, err := k.Kubectl(context.WithoutCancel(b.Context()), "delete", "namespace", "plain-work", "--wait=false"); err != nil {
			b.Error(out, err)
		}
	})
	k.applies(plainPods + "\n---\n" + inPlain(deployment("backend", 1, `serve, -http, ":8080"`)))
	k.kubectl("-n", "plain-work", "rollout", "status", "deployment/backend", "--timeout=120s")
	k.kubectl("-n", "plain-work", "wait", "--for=condition=Ready", "pod/client", "--timeout=120s")
	var f figures
	for range *roundsFlag {
		if !*rollsFlag {
			k.benchStarts(&f, "an init container", mostLaterByContainer)
		}
		if !*rollsFlag && !*startsFlag {
			k.benchLatency(&f)
		}
		if !*startsFlag {
			k.benchRollout(&f)
		}
	}
	if *rollsFlag {
		f.report(b)
		return
	}
	k.upgradeWork("injection.cni.enabled=true", "injection.cni.binDir="+k.Plugins(), "injection.cni.confDir="+k.Network())
	k.kubectl("-n", "kube-system", "rollout", "status", "daemonset", "-l", "app.kubernetes.io/name=causeway-cni", "--timeout=120s")
	k.kubectl("-n", workSystem, "rollout", "status", "statefulset/"+workSet, "--timeout=120s")
	for range *roundsFlag {
		k.benchStarts(&f, "a plugin", mostLaterByPlugin)
	}
	f.report(b)
}

func inPlain(manifest string) string {
	return strings.ReplaceAll(manifest, "namespace: work}", "namespace: plain-work}")
}

// benchStarts starts Deployments with and without proxies in turn, from their creation until a pod is ready. most is the goal
// in seconds for what captures the pods.
func (k *kube) benchStarts(f *figures, captures string, most float64) {
	k.t.Helper()
	took := map[string][]time.Duration{}
	manifest := deployment("starts", 1, `serve, -http, ":8080"`)
	for range startsEach {
		for namespace, text := range map[string]string{work: manifest, "plain-work": inPlain(manifest)} {
			began := time.Now()
			k.apply(text)
			k.kubectl("-n", namespace, "rollout", "status", "deployment/starts", "--timeout=120s")
			took[namespace] = append(took[namespace], time.Since(began))
			k.kubectl("-n", namespace, "delete", "deployment,service", "starts", "--cascade=foreground", "--timeout=120s")
		}
	}
	with, without := middle(took[work]), middle(took["plain-work"])
	f.add("a Deployment until its pod is ready, without a proxy, p50", "s", 0, without.Seconds())
	f.add("the same with a proxy, and "+captures+" that captures it, p50", "s", 0, with.Seconds())
	f.add("by which it is ready later, with "+captures, "s", most, (with - without).Seconds())
}

func middle(took []time.Duration) time.Duration {
	slices.Sort(took)
	return took[len(took)/2]
}

// benchLatency has a client call a backend, with and without a proxy on both sides.
func (k *kube) benchLatency(f *figures) {
	k.t.Helper()
	p50, p99 := map[string]time.Duration{}, map[string]time.Duration{}
	for _, namespace := range []string{"plain-work", work} {
		said := k.kubectl("-n", namespace, "exec", "client", "-c", map[bool]string{true: "app", false: "curl"}[namespace == work], "--", "/usr/bin/app",
			"load", "http://backend", fmt.Sprint(calmRate), fmt.Sprint(calmTime))
		p50[namespace], p99[namespace] = k.quantile(said, "p50"), k.quantile(said, "p99")
	}
	f.add(fmt.Sprintf("a call, %d a second, without proxies, p50", calmRate), "ms", 0, milliseconds(p50["plain-work"]))
	f.add("the same without proxies, p99", "ms", 0, milliseconds(p99["plain-work"]))
	f.add("through two proxies, p50", "ms", 0, milliseconds(p50[work]))
	f.add("the same through two proxies, p99", "ms", 0, milliseconds(p99[work]))
	f.add("by which it is slower, p50", "ms", 0, milliseconds(p50[work]-p50["plain-work"]))
	f.add("by which it is slower, p99", "ms", 0, milliseconds(p99[work]-p99["plain-work"]))
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// quantile reads what the client prints of its calls.
func (k *kube) quantile(said, name string) time.Duration {
	k.t.Helper()
	_, rest, _ := strings.Cut(said, " "+name+" ")
	word, _, _ := strings.Cut(strings.TrimSpace(strings.ReplaceAll(rest, "\n", " ")), " ")
	d, err := time.ParseDuration(word)
	if err != nil {
		k.t.Fatalf("the client says %q: %v", said, err)
	}
	return d
}

// benchRollout replaces all pods of a Deployment, again and again, under requests.
func (k *kube) benchRollout(f *figures) {
	k.t.Helper()
	count := min(rolled, k.room()-5)
	k.kubectl("-n", work, "patch", "deployment", "backend", "--type=strategic", "-p", fmt.Sprintf(
		`{"spec": {"replicas": %d, "strategy": {"rollingUpdate": {"maxSurge": %d, "maxUnavailable": 0}}, "template": {"spec": {"containers": [{
 "name": "app", "startupProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 1, "failureThreshold": 60}, "readinessProbe": {"periodSeconds": 5}}]}}}}`,
		count, rollSurge))
	k.kubectl("-n", work, "rollout", "status", "deployment/backend", fmt.Sprint("--timeout=", patience+3*time.Minute))
	replaced := 0
	said := k.loads(rollRate, rollTime, func() {
		began, took := time.Now(), time.Duration(0)
		for ; time.Since(began)+took < rollTime*time.Second; replaced += count {
			at := time.Now()
			k.kubectl("-n", work, "rollout", "restart", "deployment/backend")
			k.kubectl("-n", work, "rollout", "status", "deployment/backend", fmt.Sprint("--timeout=", patience+rollTime*time.Second))
			took = time.Since(at)
		}
		if took := time.Since(began); took > rollTime*time.Second {
			k.t.Errorf("the last rolling update ended after %s, and the requests before it: the machine is too busy, or too slow, to measure on", took)
		}
	})
	k.t.Log(said)
	var sent, lost int
	if _, err := fmt.Sscanf(said, "requests %d failed %d", &sent, &lost); err != nil {
		k.t.Fatalf("the client says %q: %v", said, err)
	}
	if most := rollRate * rollTime; sent < most*9/10 {
		k.t.Errorf("the client has sent %d requests of %d: the machine is too busy, or too slow, to measure on", sent, most)
	}
	f.add(fmt.Sprintf("requests, %d a second, during rolling updates of %d pods", rollRate, count), "requests", 0, float64(sent))
	f.add("the same, p99", "ms", 0, milliseconds(k.quantile(said, "p99")))
	f.add("pods replaced meanwhile", "pods", 0, float64(replaced))
	f.add("requests lost", "requests", -1, float64(lost))
	k.kubectl("-n", work, "scale", "deployment/backend", "--replicas=1")
	k.kubectl("-n", work, "rollout", "status", "deployment/backend", "--timeout=120s")
	k.proxies("backend", 1)
}

// figures are measurements, in the order in which they came first.
type figures struct{ all []*figure }

// figure is one of them. most is the goal: none if it is 0, and nothing at all if it is negative.
type figure struct {
	name, unit string
	most       float64
	samples    []float64
}

func (f *figures) add(name, unit string, most, sample float64) {
	fmt.Fprintf(os.Stderr, "%s: %.4g %s\n", name, sample, unit) // a round takes minutes
	for _, one := range f.all {
		if one.name == name {
			one.samples = append(one.samples, sample)
			return
		}
	}
	f.all = append(f.all, &figure{name, unit, most, []float64{sample}})
}

// report prints the figures as a table, or writes it, and fails for each median that exceeds its goal. Of what may not
// happen at all, the worst round counts.
func (f *figures) report(b *testing.B) {
	b.Helper()
	var out strings.Builder
	fmt.Fprintln(&out, "| figure | at most | median | min | max | |\n| --- | --- | --- | --- | --- | --- |")
	for _, one := range f.all {
		slices.Sort(one.samples)
		median, goal, verdict := one.samples[len(one.samples)/2], "", ""
		if one.most != 0 {
			goal, verdict = fmt.Sprintf("%.4g %s", max(one.most, 0), one.unit), "ok"
			judged := median
			if one.most < 0 {
				judged = one.samples[len(one.samples)-1]
			}
			if judged > max(one.most, 0) {
				verdict = "missed"
				b.Errorf("%s: %.4g %s, at most %.4g", one.name, judged, one.unit, max(one.most, 0))
			}
		}
		fmt.Fprintf(&out, "| %s | %s | %.4g %s | %.4g | %.4g | %s |\n", one.name, goal, median, one.unit, one.samples[0],
			one.samples[len(one.samples)-1], verdict)
	}
	b.Log("\n" + out.String())
	if *writeFlag == "" {
		return
	}
	path := *writeFlag
	if !filepath.IsAbs(path) {
		path = filepath.Join(root, path)
	}
	raw, err := os.ReadFile(path)
	must(b, err)
	const begin, end = "<!-- bench: pods -->\n", "<!-- end: pods -->"
	before, rest, ok1 := strings.Cut(string(raw), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		b.Fatalf("%s has no place for figures of pods", path)
	}
	must(b, os.WriteFile(path, []byte(before+begin+"\n"+out.String()+"\n"+end+after), 0o644)) //nolint:gosec // a page of the repository
}
