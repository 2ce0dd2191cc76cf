package kds

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/systempb"
)

// Keys of the gRPC metadata. Source: Kuma's wire format, "Request metadata".
const (
	metadataClientID      = "client-id"
	metadataFeatures      = "features"
	metadataAuthorization = "authorization"
	// metadataSystemNamespace names the zone's system namespace. Other implementations do not send it; their system
	// namespace is taken to have our name.
	metadataSystemNamespace = "causeway-system-namespace"
	metadataVersion         = "version"
	metadataProtocol        = "kds-version"
)

// identify returns the zone that calls and the pass that admits it: nil without Authenticate.
func (g *Global) identify(ctx context.Context) (string, metadata.MD, Pass, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	if before, ok := ctx.Value(judgedKey{}).(*judged); ok {
		return before.zone, md, before.pass, nil
	}
	if g.config.Authenticate == nil {
		zone, err := ClientID(md)
		return zone, md, nil, err
	}
	zone, pass, err := g.config.Authenticate(ctx)
	return zone, md, pass, err
}

// ClientID returns the zone that the metadata of a call names. Errors: ErrNoClientID, ErrZoneName.
func ClientID(md metadata.MD) (string, error) {
	ids := md.Get(metadataClientID)
	if len(ids) != 1 || ids[0] == "" {
		return "", ErrNoClientID
	}
	return ids[0], CheckZoneName(ids[0])
}

var errNoOptions = errors.New("the server was made without kds.ServerOptions")

// join adds a stream to the session of its connection. A new session ends the zone's previous one.
func (g *Global) join(ctx context.Context, d exchange.Direction) (*session, *zoneData, error) {
	zone, md, pass, err := g.identify(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := g.admit(ctx, zone); err != nil {
		return nil, nil, fmt.Errorf("zone %s: %w", zone, err)
	}
	connection := connectionOf(ctx)
	if connection == nil {
		return nil, nil, errNoOptions
	}
	current, data, fresh, err := g.enter(connection, d, zone, pass, md)
	if err != nil {
		return nil, nil, fmt.Errorf("zone %s: %w", zone, err)
	}
	if err := g.config.Panics.Do(serving, current.claim); err != nil {
		return nil, nil, g.leave(current, d, err)
	}
	if fresh {
		g.logOf(current, d).Info("zone connected")
	}
	return current, data, nil
}

// enter finds the session of a connection, or makes it, and counts the stream until leave. If it panics, no session has
// the stream.
func (g *Global) enter(connection *connection, d exchange.Direction, zone string, pass Pass,
	md metadata.MD) (current *session, data *zoneData, fresh bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	current = g.sessions[zone]
	if current != nil && current.connection.number > connection.number {
		return nil, nil, false, ErrFenced
	}
	data = g.zoneDataLocked(zone)
	if current != nil && current.enter(connection, d) {
		g.readers.Add(1)
		return current, data, false, nil
	}
	replaced := current
	current = newSession(g.ctx, g.last+1, zone, g.config.Observer, g.config.Now)
	current.connection, current.transport, current.pass = connection, connection.transport, pass
	current.authTokenProvided = len(md.Get(metadataAuthorization)) > 0
	current.features = exchange.ParseFeatures(md.Get(metadataFeatures))
	current.system = systemNamespaceIn(md)
	if !current.enter(connection, d) {
		// The server began to drain after the stream was admitted: no stream would be in the session to remove it from
		// the map.
		err := current.fence()
		current.cancel(err)
		return nil, nil, false, err
	}
	g.last++
	// Set claim before the session's other stream can find it: the first event of a session is its start.
	current.claim = g.begins(g.claims(current, data), current, data, md)
	data.ledger.Session(true, g.config.Now())
	g.sessions[zone] = current
	if pass != nil {
		g.rechecks.sessions = append(g.rechecks.sessions, current)
	}
	if replaced != nil {
		replaced.cancel(ErrFenced)
	}
	if len(g.held[zone]) > 0 {
		g.freeLocked(zone, ErrFenced, func(h *heldStream) bool { return h.connection.number < connection.number })
	}
	if err := g.config.Panics.Do(serving, func() error {
		current.observe(Event{Kind: SessionStarted, Time: g.config.Now()})
		return nil
	}); err != nil {
		delete(g.sessions, zone)
		data.ledger.Session(false, g.config.Now())
		current.cancel(err) // otherwise it lives as long as the server's context
		return nil, nil, false, err
	}
	g.readers.Add(1)
	return current, data, true, nil
}

// begins returns the function that both streams of a session wait for: it claims the zone and checks the zone's store.
// The claim makes sure that what this server knows of that store is current.
func (g *Global) begins(claim func() error, s *session, data *zoneData, md metadata.MD) func() error {
	return sync.OnceValue(func() error {
		if err := claim(); err != nil {
			return err
		}
		err := data.met.current(s.ctx, md.Get(metadataCompared))
		if err == nil {
			err = data.met.meet(s.ctx, health{epoch: epochOf(md), point: parseSeen(md.Get(metadataPoint))})
		}
		if err != nil {
			return fmt.Errorf("zone %s: what is known of its store: %w", s.zone, err)
		}
		return nil
	})
}

// leave removes a stream from its session and ends the session.
func (g *Global) leave(s *session, d exchange.Direction, err error) error {
	defer g.readers.Done()
	s.cancel(err)
	err = context.Cause(s.ctx)
	if errors.Is(err, ErrSendTimeout) || errors.Is(err, ErrNoAnswer) || errors.Is(err, ErrTooManyTypes) {
		s.connection.hangUp() // the peer does not read, so a status would not reach it
	}
	if !s.exit() {
		return err
	}
	g.drop(s)
	g.logOf(s, d).Info("zone disconnected", "error", err)
	s.observe(Event{Kind: SessionEnded, Time: g.config.Now(), Err: err})
	return err
}

// drop removes a session that has no streams left.
func (g *Global) drop(s *session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sessions[s.zone] != s {
		return
	}
	delete(g.sessions, s.zone)
	if data := g.zones[s.zone]; data != nil {
		data.ledger.Session(false, g.config.Now())
		data.over.Meet(tracker.LimitRefusals, "", tracker.KeptRefusals, data.refusals.Rest())
	}
}

// admit registers a zone that connects for the first time and refuses one that is disabled.
func (g *Global) admit(ctx context.Context, zone string) error {
	if g.ctx.Err() != nil {
		return ErrDraining
	}
	if held := g.config.Store.Snapshot().Get(ZoneKey(zone)); held != nil {
		if !takesPart(held) {
			return ErrZoneDisabled
		}
		return nil
	}
	return g.EnsureZone(ctx, zone)
}

// EnsureZone registers a zone, enabled, unless it is registered already.
func (g *Global) EnsureZone(ctx context.Context, zone string) error {
	if g.config.Store.Snapshot().Get(ZoneKey(zone)) != nil {
		return nil
	}
	spec, err := resources.NewSpecOf(resources.TypeZone, &systempb.Zone{Enabled: wrapperspb.Bool(true)})
	if err != nil {
		return err
	}
	r := &resources.Resource{Key: ZoneKey(zone), Spec: spec}
	r.Labels = g.home.ComputedLabels(r)
	_, err = g.config.Store.Apply(ctx, store.Batch{Ops: []store.Op{{Put: r, If: store.IfAbsent()}}})
	if errors.Is(err, store.ErrConflict) {
		return nil // the zone's other stream was first
	}
	return err
}

// systemNamespaceIn reads the name of a zone's system namespace; empty if the zone does not send it, or it is not a
// valid name.
func systemNamespaceIn(md metadata.MD) string {
	if said := md.Get(metadataSystemNamespace); len(said) == 1 && CheckZoneName(said[0]) == nil { // a DNS label, too
		return said[0]
	}
	return ""
}
