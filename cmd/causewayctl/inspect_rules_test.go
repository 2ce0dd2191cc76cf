package main

import (
	"bytes"
	"encoding/json"
	"testing"
)

// TestTypeRulesText checks that equal rules appear once, that the last of the merged items carries the reason, and that
// older rules are named by tags.
func TestTypeRulesText(t *testing.T) {
	t.Parallel()
	const answer = `{"type":"MeshTimeout",
		"proxyRule":{"conf":{"idleTimeout":"1s"},"origin":[{"kri":"kri_a"}]},
		"toResourceRules":[
			{"kri":"kri_m","resourceMeta":{"type":"Mesh","name":"default"},"conf":{"connectionTimeout":"5s"},"origin":[{"kri":"kri_a"}]},
			{"kri":"kri_x","resourceMeta":{"type":"MeshService","name":"x"},"conf":{"connectionTimeout":"1s"},
				"origin":[{"kri":"kri_a"},{"kri":"kri_b","decidedBy":"zone origin beats global origin"}]},
			{"kri":"kri_y","resourceMeta":{"type":"MeshService","name":"y"},"conf":{"connectionTimeout":"1s"},
				"origin":[{"kri":"kri_a"},{"kri":"kri_b"}]},
			{"resourceMeta":{"type":"MeshService","name":"z"},"conf":{"connectionTimeout":"1s"},"origin":[{"kri":"kri_b"}]}],
		"fromRules":[{"inbound":{"kri":"kri_in"},"rules":[
			{"conf":{"a":"b"},"matchers":[{"key":"k","value":"v"},{"key":"l","value":"w","not":true}],"origin":[{"kri":"kri_f"}]},
			{"conf":{"c":"d"},"origin":[{"kri":"kri_f"}]}]}],
		"warnings":["look"]}`
	const want = `
proxy  MeshTimeout  (not enforced: this version does not configure proxies by it)
    idleTimeout: 1s
    1. kri_a

outbound  MeshTimeout
  everything else in the mesh
    connectionTimeout: 5s
    1. kri_a
  kri_x, kri_y
    connectionTimeout: 1s
    1. kri_a
    2. kri_b  (zone origin beats global origin)  <- wins
  MeshService z
    connectionTimeout: 1s
    1. kri_b

from  MeshTimeout  kri_in
  k=v,l!=w
    a: b
    1. kri_f
  everybody
    c: d
    1. kri_f
  warning: look
`
	var rules typeRules
	if err := json.Unmarshal([]byte(answer), &rules); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	rules.print(&out)
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
