package accesslog

import (
	"encoding/json"
	"testing"
	"time"
	"unicode/utf8"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	datav3 "github.com/envoyproxy/go-control-plane/envoy/data/accesslog/v3"
	alsv3 "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/causeway-mesh/causeway/resources/store"
)

// FuzzRead: whatever a proxy says, what is kept of it is bounded.
func FuzzRead(f *testing.F) {
	f.Add([]byte{0x12, 0x02, 0x0a, 0x00})
	f.Fuzz(func(t *testing.T, data []byte) {
		m := &alsv3.StreamAccessLogsMessage{}
		if proto.Unmarshal(data, m) != nil {
			return
		}
		for _, s := range read(inbound, m) {
			for _, text := range []string{s.Client, s.Method, s.PathPrefix, s.Policy, s.ShadowPolicy} {
				if len(text) > maxText || !utf8.ValidString(text) {
					t.Fatalf("%q is kept", text)
				}
			}
			if s.Policy == "" || s.ShadowPolicy != "" && !s.Allowed {
				t.Fatalf("%+v", s)
			}
		}
	})
}

// TestTimesOfNoCalendar: a proxy that says that a request was in the year -1,000,000 kept everybody from the report, as
// JSON has no such year.
func TestTimesOfNoCalendar(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, said := range []*timestamppb.Timestamp{nil, {Seconds: -1 << 55}, {Seconds: 1 << 55}, {Nanos: -1},
		{Seconds: 253402300800}} {
		journal := NewJournal(now, 0)
		c := NewCollector(t.Context(), CollectorConfig{Store: store.NewMemory(), Journal: journal,
			Now: func() time.Time { return now }})
		common := &datav3.AccessLogCommon{StartTime: said, Metadata: &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{httpNamespace: {Fields: map[string]*structpb.Value{
			"enforced_effective_policy_id":      structpb.NewStringValue("p"),
			"enforced_engine_result":            structpb.NewStringValue("allowed"),
			"dryrun_shadow_engine_result":       structpb.NewStringValue(denied),
			"dryrun_shadow_effective_policy_id": structpb.NewStringValue("default"),
		}}}}}
		for _, s := range read("i", &alsv3.StreamAccessLogsMessage{LogEntries: &alsv3.StreamAccessLogsMessage_HttpLogs{HttpLogs: &alsv3.StreamAccessLogsMessage_HTTPAccessLogEntries{
			LogEntry: []*datav3.HTTPAccessLogEntry{{CommonProperties: common}},
		}}}) {
			c.add("default", &s)
		}
		out := reported(journal, store.NewMemory().Snapshot(), reportQuery{now: now})
		if _, err := json.Marshal(out); err != nil || len(out.Items) != 1 {
			t.Errorf("%v: %d items, %v", said, len(out.Items), err)
		}
	}
}
