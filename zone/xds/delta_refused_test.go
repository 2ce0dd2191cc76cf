package xds_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/causeway-mesh/causeway/resources/meshpb"
)

func TestLimits(t *testing.T) {
	t.Parallel()
	z := newZoneServer(t)
	c := z.delta()
	c.subscribe(nodeOf("backend", ""), ecds, make([]string, 5000)...)
	if err := c.fails(); status.Code(err) != codes.InvalidArgument {
		t.Errorf("5,000 names: %v", err)
	}
	c = z.delta()
	for i := range 17 { // the last one is one too many: nothing is sent to a stream that has ended
		c.subscribe(nodeOf("backend", ""), "type.example/"+strings.Repeat("x", i+1), "*")
	}
	if err := c.fails(); status.Code(err) != codes.InvalidArgument {
		t.Errorf("17 unknown types: %v", err)
	}
}

func TestRefusalsAreShown(t *testing.T) {
	t.Parallel()
	z := newZoneServer(t)
	z.dataplane("backend", httpInbound)
	c := z.connected()
	c.refuse = true
	z.permission("ours", "backend", "spiffe://td/a")
	c.next(ecds)
	i := z.insight("backend", func(i *meshpb.DataplaneInsight) bool {
		return len(i.GetSubscriptions()) == 1 && i.GetSubscriptions()[0].GetStatus().GetTotal().GetResponsesRejected() == 1
	})
	total := i.GetSubscriptions()[0].GetStatus().GetTotal()
	if total.GetResponsesSent() != 4 || total.GetResponsesAcknowledged() != 3 {
		t.Errorf("counts %v", total)
	}
	if got := i.GetMetadata().GetFields()["problems"].GetStructValue().GetFields()["refused-ecds"].GetStringValue(); !strings.HasPrefix(got, "it refuses filters ("+mainFilter+") since 20") || !strings.HasSuffix(got, ": no, thank you") {
		t.Errorf("metadata %v", i.GetMetadata())
	}
	c.nothing() // what was refused is not sent again
	c.refuse = false
	z.permission("ours", "backend", "spiffe://td/b")
	c.next(ecds)
	z.insight("backend", func(i *meshpb.DataplaneInsight) bool { return i.GetMetadata() == nil })
	c.close()
	i = z.insight("backend",
		func(i *meshpb.DataplaneInsight) bool { return i.GetSubscriptions()[0].GetDisconnectTime() != nil })
	if len(i.GetSubscriptions()) != 1 || i.GetSubscriptions()[0].GetStatus().GetLds().GetResponsesAcknowledged() != 1 {
		t.Errorf("insight %v", i)
	}
}

func TestARefusedResponseIsSentOneByOne(t *testing.T) {
	t.Parallel()
	z := newZoneServer(t)
	z.dataplane("backend", httpInbound+`, {"name": "other", "port": 8081, "servicePort": 9081, "protocol": "http"}`)
	c := z.delta()
	c.subscribe(nodeOf("backend", ""), ecds, "*")
	c.refuse = true
	if got := names(c.next(ecds)); len(got) != 4 {
		t.Fatalf("got %v", got)
	}
	for _, want := range []string{"self_inbound_dp_main_connection_rate", mainFilter,
		"self_inbound_dp_other_connection_rate", "self_inbound_dp_other_rbac_http"} {
		if got := names(c.next(ecds)); !slices.Equal(got, []string{want}) {
			t.Errorf("got %v, want %s alone", got, want)
		}
	}
	z.permission("ours", "backend", "spiffe://td/a")
	c.refuse = false
	if got := names(c.next(ecds)); len(got) != 2 {
		t.Errorf("got %v", got)
	}
	z.permission("ours", "backend", "spiffe://td/b")
	c.next(ecds)
	c.nothing()
}
