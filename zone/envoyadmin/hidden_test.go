package envoyadmin

import (
	"strings"
	"testing"
)

// TestWhatEnvoyDoesNotHide: secrets of policies stand in an Envoy's configuration, and in no answer of the zone.
func TestWhatEnvoyDoesNotHide(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"a":[1.50,true,null,"x<y",{}],"b":{"c":[]}}`:                                 "",
		`{"header":{"key":"Authorization","value":"Bearer s"},"append_action":"A"}`:    `{"header":{"key":"Authorization","value":"[redacted]"},"append_action":"A"}`,
		`[{"key":"x-api-key","raw_value":"cw=="},{"key":"x-team","value":"s"}]`:        `[{"key":"x-api-key","raw_value":"[redacted]"},{"key":"x-team","value":"s"}]`,
		`{"key":"set-cookie"},{"value":"s"}`:                                           "no",
		`{"a":{"password":{"inline_string":"s","filename":"/f"}},"token":["s"]}`:       `{"a":{"password":{"inline_string":"[redacted]","filename":"/f"}},"token":["[redacted]"]}`,
		`{"private_key":{"inline_bytes":"W3JlZGFjdGVkXQ=="},"max_tokens":5}`:           "",
		`{"text":"-----BEGIN PRIVATE KEY-----\ns"}`:                                    `{"text":"[redacted]"}`,
		`{"key":"authorization","list":[{"value":"s"}],"value":"s"}`:                   `{"key":"authorization","list":[{"value":"s"}],"value":"[redacted]"}`,
		`{"path":"/ABCDEFGHIJKLMNOPQRSTUVWXYZ/app/preStop","prefix_rewrite":"/drain"}`: `{"path":"[redacted]","prefix_rewrite":"/drain"}`,
		`{"a":1`: "no", `{"a":1} 2`: "no", ``: "no", `{"a" 1}`: "no", `<html>`: "no",
		strings.Repeat("[", 1000) + strings.Repeat("]", 1000): "no",
	} {
		got, err := hideSecrets([]byte(raw))
		switch {
		case want == "no":
			if err == nil {
				t.Errorf("%.40s: is read as %s", raw, got)
			}
		case err != nil:
			t.Errorf("%s: %v", raw, err)
		case want == "":
			want = raw
			fallthrough
		default:
			if string(got) != want {
				t.Errorf("%s: got %s, want %s", raw, got, want)
			}
		}
	}
}
