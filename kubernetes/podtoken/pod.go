package podtoken

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
)

// Audience is the audience of the tokens with which proxies prove their pod.
const Audience = "causeway-proxy"

var (
	// ErrRefused reports a token that proves no pod.
	ErrRefused = errors.New("the token proves no pod")
	// ErrExpired reports a token that has expired, and wraps ErrRefused: the kubelet has not renewed it, or the clocks of the zone
	// and of the API server differ.
	ErrExpired = fmt.Errorf("%w: it has expired", ErrRefused)
	// ErrNotYet reports a token that is not valid yet, and wraps ErrRefused: the clocks differ.
	ErrNotYet = fmt.Errorf("%w: it is not valid yet", ErrRefused)
	// ErrUnknown reports that a token's validity is unknown: the API server is unreachable, or does not let us ask.
	ErrUnknown = errors.New("the Kubernetes API server does not say whose token it is")
)

// Pod is the pod that presents a token.
type Pod struct {
	Namespace, Name, UID string
	ServiceAccount       string
	// Expires is when the token ends.
	Expires time.Time
}

// The attributes of a token that is bound to a pod. Source: Kubernetes, k8s.io/apiserver/pkg/authentication/serviceaccount.
const (
	userPrefix = "system:serviceaccount:"
	extraName  = "authentication.kubernetes.io/pod-name"
	extraUID   = "authentication.kubernetes.io/pod-uid"
)

// podOf reads the API server's statement about a token that ends at expires. Errors wrap ErrRefused.
func podOf(u apiserver.User, expires time.Time) (Pod, error) {
	account, ok := strings.CutPrefix(u.Username, userPrefix)
	namespace, name, both := strings.Cut(account, ":")
	if !ok || !both || namespace == "" || name == "" {
		return Pod{}, fmt.Errorf("%w: it is not that of a service account", ErrRefused)
	}
	pod, uid := u.Extra[extraName], u.Extra[extraUID]
	if len(pod) != 1 || len(uid) != 1 || pod[0] == "" || uid[0] == "" {
		return Pod{}, fmt.Errorf("%w: it is not bound to a pod", ErrRefused)
	}
	return Pod{Namespace: namespace, Name: pod[0], UID: uid[0], ServiceAccount: name, Expires: expires}, nil
}
