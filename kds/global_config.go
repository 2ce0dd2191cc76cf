package kds

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/causeway-mesh/causeway/lineage"
	"github.com/causeway-mesh/causeway/panics"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// GlobalConfig configures the global's side of KDS.
type GlobalConfig struct {
	// Store holds the mesh's resources; required.
	Store store.Store
	// Status holds volatile resources: DataplaneInsights. If it is nil, they go to Store.
	Status store.Store
	// Validate judges the resources that zones send, after mapping, given the name of the zone's system namespace. Nil
	// accepts all that decode.
	Validate func(r *resources.Resource, systemNamespace string) error
	// SystemNamespace decides the roles of zones' policies, and is where copies live in references;
	// resources.DefaultSystemNamespace by default.
	SystemNamespace string
	// Self describes this global to peers; NewGlobal sets its features.
	Self Peer
	// MaxMessageSize is the size in bytes at which messages are split: DefaultMaxMessageSize by default, at most
	// MaxMessageSize.
	MaxMessageSize int
	// SendTimeout ends the session of a zone that does not read, once a message has waited that long for room in the
	// transport; 10 s by default.
	SendTimeout time.Duration
	// FullSyncLimit is the number of zones that get their full state at once, in order of arrival; DefaultFullSyncLimit
	// by default.
	FullSyncLimit int
	// FullSyncs, if not nil, is called when the first large full state begins and when the last one ends; it must return
	// quickly.
	FullSyncs func(under bool)
	// AnswerTimeout ends the session of a zone that does not answer a message while more waits for it; 2 min by
	// default.
	AnswerTimeout time.Duration
	// HealthInterval is the interval at which zones call HealthCheck; zero leaves it to them.
	HealthInterval time.Duration
	// Authenticate returns, for each call, which zone the caller is (ClientID returns which it claims to be); nil
	// trusts the claim. Its errors wrap ErrUnauthenticated or ErrNotAllowed, or are those of ClientID. Recheck checks
	// the Pass of the call that began a session again.
	Authenticate func(ctx context.Context) (zone string, pass Pass, err error)
	// Limits bound what one zone can make the global hold.
	Limits Limits
	// AcceptDeletes reports whether an operator lets removals pass that the mass-deletion guard holds; nil never does.
	AcceptDeletes func(zone string, t resources.Type) bool
	// Epoch identifies the store's history: zones hold the deletions that they would make because a store of
	// another epoch lacks the resources. If empty, it is not announced.
	Epoch string
	// StoreOf keeps which epoch of a zone's store the global has accepted. What a store of another epoch
	// lacks is held, not removed. Nil compares nothing.
	StoreOf func(zone string) Epochs
	// Compare returns the position of the store, and whether the store continues the one that a zone has seen; nil
	// compares nothing.
	Compare func(ctx context.Context, seen lineage.Seen) (now lineage.Seen, continues bool, err error)
	// WordAt returns the word of the store's last start at a revision, for a store that several servers write: starts of
	// others may fall between two messages of a session. Nil otherwise.
	WordAt func(revision uint64) string
	// Replica is this server's instance name among those that share Store, which then holds a claim for each zone.
	// Empty for a server that has its store to itself.
	Replica string
	// Versions persists the versions of zones' copies over restarts; nil keeps them in memory only.
	Versions *VersionFiles
	// Open decrypts the secrets of resources that are sent; nil if nothing is sealed.
	Open OpenFunc
	// Observer receives the events of sessions; nil for none.
	Observer Observer
	// Tracer records a span for each step of a traced change; nil for none.
	Tracer trace.Tracer
	// Panics recovers panics on behalf of one zone; with nil they end the process.
	Panics *panics.Guard
	// Now is the wall clock; time.Now by default.
	Now func() time.Time
	Log *slog.Logger

	// inspect is senderConfig.inspect.
	inspect func(*sender)
}

// fill sets the defaults.
func (c *GlobalConfig) fill() {
	if c.Validate == nil {
		c.Validate = func(*resources.Resource, string) error { return nil }
	}
	c.SystemNamespace = cmp.Or(c.SystemNamespace, resources.DefaultSystemNamespace)
	c.Limits = c.Limits.filled()
	c.MaxMessageSize = messageSize(c.MaxMessageSize)
	if c.FullSyncLimit <= 0 {
		c.FullSyncLimit = DefaultFullSyncLimit
	}
	c.SendTimeout = cmp.Or(c.SendTimeout, DefaultSendTimeout)
	c.AnswerTimeout = cmp.Or(c.AnswerTimeout, defaultAnswerTimeout)
	if c.Observer == nil {
		c.Observer = silent{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
}

// The defaults of both sides; those of FullSyncLimit and SendTimeout are also the flags'.
const (
	DefaultFullSyncLimit = 50
	DefaultSendTimeout   = 10 * time.Second
	defaultAnswerTimeout = 2 * time.Minute
)

func messageSize(n int) int {
	if n <= 0 {
		n = DefaultMaxMessageSize
	}
	return min(n, MaxMessageSize-envelopeRoom)
}
