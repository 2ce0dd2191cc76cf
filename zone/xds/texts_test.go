package xds

import (
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/causeway-mesh/causeway/resources"
)

// TestTextsOfProxiesCanBeWritten: what a proxy says was cut in the middle of a character, and its insight was never
// written again, as Protobuf takes only UTF-8.
func TestTextsOfProxiesCanBeWritten(t *testing.T) {
	t.Parallel()
	long := "x" + strings.Repeat("ü", 1<<20)
	r := &record{key: resources.Key{Type: resources.TypeDataplaneInsight, Mesh: "default", Name: "dp"}, dataplane: true}
	s := r.connect(&corev3.Node{UserAgentVersionType: &corev3.Node_UserAgentVersion{UserAgentVersion: long}}, "test",
		1, time.Now())
	r.rejected(s, kindListener, answer{}, long, time.Now())
	if _, _, err := r.write(resources.Home{Zone: "zone-1"}); err != nil {
		t.Error(err)
	}
	if n := len(r.problemsLocked()[problemRefused(kindListener)]); n > maxProblem || n == 0 {
		t.Errorf("%d bytes of the refusal are kept", n)
	}
	r.setProblem(problemGateway, strings.Repeat("one; ", maxProblem))
	said := r.problemsLocked()[problemGateway]
	if len(said) > maxProblem || !strings.HasSuffix(said, resources.ProblemsCut) {
		t.Errorf("a list that was cut does not say so: %q", said)
	}
}
