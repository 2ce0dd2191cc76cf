package kubernetes

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/server"
)

// The paths of the webhook. A secret part follows, which only the configurations in the cluster contain, so nobody else
// can call it.
const (
	pathMutate   = "/mutate"
	pathValidate = "/validate"
	pathInject   = "/inject"
)

// maxReview limits a review: an object and its previous version.
const maxReview = 8 << 20

// serveWebhook answers the API server until ctx ends.
func (b *Bridge) serveWebhook(ctx context.Context) error {
	secured := tls.NewListener(b.listener, b.Serving.config())
	return server.ServeHTTP(ctx, secured, http.HandlerFunc(b.answer), b.Panics)
}

// answer answers one review.
func (b *Bridge) answer(w http.ResponseWriter, r *http.Request) {
	path, secret, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	judge := map[string]func(context.Context, *admissionRequest) *admissionResponse{
		pathMutate:   func(ctx context.Context, q *admissionRequest) *admissionResponse { return b.judge(ctx, q, true) },
		pathValidate: func(ctx context.Context, q *admissionRequest) *admissionResponse { return b.judge(ctx, q, false) },
		pathInject:   b.judgePod,
	}["/"+path]
	if !b.Serving.knows(secret) || r.Method != http.MethodPost || judge == nil {
		http.Error(w, "not found", http.StatusNotFound)
		return
	}
	server.GuestOf(r.Context()).Prove()
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxReview))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	question, err := parseReview(raw)
	if err != nil {
		http.Error(w, "this is no AdmissionReview: "+err.Error(), http.StatusBadRequest)
		return
	}
	response := judge(r.Context(), question).about(question)
	response.UID = question.UID
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(admissionReview{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview",
		Response: response}) // the API server has disconnected
}

// learnSelf asks the API server for this server's user name, until it knows or ctx ends.
func (b *Bridge) learnSelf(ctx context.Context) error {
	for {
		name, err := b.Client.WhoAmI(ctx)
		if err == nil && name == "" {
			err = errors.New("the answer has no name")
		}
		if err == nil {
			b.selfName.Store(&name)
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retryInterval):
		}
	}
}

// self returns this server's user name at the API server; empty until it is known.
func (b *Bridge) self() string {
	if name := b.selfName.Load(); name != nil {
		return *name
	}
	return ""
}
