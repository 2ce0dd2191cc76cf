package kds

import "context"

// judgedKey is the context key of a call whose caller was authenticated before its message was read.
type judgedKey struct{}

// judged is the result of that authentication.
type judged struct {
	zone string
	pass Pass
}

// judge authenticates the callers of unary methods that only zones may call.
type judge interface {
	judge(ctx context.Context) (context.Context, error)
}

// judgedBy authenticates the caller before the call's message is read. With the context that it returns, identify
// returns the same result. Errors are gRPC statuses.
//
//nolint:revive // the order of arguments is gRPC's
func judgedBy(srv any, ctx context.Context) (context.Context, error) {
	if j, ok := srv.(judge); ok {
		return j.judge(ctx)
	}
	return ctx, nil
}

func (g *Global) judge(ctx context.Context) (context.Context, error) {
	zone, _, pass, err := g.identify(ctx)
	if err != nil {
		return nil, ToStatus(err)
	}
	return context.WithValue(ctx, judgedKey{}, &judged{zone, pass}), nil
}
