package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/explain"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// proposal is a policy that allows only one request.
type proposal struct {
	resource *resources.Resource
	// document is the resource as it can be applied.
	document json.RawMessage
}

// maxProposals bounds the proxies for which policies are proposed, one each.
const maxProposals = 20

// propose returns the smallest policies, one for each proxy, that allow a denied request. If it returns none, it says
// why: an entry denies the request, or Envoy refuses it before it evaluates the rules, so that no added policy can
// allow it; or the server is not the zone of the proxies, whose owners decide; or there are too many proxies.
func propose(ctx context.Context, client *api.Client, answer *explain.Answer) (all []*proposal, none string, err error) {
	switch {
	case answer.Allowed():
		return nil, "", nil
	case !isZone(ctx, client):
		return nil, "it belongs to the zone of the service: ask the zone, by --address or --context", nil
	}
	proxies := answer.Proxies
	if len(proxies) == 0 {
		proxies = []explain.ProxyVerdict{{Inbound: answer.Inbound, Verdict: answer.Verdict, Policy: answer.Policy}}
	}
	for _, proxy := range proxies {
		switch {
		case proxy.Verdict == explain.Allow:
		case proxy.Policy != rbac.NameDefault:
			return nil, "what decides is said above", nil
		case len(all) == maxProposals:
			return nil, fmt.Sprintf("more than %d proxies deny it, and each would need its own: write one that selects them by labels",
				maxProposals), nil
		default:
			p, err := proposeAt(ctx, client, proxy.Inbound, answer.Request)
			if err != nil {
				return nil, "", err
			}
			all = append(all, p)
		}
	}
	return all, "", nil
}

// proposeAt returns the policy for one inbound.
func proposeAt(ctx context.Context, client *api.Client, inbound string, request explain.Request) (*proposal, error) {
	kri, err := resources.ParseKRI(inbound)
	if err != nil {
		return nil, err
	}
	dp, err := fetchKRI(ctx, client, kri.WithSection("").String())
	if err != nil {
		return nil, err
	}
	entry := resources.PermissionMatch{SpiffeID: &resources.SpiffeIDMatch{Type: resources.MatchExact, Value: request.From}}
	if request.Method != "" {
		entry.Method = resources.Methods{request.Method}
		path, _, _ := strings.Cut(request.Path, "?") // rules do not see the query
		entry.Path = &resources.PathMatch{Type: resources.MatchExact, Value: path}
	}
	target := &resources.TargetRef{Kind: resources.KindDataplane, Name: kri.Name, Namespace: kri.Namespace,
		SectionName: kri.Section}
	raw, err := json.Marshal(map[string]any{"targetRef": target,
		"rules": []any{map[string]any{"default": map[string]any{"allow": []any{entry}}}}})
	if err != nil {
		return nil, err
	}
	spec, err := resources.NewSpec(resources.TypeMeshTrafficPermission, raw)
	if err != nil {
		return nil, err
	}
	p := &proposal{resource: &resources.Resource{Spec: spec, Key: resources.Key{Type: resources.TypeMeshTrafficPermission,
		Mesh: dp.Mesh, Namespace: dp.Namespace, Name: proposalName(request.From, kri.Name, raw)}}}
	document := map[string]any{"type": p.resource.Type, "mesh": p.resource.Mesh, "name": p.resource.Name, "spec": json.RawMessage(spec.JSON())}
	if p.resource.Namespace != "" {
		document["namespace"] = p.resource.Namespace
	}
	p.document, err = json.Marshal(document)
	return p, err
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// proposalName returns a descriptive name that no policy with other content has.
func proposalName(from, to string, spec []byte) string {
	sum := sha256.Sum256(spec)
	words := notInNames.ReplaceAllString(strings.ToLower(from[strings.LastIndexByte(from, '/')+1:]+"-to-"+to), "-")
	return "allow-" + strings.Trim(words[:min(len(words), 40)], "-") + "-" + hex.EncodeToString(sum[:4])
}

// applyProposals stores the policies, and asks again.
func (c *cli) applyProposals(ctx context.Context, client *api.Client, all []*proposal, q *explain.Query) error {
	var docs []document
	for i, p := range all {
		docs = append(docs, document{source: "the policies above", number: i + 1, resource: p.resource})
	}
	result, err := applyDocuments(ctx, client, docs)
	if err != nil {
		return err
	}
	for _, one := range result.Results {
		for _, warning := range one.Warnings {
			fmt.Fprintf(c.errOut, "warning: %s\n", warning)
		}
	}
	client.AtLeast(result.Revision)
	answer, err := askServer(ctx, client, q)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.errOut, "stored; the request is now %s by %s\n", verdictText(answer.Answer), answer.Policy)
	if !answer.Allowed() {
		return errNo
	}
	return nil
}
