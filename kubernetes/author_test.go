package kubernetes

import (
	"fmt"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// theirs is what the author of an object in the namespace shop may not read, and mine what she may.
const (
	theirs = "kri_dp_default_zone-1_vault_safe_"
	mine   = "kri_dp_default_zone-1_shop_web_"
)

// TestAuthorsSeeTheirNamespace has the server say, to whoever writes an object, something of another namespace: in
// warnings, in what a dry run would touch, in conditions, and in how far it has come. Only an operator, who writes in the
// system namespace, is told.
func TestAuthorsSeeTheirNamespace(t *testing.T) {
	g := newRig(t)
	text := "it means " + theirs + " and " + mine
	g.Routes.AddWarnings(func(store.Snapshot, *resources.Resource, *api.Reader) []string { return []string{text} })
	g.Routes.AddConditions(func(*resources.Resource) []resources.Condition {
		return []resources.Condition{{Type: resources.ConditionAccepted, Status: resources.ConditionFalse, Reason: "X", Message: text}}
	})
	g.Routes.AddPreview(func(p *api.Preview) error {
		touched := &api.ForecastProxies{}
		for namespace, kri := range map[string]string{"vault": theirs, "shop": mine} {
			if p.Reader.Dataplane("default", namespace, "any") {
				touched.Items = append(touched.Items, kri)
			}
		}
		touched.Total = len(touched.Items)
		p.Changes[0].Forecast.Proxies = touched
		return nil
	})
	g.list()
	for namespace, told := range map[string]bool{"shop": false, resources.DefaultSystemNamespace: true} {
		object := permissionIn(namespace, "u", 1, nil, true)
		question := asked(operationCreate, object.Raw, nil)
		question.Namespace, question.DryRun = namespace, true
		answer := g.judge(t.Context(), question, false)
		if !answer.Allowed {
			t.Fatalf("%s: %+v", namespace, answer.Status)
		}
		doc, err := decoded(object.Raw, g.Home)
		must(t, err)
		author := g.Routes.Author(doc)
		conditions := (&conditionInputs{stored: doc, generation: doc.Object.Generation, others: g.Routes.ConditionsOf(doc),
			author: author, rollout: heldUp()}).conditions()
		for what, got := range map[string]string{
			"the answer to a dry run": strings.Join(answer.Warnings, "\n"), "the conditions": fmt.Sprintf("%+v", conditions),
		} {
			if strings.Contains(got, "safe") != told || !strings.Contains(got, "web") {
				t.Errorf("%s, to who writes in %s: told of another namespace is not %v:\n%s", what, namespace, told, got)
			}
		}
		if text := fmt.Sprintf("%+v", conditions); told == strings.Contains(text, "1 proxies of other namespaces") {
			t.Errorf("what is not named is not counted, for who writes in %s:\n%s", namespace, text)
		}
	}
}

// heldUp is the rollout of a policy that waits for proxies of two namespaces.
func heldUp() *tracker.Rollout {
	r := &tracker.Rollout{NotEnforced: []string{"on " + theirs + ": no", "on " + mine + ": no"}}
	r.Proxies.Total = 4
	for namespace, name := range map[string]string{"vault": "safe", "shop": "web"} {
		r.Proxies.Behind = append(r.Proxies.Behind, tracker.ProxyBehind{Mesh: "default", Namespace: namespace, Name: name})
		r.Proxies.Unknown = append(r.Proxies.Unknown, tracker.ProxyUnknown{Mesh: "default", Namespace: namespace, Name: name,
			Reason: "not seen"})
	}
	return r
}
