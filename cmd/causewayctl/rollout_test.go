package main

import (
	"encoding/json"
	"testing"
)

func TestRolloutSentence(t *testing.T) {
	for name, c := range map[string]struct {
		answer, want string
		complete     bool
	}{
		"everywhere": {
			answer:   `{"revision":7,"stored":true,"zones":{"acknowledged":2,"total":2},"proxies":{"enforced":3,"total":3}}`,
			want:     "revision 7: stored; acknowledged by 2 of 2 zones; enforced by 3 of 3 proxies",
			complete: true,
		},
		"behind": {
			answer: `{"revision":4711,"stored":true,"zones":{"acknowledged":38,"total":40,
				"offline":[{"zone":"zone-7","since":"2026-01-02T03:04:05Z"},{"zone":"zone-8"}],"refused":[{"zone":"zone-9","reason":"no"}]},
				"proxies":{"enforced":212,"total":214,"behind":[{"mesh":"default","namespace":"shop","name":"a"},{"mesh":"default","name":"b","reason":"bad listener"}]}}`,
			want: "revision 4711: stored; acknowledged by 38 of 40 zones; enforced by 212 of 214 proxies; " +
				"zone-7 offline since 2026-01-02T03:04:05Z; zone-8 offline since the server started; zone-9 refused: no; " +
				"waiting for proxies default/shop/a, default/b (bad listener)",
		},
		"refused, and nothing else is missing": {
			answer: `{"revision":1,"stored":true,"zones":{"acknowledged":1,"total":1,"refused":[{"zone":"a","reason":"b"}]}}`,
			want:   "revision 1: stored; acknowledged by 1 of 1 zones; enforced by 0 of 0 proxies; a refused: b",
		},
		"many pending": {
			answer: `{"revision":1,"stored":true,"zones":{"total":6,"pending":["a","b","c","d","e","f"]}}`,
			want: "revision 1: stored; acknowledged by 0 of 6 zones; enforced by 0 of 0 proxies; " +
				"waiting for a, b, c, d, e and 1 more",
		},
		"nothing": {answer: `{}`, want: "revision 0: not stored"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &rolloutStatus{}
			if err := json.Unmarshal([]byte(c.answer), s); err != nil {
				t.Fatal(err)
			}
			if got := s.sentence(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if got := s.complete(); got != c.complete {
				t.Errorf("complete: %v", got)
			}
		})
	}
}
