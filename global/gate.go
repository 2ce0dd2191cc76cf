package global

import (
	"context"
	"errors"
	"net"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/resources/api"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/backend"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/server"
	"github.com/causeway-mesh/causeway/tokens"
)

// gate holds all parts that decide which zones are admitted.
type gate struct {
	config    *Config
	admission *admission
	rotations *rotations
	clones    *clones
	issuer    *tokens.Issuer
	replicas  *replicas
	// incarnation identifies the store; lineage distinguishes it from an older copy.
	incarnation string
	lineage     *lineage
}

// openGate opens the secrets in the store and creates missing ones.
func openGate(ctx context.Context, c *Config, durable store.Store, box *secrets.Box,
	guard *access.Guard) (*gate, error) {
	keeper := secrets.NewKeeper(durable, box)
	authority, err := enrolment.OpenAuthority(ctx, keeper, enrolment.AuthorityConfig{
		Lifetime: c.ZoneCredentialLifetime, Now: c.Now, Folder: c.certificateDir(), Log: c.Log,
	}, box)
	if err != nil {
		return nil, err
	}
	if c.Store.Kind != backend.Etcd {
		if err := renameCopy(ctx, keeper, c.DataDir, c.Log); err != nil {
			return nil, err
		}
	}
	incarnation, err := incarnationOf(ctx, keeper)
	if err != nil {
		return nil, err
	}
	past, err := beginLineage(ctx, durable, keeper, incarnation, c.Store.Kind == backend.Etcd)
	if err != nil {
		return nil, err
	}
	audit := auditor{guard.Audit(), c.Log}
	members := enrolment.NewRegistry(keeper, c.Now)
	rotations, err := newRotations(ctx, authority, members, audit, c.Log)
	if err != nil {
		return nil, err
	}
	return &gate{
		config: c, incarnation: incarnation, lineage: past, rotations: rotations, clones: newClones(c.Now, c.Log),
		issuer: guard.Issuer(),
		admission: &admission{
			store: durable, members: members, authority: authority, tokens: guard.Issuer(), adoptions: newAdoptions(c.Now),
			allowTokens: c.KDSZoneTokens, allowAnonymous: c.KDSInsecureAnonymous, now: c.Now, audit: audit, log: c.Log,
		},
	}, nil
}

// expiries returns when the authority expires that signs for zones (zone-ca); nothing if it cannot be read.
func (g *gate) expiries() map[string]time.Time {
	ring, _, err := g.admission.authority.Current(context.Background())
	if err != nil || len(ring) == 0 {
		return nil
	}
	return map[string]time.Time{"zone-ca": ring[len(ring)-1].Cert.NotAfter}
}

// serve returns the server of the KDS port, where zones join and sync, and registers the routes by which operators
// manage them.
func (g *gate) serve(l net.Listener, certificate *server.Certificate, routes *api.Server,
	zones *zones) (*grpc.Server, error) {
	s, err := newKDSServer(g.config, l, certificate, g.admission)
	if err != nil {
		return nil, err
	}
	zones.sync.Register(s)
	i, err := g.offers(zones.sync, l, certificate, routes)
	if err != nil {
		return nil, err
	}
	g.rotations.leads = g.replicas.leads
	m := &membership{admission: g.admission, rotations: g.rotations,
		pace: access.NewPace(certificateEvery, certificateBurst, g.admission.now)}
	if certificate != nil {
		m.ca = certificate.CAPEM
	}
	enrolment.RegisterMembership(g.config.Panics.Registrar("membership", s), m)
	standing := &standing{admission: g.admission, store: zones.store, sync: zones.sync, zones: zones}
	zones.bury = standing.buryKnown
	standing.register(routes, i)
	keyrings{enrolment.AuthoritySecret: g.rotations, tokenPurpose: tokenKeys{g.issuer}}.register(routes)
	routes.AddConditions(g.clones.conditions)
	return s, nil
}

// offers returns the issuer of join strings and tokens.
func (g *gate) offers(sync *kds.Global, l net.Listener, certificate *server.Certificate,
	routes *api.Server) (*issuer, error) {
	i := &issuer{admission: g.admission, sync: sync, authorize: routes.Authorize, addresses: g.config.KDSAdvertise}
	if certificate == nil || !g.config.KDSTLS {
		return i, nil
	}
	i.caSHA256 = certificate.CASHA256
	if len(i.addresses) == 0 {
		i.addresses = advertised(l.Addr())
	}
	if len(i.addresses) == 0 {
		return nil, errors.New("zones could not find this global: give its addresses with --kds-advertise-address")
	}
	g.replicas.addresses, i.everyAddress = i.addresses, g.replicas.everyAddress
	return i, nil
}

// run rechecks credentials and retires authorities until ctx ends.
func (g *gate) run(ctx context.Context, sync *kds.Global) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return g.rotations.run(ctx) })
	group.Go(func() error { return g.admission.run(ctx, sync.Recheck) })
	return group.Wait()
}

// maxAdvertised bounds the addresses in a join string.
const maxAdvertised = 8

// advertised returns the addresses at which others may reach a listener on a: its own, or those of this machine, with
// its name last, which not all machines can resolve.
func advertised(a net.Addr) []string {
	_, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return nil
	}
	tcp, ok := a.(*net.TCPAddr)
	if ok && !tcp.IP.IsUnspecified() {
		return []string{a.String()}
	}
	hosts := hostsOf(a)
	var out []string
	for _, host := range append(hosts[min(1, len(hosts)):], hosts[:min(1, len(hosts))]...) {
		if address := net.JoinHostPort(host, port); enrolment.CheckAddress(address) == nil {
			out = append(out, address)
		}
	}
	if len(out) == 0 {
		return []string{net.JoinHostPort("127.0.0.1", port)}
	}
	return out[:min(len(out), maxAdvertised)]
}
