package main

import (
	"encoding/json"
	"testing"
)

func TestRolloutSentence(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer, want string
		complete     bool
		// settled is set if there is nothing to wait for although it is incomplete.
		settled bool
	}{
		"everywhere": {
			answer:   `{"type":"MeshTimeout","revision":7,"stored":true,"zones":{"acknowledged":2,"total":2},"proxies":{"enforced":3,"total":3}}`,
			want:     "revision 7: stored; acknowledged by 2 of 2 zones; enforced by 3 of 3 proxies",
			complete: true,
		},
		"behind": {
			answer: `{"type":"MeshTimeout","revision":4711,"stored":true,"zones":{"acknowledged":38,"total":40,
				"offline":[{"zone":"zone-7","since":"2026-01-02T03:04:05Z"},{"zone":"zone-8"}],"refused":[{"zone":"zone-9","reason":"no"}]},
				"proxies":{"enforced":212,"total":214,"behind":[{"mesh":"default","namespace":"shop","name":"a"},{"mesh":"default","name":"b","reason":"bad listener"}]}}`,
			want: "revision 4711: stored; acknowledged by 38 of 40 zones; enforced by 212 of 214 proxies; " +
				"zone-7 offline since 2026-01-02T03:04:05Z; zone-8 not seen since the server started; zone-9 refused: no; " +
				"waiting for proxies default/shop/a, default/b (bad listener)",
			settled: true,
		},
		"refused, and nothing else is missing": {
			answer: `{"revision":1,"stored":true,"zones":{"acknowledged":1,"total":1,"refused":[{"zone":"a","reason":"b"}]}}`,
			want:   "revision 1: stored; acknowledged by 1 of 1 zones; a refused: b", settled: true,
		},
		"a gateway without a proxy": {
			answer: `{"type":"MeshGateway","revision":1,"stored":true,"zones":{"acknowledged":1,"total":1}}`,
			want:   "revision 1: stored; acknowledged by 1 of 1 zones; it selects no known proxy", settled: true,
		},
		"a gateway whose proxy refuses a listener": {
			answer: `{"type":"MeshGateway","revision":1,"stored":true,"zones":{"acknowledged":1,"total":1},"proxies":{"total":1,
				"behind":[{"mesh":"default","name":"edge-1","reason":"it refuses listeners (a) since 2026-01-02T03:04:05Z: no"}]}}`,
			want: "revision 1: stored; acknowledged by 1 of 1 zones; enforced by 0 of 1 proxies; " +
				"waiting for proxies default/edge-1 (it refuses listeners (a) since 2026-01-02T03:04:05Z: no)",
		},
		"many pending": {
			answer: `{"revision":1,"stored":true,"zones":{"total":6,"pending":["a","b","c","d","e","f"]}}`,
			want: "revision 1: stored; acknowledged by 0 of 6 zones; " +
				"waiting for a, b, c, d, e and 1 more",
		},
		"not known": {
			answer: `{"type":"MeshTimeout","revision":7,"stored":true,"zones":{"acknowledged":1,"total":2,"offline":[{"zone":"zone-2","since":"2026-01-02T03:04:05Z","notSeen":true}]},
				"proxies":{"enforced":1,"total":3,"unknown":[{"mesh":"default","name":"a","reason":"not connected","since":"2026-01-02T03:04:05Z"},{"mesh":"default","name":"b","reason":"zone-2 offline"}]}}`,
			want: "revision 7: stored; acknowledged by 1 of 2 zones; enforced by 1 of 3 proxies; " +
				"unknown for 2: default/a (not connected since 2026-01-02T03:04:05Z), default/b (zone-2 offline); " +
				"zone-2 not seen since the server started at 2026-01-02T03:04:05Z",
		},
		"acknowledged by a zone that is away": {
			answer: `{"type":"MeshTimeout","revision":7,"stored":true,"zones":{"acknowledged":1,"total":1,"away":[{"zone":"a","since":"2026-01-02T03:04:05Z"}]}}`,
			want: "revision 7: stored; acknowledged by 1 of 1 zones; it selects no known proxy; " +
				"a offline since 2026-01-02T03:04:05Z: what its proxies do now is unknown",
			settled: true,
		},
		"not for a zone that is disabled": {
			answer: `{"type":"MeshTimeout","revision":7,"stored":true,"zones":{"acknowledged":1,"total":1,"disabled":["b"]},"proxies":{"enforced":1,"total":1}}`,
			want: "revision 7: stored; acknowledged by 1 of 1 zones; enforced by 1 of 1 proxies; " +
				"disabled is b: what its proxies do now is unknown",
		},
		"hidden": {
			answer: `{"type":"MeshTimeout","revision":7,"stored":true,"proxies":{"enforced":1,"total":1,"leftOut":2}}`,
			want:   "revision 7: stored; acknowledged by 0 of 0 zones; enforced by 1 of 1 proxies; unknown for 2 more, which you may not read",
		},
		"what nothing enforces": {
			answer: `{"type":"MeshTrace","revision":7,"stored":true,"notEnforced":["no"],"proxies":{"enforced":0,"total":2}}`,
			want:   "revision 7: stored; acknowledged by 0 of 0 zones; enforced by 0 of 2 proxies; not enforced: no", settled: true,
		},
		"selects nothing": {
			answer:  `{"type":"MeshTimeout","revision":7,"stored":true}`,
			want:    "revision 7: stored; acknowledged by 0 of 0 zones; it selects no known proxy",
			settled: true,
		},
		"selects nothing, and a zone waits": {
			answer: `{"type":"MeshTimeout","revision":7,"stored":true,"zones":{"total":1,"pending":["a"]}}`,
			want:   "revision 7: stored; acknowledged by 0 of 1 zones; it selects no known proxy; waiting for a",
		},
		"a mesh without proxies": {
			answer:   `{"type":"Mesh","revision":7,"stored":true}`,
			want:     "revision 7: stored; acknowledged by 0 of 0 zones; it has no proxy",
			complete: true,
		},
		"asked of a zone": {
			answer: `{"type":"MeshTimeout","revision":7,"stored":true,"zone":"zone-1","zones":{"acknowledged":1,"total":1},"proxies":{"enforced":1,"total":1}}`,
			want:   "revision 7: stored; acknowledged by the global; enforced by 1 of 1 proxies of zone-1", complete: true,
		},
		"asked of a zone whose global does not have it": {
			answer: `{"type":"MeshTimeout","revision":7,"stored":true,"zone":"zone-1","zones":{"total":1,"pending":["global"]}}`,
			want:   "revision 7: stored; it selects no known proxy in zone-1; waiting for global",
		},
		"a copy": {
			answer: `{"type":"MeshTimeout","revision":7,"stored":true,"zone":"zone-1","proxies":{"enforced":1,"total":1}}`,
			want:   "revision 7: stored; enforced by 1 of 1 proxies of zone-1", complete: true,
		},
		"a copy that may have been replaced": {
			answer: `{"type":"MeshTimeout","revision":7,"stored":true,"zone":"zone-1","source":{"zone":"global","since":"2026-01-02T03:04:05Z"},"proxies":{"enforced":1,"total":1}}`,
			want: "revision 7: stored; global offline since 2026-01-02T03:04:05Z: whether it has a newer one is unknown; " +
				"enforced by 1 of 1 proxies of zone-1",
		},
		"a copy whose removal is held": {
			answer: `{"type":"MeshTimeout","revision":7,"stored":true,"zone":"zone-1","source":{"zone":"global","since":"2026-01-02T03:04:05Z","removed":true},"proxies":{"enforced":1,"total":1}}`,
			want: "revision 7: stored; the global has it no more, as is known since 2026-01-02T03:04:05Z: the removal is held until " +
				"an operator accepts it (causewayctl inspect sync); enforced by 1 of 1 proxies of zone-1",
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
			if got := s.settled(); got != (c.complete || c.settled) {
				t.Errorf("settled: %v", got)
			}
		})
	}
}
