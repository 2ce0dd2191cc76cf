package kubernetes

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
)

// TestEachOutageOfConfigurationsIsLogged follows a webhook configuration that is lost, listed again and lost again: both
// outages are in the log, once each.
func TestEachOutageOfConfigurationsIsLogged(t *testing.T) {
	var log bytes.Buffer
	s := &kept{bridge: &Bridge{Config: Config{Log: slog.New(slog.NewTextHandler(&log, nil))}}, news: make(chan struct{}, 1)}
	for _, why := range []string{"first", "second"} {
		s.Failed(errors.New(why))
		s.Failed(errors.New(why + " still"))
		s.Replace([]*apiserver.Object{{}})
	}
	for _, why := range []string{"error=first\n", "error=second\n"} {
		if !strings.Contains(log.String(), why) {
			t.Errorf("the log lacks %q:\n%s", why, &log)
		}
	}
	if n := strings.Count(log.String(), "cannot be followed"); n != 2 {
		t.Errorf("%d outages are logged, want 2:\n%s", n, &log)
	}
}
