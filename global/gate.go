package global

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/lineage"
	"github.com/causeway-mesh/causeway/questions"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/backend"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/tokens"
)

// gate holds the parts that decide which zones are admitted.
type gate struct {
	config    *Config
	admission *admission
	rotations *rotations
	clones    *clones
	issuer    *tokens.Issuer
	// lineage identifies the store.
	lineage *lineage.Book
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
	past, err := lineage.Open(ctx, durable, keeper, c.Store.Kind == backend.Etcd)
	if err != nil {
		return nil, err
	}
	audit := auditor{guard.Audit(), c.Log}
	registry := enrolment.NewRegistry(keeper, c.Now)
	rotations, err := newRotations(ctx, authority, registry, audit, c.Log)
	if err != nil {
		return nil, err
	}
	return &gate{
		config: c, lineage: past, rotations: rotations, clones: newClones(c.Now, c.Log),
		issuer: guard.Issuer(),
		admission: &admission{
			store: durable, registry: registry, keeper: keeper, authority: authority, tokens: guard.Issuer(), adoptions: newAdoptions(c.Now),
			allowTokens: c.KDSZoneTokens, allowAnonymous: c.KDSInsecureAnonymous, now: c.Now, audit: audit, log: c.Log,
			rechecks: rechecks{store: durable},
		},
	}, nil
}

// wordAt returns the function for kds.GlobalConfig.WordAt.
func (g *gate) wordAt() func(uint64) string {
	if g.config.Store.Kind != backend.Etcd {
		return nil
	}
	return g.lineage.WordAt
}

// expiries returns when the authority that signs for zones (zone-ca) expires, or nothing if it cannot be read.
func (g *gate) expiries() map[string]time.Time {
	ring, _, err := g.admission.authority.Current(context.Background())
	if err != nil || len(ring) == 0 {
		return nil
	}
	return map[string]time.Time{"zone-ca": ring[len(ring)-1].Cert.NotAfter}
}

// serve returns the server of the KDS port, where zones join and sync. It registers the routes by which operators
// manage them.
func (g *gate) serve(port *zonePort, routes *api.Server, zones *zones) (*grpc.Server, error) {
	s, err := newKDSServer(g.config, port, g.admission, zones.sync)
	if err != nil {
		return nil, err
	}
	zones.sync.Register(s)
	m := &membership{admission: g.admission, rotations: g.rotations, questions: zones.questions,
		pace: access.NewPace(certificateEvery, certificateBurst, g.admission.now)}
	if port.certificate != nil {
		m.ca = port.certificate.CAPEM
	}
	enrolment.RegisterMembership(g.config.Panics.Registrar("membership", s), m)
	questions.Register(g.config.Panics.Registrar("questions", s), zones.questions, g.admission.authenticate)
	i := &issuer{admission: g.admission, sync: zones.sync, authorize: routes.Authorize, addresses: port.addresses,
		everyAddress: zones.replicas.everyAddress}
	if port.certificate != nil && g.config.KDSTLS {
		i.caSHA256 = port.certificate.CASHA256
	}
	zoneAdmin := &zoneAdmin{admission: g.admission, store: zones.store, sync: zones.sync, zones: zones}
	zoneAdmin.register(routes, i)
	keyrings{enrolment.AuthoritySecret: g.rotations, tokenPurpose: tokenKeys{g.issuer}}.register(routes)
	routes.AddConditions(g.clones.conditions)
	return s, nil
}

// run rechecks credentials and retires authorities, if this replica leads, until ctx ends.
func (g *gate) run(ctx context.Context, sync *kds.Global, leads func() bool) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return g.rotations.run(ctx, leads) })
	group.Go(func() error { return g.admission.run(ctx, sync) })
	return group.Wait()
}
