package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/api"
)

// TestNoZonesYet checks that a list without zones says how to add one, and that one which a selector empties does not.
func TestNoZonesYet(t *testing.T) {
	t.Parallel()
	empty := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set(api.ServerHeader, api.ModeGlobal)
		if r.URL.Path == "/" {
			fmt.Fprint(w, `{"mode": "global"}`)
			return
		}
		fmt.Fprint(w, `{"items": [], "total": 0, "next": null}`)
	}))
	t.Cleanup(empty.Close)
	for args, want := range map[string]string{
		"get zones":           "no zones: causewayctl zone create NAME adds one\n",
		"zone list":           "no zones: causewayctl zone create NAME adds one\n",
		"get zones -l team=a": "no zones\n",
		"get meshtimeouts":    "no meshtimeouts in mesh default\n",
		"get zones -o name":   "no zones: causewayctl zone create NAME adds one\n",
	} {
		var said bytes.Buffer
		words := append(strings.Fields(args), "--address", empty.URL)
		if status := run(words, strings.NewReader(""), io.Discard, &said); status != exitOK || said.String() != want {
			t.Errorf("%s: status %d, %q, want %q", args, status, said.String(), want)
		}
	}
}
