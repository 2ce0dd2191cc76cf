package main

import (
	"context"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel/codes"

	"github.com/causeway-mesh/causeway/server"
)

// beginTrace begins the trace of a command if OTEL_* requests one. Servers with tracing continue it, down to the
// proxies. end takes the error of the command.
func beginTrace(cmd *cobra.Command) (ctx context.Context, end func(error), err error) {
	tracing, err := server.StartTracing(cmd.Context(), "causewayctl", nil)
	if err != nil {
		return nil, nil, usagef("%w", err)
	}
	if tracing.Tracer == nil {
		return cmd.Context(), func(error) {}, nil
	}
	ctx, span := tracing.Tracer.Start(cmd.Context(), cmd.CommandPath())
	return ctx, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
		tracing.Close()
	}, nil
}
