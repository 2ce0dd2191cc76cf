package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/causeway-mesh/causeway/resources/meshpb"
)

func TestConfLines(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, match, conf, want string }{
		{name: "nothing", conf: `{}`, want: "no entries"},
		{
			name: "an item of several parts",
			conf: `{"allow":[{"spiffeId":{"type":"Prefix","value":"spiffe://a/"},"method":"GET","path":{"type":"Exact","value":"/x"}}]}`,
			want: `allow  method "GET" and path Exact /x and spiffeId Prefix spiffe://a/`,
		},
		{
			name: "deny is judged first, whatever its place",
			conf: `{"allow":[{"sni":{"type":"Exact","value":"b"}}],"deny":[{"sni":{"type":"Exact","value":"a"}}]}`,
			want: "deny   sni Exact a\nallow  sni Exact b",
		},
		{name: "another kind of conf", conf: `{"http":{"requestTimeout":"5s"}}`, want: "http:\n  requestTimeout: 5s"},
		{
			name: "a rule with a match", match: `{"spiffeId":{"type":"Exact","value":"spiffe://a/b"}}`,
			conf: `{"idleTimeout":"1s"}`,
			want: "match spiffeId Exact spiffe://a/b\nidleTimeout: 1s",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := strings.Join(confLines(json.RawMessage(tc.match), json.RawMessage(tc.conf)), "\n")
			if got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

func TestConnectionState(t *testing.T) {
	t.Parallel()
	at := func(minute int) time.Time { return time.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC) }
	open := func(minute int) *meshpb.DiscoverySubscription {
		return &meshpb.DiscoverySubscription{ConnectTime: timestamppb.New(at(minute))}
	}
	ended := func(begin, end int) *meshpb.DiscoverySubscription {
		s := open(begin)
		s.DisconnectTime = timestamppb.New(at(end))
		return s
	}
	for _, tc := range []struct {
		name          string
		subscriptions []*meshpb.DiscoverySubscription
		state         string
		since         time.Time
	}{
		{name: "none", state: stateUnseen},
		{name: "ended", subscriptions: []*meshpb.DiscoverySubscription{ended(1, 5), ended(2, 3)}, state: stateOffline,
			since: at(5)},
		{name: "an open one counts", subscriptions: []*meshpb.DiscoverySubscription{open(1), ended(2, 3)}, state: stateOnline,
			since: at(1)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			state, since := connectionState(tc.subscriptions)
			if state != tc.state || !since.Equal(tc.since) {
				t.Errorf("got %s since %v, want %s since %v", state, since, tc.state, tc.since)
			}
		})
	}
}

func TestLookupType(t *testing.T) {
	t.Parallel()
	for _, arg := range []string{"meshtrafficpermissions", "MeshTrafficPermission", "meshtrafficpermission",
		"mesh-traffic-permission", "mtp"} {
		d, err := lookupType(arg)
		if err != nil || d.Type != "MeshTrafficPermission" {
			t.Errorf("%s: got %v, %v", arg, d, err)
		}
	}
	for _, arg := range []string{"", "mesh_", "kri"} {
		if d, err := lookupType(arg); err == nil {
			t.Errorf("%q: got %s, want an error", arg, d.Type)
		}
	}
}
