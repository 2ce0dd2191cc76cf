package accesslog

import (
	"testing"
	"unicode/utf8"

	alsv3 "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
	"google.golang.org/protobuf/proto"
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
