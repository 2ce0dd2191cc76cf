package xds_test

import (
	"strings"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
)

const (
	otherInbound = `, {"name": "other", "port": 8081, "servicePort": 9081, "protocol": "http"}`
	zzInbound    = `, {"name": "zz", "port": 8082, "servicePort": 9082, "protocol": "http"}`
)

// refused returns what the insight says that the proxy refuses.
func refused(i *meshpb.DataplaneInsight, kind string) string {
	return i.GetMetadata().GetFields()["problems"].GetStructValue().GetFields()["refused-"+kind].GetStringValue()
}

// answersUntil answers what comes until a condition holds.
func (c *deltaClient) answersUntil(what string, is func() bool) {
	c.t.Helper()
	for end := time.After(patience); !is(); {
		select {
		case r := <-c.responses:
			c.answer(r)
		case <-time.After(2 * time.Millisecond):
		case <-end:
			c.t.Fatalf("never happened: %s", what)
		}
	}
}

// lists reports whether the answers to listeners are as many as these.
func (z *zoneServer) lists(sent, refused uint64) func() bool {
	return func() bool {
		is := false
		z.insight("backend", func(i *meshpb.DataplaneInsight) bool {
			n := i.GetSubscriptions()[0].GetStatus().GetLds()
			is = n.GetResponsesSent() >= sent && n.GetResponsesRejected() == refused &&
				n.GetResponsesSent() == n.GetResponsesAcknowledged()+n.GetResponsesRejected()
			return true
		})
		return is
	}
}

// TestWhatIsRefusedStaysRefused: a proxy that refuses one listener and accepts others lacks that one, whatever it
// accepts afterwards.
func TestWhatIsRefusedStaysRefused(t *testing.T) {
	t.Parallel()
	z := newZoneServer(t)
	const inbounds = httpInbound + otherInbound + zzInbound
	z.dataplane("backend", inbounds)
	c := z.connected()
	z.comesTo("settled")

	c.refuses = "other"
	z.dataplane("backend", strings.ReplaceAll(inbounds, `"http"`, `"tcp"`))
	c.answersUntil("it has refused three listeners, and then one of the three", z.lists(5, 2))
	if got := z.syncStatus(); got != "failing" {
		t.Errorf("a proxy that refuses one of three listeners is %q", got)
	}
	z.insight("backend", func(i *meshpb.DataplaneInsight) bool {
		said := refused(i, "lds")
		return strings.Contains(said, "since 20") && strings.Contains(said, "no, thank you")
	})

	c.refuses = ""
	z.dataplane("backend", strings.ReplaceAll(httpInbound+otherInbound, `"http"`, `"tcp"`)+zzInbound)
	c.answersUntil("it has accepted a change of another", z.lists(6, 2))
	if got := z.syncStatus(); got != "failing" {
		t.Errorf("after it has accepted another one it is %q", got)
	}
	z.dataplane("backend", inbounds)
	c.answersUntil("it has everything", func() bool { return z.syncStatus() == "settled" })
	z.insight("backend", func(i *meshpb.DataplaneInsight) bool { return i.GetMetadata() == nil })
}

// TestWhatIsRefusedAndThenTakenBack: what a proxy refused and is not to have any more is no problem.
func TestWhatIsRefusedAndThenTakenBack(t *testing.T) {
	t.Parallel()
	z := newZoneServer(t)
	z.dataplane("backend", httpInbound)
	c := z.connected()
	z.comesTo("settled")
	c.refuses = "other"
	z.dataplane("backend", httpInbound+otherInbound)
	c.answersUntil("it refuses", func() bool { return z.syncStatus() == "failing" })
	z.dataplane("backend", httpInbound)
	c.answersUntil("it has everything", func() bool { return z.syncStatus() == "settled" })
}

// TestAProxyThatDoesNotAnswer: what a proxy does not answer for half a minute is named, with since when.
func TestAProxyThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	z := newZoneServer(t)
	z.dataplane("backend", httpInbound)
	c := z.connected()
	z.comesTo("settled")
	z.permission("ours", "backend", "spiffe://td/a")
	z.comesTo("behind")
	z.holds("the proxy is failing", func() bool { // the response may leave after the clock was set
		z.ahead.Add(int64(time.Minute))
		return z.syncStatus() == "failing"
	})
	if got := z.proxies.SyncStatuses()[0].Reason; !strings.HasPrefix(got, "it does not answer about filters since 20") {
		t.Errorf("the reason is %q", got)
	}
	key := z.proxies.SyncStatuses()[0].Dataplane
	if why, is := z.proxies.Behind(key); !is || why != z.proxies.SyncStatuses()[0].Reason || z.proxies.Settled(key) {
		t.Errorf("behind: %t, %q", is, why)
	}
	c.next(ecds)
	z.comesTo("settled")
	if why, is := z.proxies.Behind(key); is || why != "" || !z.proxies.Settled(key) {
		t.Errorf("behind, though it has everything: %t, %q", is, why)
	}
	other := key
	if other.Name = "other"; z.proxies.Settled(other) {
		t.Error("a proxy that is not connected has everything")
	}

	silent := z.delta() // a second stream of the proxy, which asks for nothing, takes nothing from what the first has
	silent.subscribe(nodeOf("backend", ""), cds, "*")
	silent.next(cds)
	c.close()
	z.comesTo("behind")
	z.ahead.Add(int64(time.Minute))
	z.eventually("it to be named for what it does not ask", func() bool {
		got := z.proxies.SyncStatuses()[0].Reason
		return strings.HasPrefix(got, "it is connected since 20") && strings.HasSuffix(got, "has not asked for all that it should have")
	})
}

// TestProblemsAreToldAfterTheyAreThere: the state of a proxy is known at once, and its insight shows it a little later: of
// which nobody may take what it does not show yet for success.
func TestProblemsAreToldAfterTheyAreThere(t *testing.T) {
	t.Parallel()
	z := newZoneServer(t)
	z.dataplane("backend", httpInbound)
	c := z.connected()
	z.comesTo("settled")
	z.eventually("the insight to be written", func() bool { return !z.proxies.SyncStatuses()[0].Unreported })
	c.refuse = true
	z.permission("ours", "backend", "spiffe://td/a")
	c.next(ecds)
	z.eventually("the refusal to be known", func() bool { return z.proxies.SyncStatuses()[0].Reason != "" })
	one := z.proxies.SyncStatuses()[0]
	shown := z.insight("backend", func(*meshpb.DataplaneInsight) bool { return true })
	if !one.Unreported && refused(shown, "ecds") == "" {
		t.Error("it is told, and the insight does not show it")
	}
	z.eventually("it to be told", func() bool {
		one := z.proxies.SyncStatuses()[0]
		return !one.Unreported && one.ReportedAt > 0 && one.ReportedAt <= z.status.Snapshot().Revision()
	})
	if refused(z.insight("backend", func(*meshpb.DataplaneInsight) bool { return true }), "ecds") == "" {
		t.Error("it was told, and the insight does not show it")
	}
}

// TestAProxyThatRefusesAllListeners: it takes no requests, so it is avoided; one that came back with its listeners, and
// refuses a change of them, has those.
func TestAProxyThatRefusesAllListeners(t *testing.T) {
	t.Parallel()
	z := newZoneServer(t)
	z.dataplane("backend", httpInbound)
	key := resources.Key{Type: resources.TypeDataplane, Mesh: "default", Name: "backend"}
	c := z.delta()
	c.refuses = mainListener
	c.subscribe(nodeOf("backend", ""), cds, "*")
	c.any()
	c.subscribe(nil, lds, "*")
	c.subscribe(nil, ecds, mainFilter)
	c.answersUntil("it has refused", func() bool {
		one := z.proxies.SyncStatuses()[0]
		return strings.Contains(one.Reason, "it refuses listeners ("+mainListener+")") && strings.Contains(one.Reason, "it refuses clusters")
	})
	if is := z.proxies.Egress(key); !is.Connected || !is.Avoided {
		t.Errorf("it is %+v", is)
	}
	c.close()

	back := z.delta()
	back.refuses = mainListener
	back.subscribe(nodeOf("backend", ""), cds, "*")
	back.send(&discovery.DeltaDiscoveryRequest{TypeUrl: lds, ResourceNamesSubscribe: []string{"*"},
		InitialResourceVersions: map[string]string{mainListener: "of before"}})
	back.subscribe(nil, ecds, mainFilter)
	back.answersUntil("it is not avoided", func() bool { return !z.proxies.Egress(key).Avoided })
}
