package kds

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/panics"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// ZoneConfig configures the zone's side of KDS.
type ZoneConfig struct {
	// Zone is this zone's name; required.
	Zone string
	// Target is the global's host:port; required. Others are the addresses of its other replicas, or more of its own. A
	// zone begins with any of them, so that zones spread, and tries the next at once when a session ends; it waits only
	// if none serves.
	Target string
	Others []string
	// Credentials secure the connection; nil is plaintext, for loopback.
	Credentials credentials.TransportCredentials
	// Store holds the zone's resources; required.
	Store store.Store
	// Status holds volatile resources: DataplaneInsights. If it is nil, those of Store are sent.
	Status store.Reader
	// Validate judges the global's resources after mapping; nil accepts all that decode.
	Validate func(*resources.Resource) error
	// SystemNamespace decides the roles of policies, and is where copies live in references;
	// resources.DefaultSystemNamespace by default.
	SystemNamespace string
	// Self describes this zone to the global; NewZone sets its features.
	Self Peer
	// MaxMessageSize is the size in bytes at which messages are split: DefaultMaxMessageSize by default, at most
	// MaxMessageSize.
	MaxMessageSize int
	// SendTimeout ends a session whose global does not read; 10 s by default. AnswerTimeout ends one whose global does
	// not answer while more waits for it; 2 min by default.
	SendTimeout, AnswerTimeout time.Duration
	// HealthInterval is the interval of HealthCheck unless the global sets one; 1 min by default.
	HealthInterval time.Duration
	// BackoffMin (500 ms by default) and BackoffMax (30 s) bound the wait between sessions, which doubles, with jitter.
	// A session that lasted longer than the wait before it resets the wait.
	BackoffMin, BackoffMax time.Duration
	// Beside runs with each session, on its connection and with its metadata in ctx, until ctx ends. When it returns,
	// the session ends. Nil for nothing.
	Beside func(ctx context.Context, conn grpc.ClientConnInterface) error
	// Answers is set if Beside takes and answers the global's questions.
	Answers bool
	// AcceptDeletes reports whether an operator lets removals pass that the mass-deletion guard holds; nil never does.
	AcceptDeletes func(zone string, t resources.Type) bool
	// Proxies lists the proxies that have not acknowledged all that follows from the store, and counts the streams that
	// proxies had opened before. reported reports whether the global has a revision of Status: a proxy whose problems
	// it does not know yet counts as behind. If Proxies is nil, the global gets no reports on them.
	Proxies func(reported func(revision uint64) bool) (behind []tracker.ProxyBehind, streams uint32)
	// Own identifies the zone's own store; nil announces nothing.
	Own OwnStore
	// Epochs keeps which epoch of the global's store the zone has accepted; nil accepts any.
	Epochs Epochs
	// Versions persists the versions of the global's copies over restarts; nil keeps them in memory only.
	Versions *VersionFiles
	// Open decrypts the secrets of resources that are sent; nil if nothing is sealed.
	Open OpenFunc
	// Observer receives the events of sessions; nil for none.
	Observer Observer
	// Tracer records a span for each step of a traced change; nil for none.
	Tracer trace.Tracer
	// Panics recovers panics on behalf of the global; with nil they end the process.
	Panics *panics.Guard
	// Now is the wall clock; time.Now by default.
	Now func() time.Time
	Log *slog.Logger

	// inspect is senderConfig.inspect.
	inspect func(*sender)
}
