package api_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"testing"
)

// TestPagesLeaveNothingOut deletes and creates resources between two pages of a list. What was there all the time is
// on exactly one page: neither left out, as when pages are counted, nor twice.
func TestPagesLeaveNothingOut(t *testing.T) {
	f := global(t)
	const list = "/meshes/default/meshtrafficpermissions"
	for i := range 40 {
		f.mustCall(t, "PUT", fmt.Sprintf("%s/p%02d", list, i), permission(fmt.Sprintf("p%02d", i)))
	}
	seen := map[string]int{}
	changes := []func(){
		func() {
			for i := range 3 {
				f.mustCall(t, "DELETE", fmt.Sprintf("%s/p%02d", list, i), "")
			}
		},
		func() {
			for i := range 5 {
				name := fmt.Sprintf("a%d", i)
				f.mustCall(t, "PUT", list+"/"+name, permission(name))
			}
		},
		func() { f.mustCall(t, "DELETE", list+"/p29", "") }, // with which the page ended
		func() {},
	}
	for path := list + "?size=10"; path != ""; {
		var page struct {
			Items []struct{ Name string }
			Next  *string
		}
		if err := json.Unmarshal([]byte(f.mustCall(t, "GET", path, "")), &page); err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			seen[item.Name]++
		}
		if path = ""; page.Next != nil {
			next, err := url.Parse(*page.Next)
			if err != nil {
				t.Fatal(err)
			}
			path = next.RequestURI()
			changes[0]()
			changes = changes[1:]
		}
	}
	for i := range 40 {
		if name := fmt.Sprintf("p%02d", i); seen[name] != 1 {
			t.Errorf("%s is on %d pages, want 1", name, seen[name])
		}
	}
	for _, offset := range []string{"-1", "x", "1.", "1.AA", "1.!", "."} {
		if _, err := f.call(t, "GET", list+"?offset="+offset, ""); err == nil || err.Status != 400 {
			t.Errorf("offset=%s: %v, want 400", offset, err)
		}
	}
}
