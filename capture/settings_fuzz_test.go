package capture_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/causeway-mesh/causeway/capture"
)

// FuzzParseSettings: what is accepted marshals to a text that means the same. Whoever may annotate a pod may write it.
func FuzzParseSettings(f *testing.F) {
	for _, text := range []string{`{"proxyUser":1,"inboundPort":15006}`, `{"proxyUser":1,"outboundPort":1,"excludeOutboundPorts":["1-2"],"excludeOutboundAddresses":["::1/3"]}`,
		`{"proxyUser":1,"inboundPort":2,"guardPorts":["8080"],"excludeInboundAddresses":["10.0.0.1"]}`, `{}{}`, `null`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := capture.ParseSettings(text)
		if err != nil {
			if !errors.Is(err, capture.ErrSettings) {
				t.Errorf("%s: %v", text, err)
			}
			return
		}
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		again, err := capture.ParseSettings(string(raw))
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		other, err := json.Marshal(again)
		if err != nil || !reflect.DeepEqual(raw, other) || s.ProxyUser == 0 {
			t.Errorf("%s is %s, and then %s: %v", text, raw, other, err)
		}
	})
}
