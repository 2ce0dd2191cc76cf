package xds

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	limitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/local_ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/resources"
)

// The filter that limits rates, and the prefix of its statistics.
const (
	limitFilter = "envoy.filters.http.local_ratelimit"
	limitStat   = "rate_limit"
)

// applyRateLimit gives a route a bucket of its own. A bucket refills when the routes of its inbound change.
func applyRateLimit(raw json.RawMessage, route *routev3.Route) error {
	var conf resources.RateLimitConf
	if err := json.Unmarshal(raw, &conf); err != nil {
		return err
	}
	if conf.Local == nil || conf.Local.HTTP == nil || conf.Local.HTTP.Disabled != nil && *conf.Local.HTTP.Disabled {
		return nil
	}
	number, interval, err := readRate(conf.Local.HTTP.RequestRate, "local.http", "requestRate")
	if err != nil {
		return err
	}
	always := &corev3.RuntimeFractionalPercent{DefaultValue: &typev3.FractionalPercent{Numerator: 100}}
	limit := &limitv3.LocalRateLimit{
		StatPrefix: limitStat, FilterEnabled: always, FilterEnforced: always,
		TokenBucket: &typev3.TokenBucket{
			MaxTokens: number, TokensPerFill: wrapperspb.UInt32(number), FillInterval: durationpb.New(interval),
		},
	}
	onLimit(limit, conf.Local.HTTP.OnRateLimit)
	return perRoute(route, limitFilter, limit)
}

// readRate reads a rate, which may be incomplete if a peer sent it. Its errors name the field.
func readRate(rate *resources.Rate, of, field string) (number uint32, interval time.Duration, err error) {
	if rate == nil || rate.Num == nil || *rate.Num == 0 || rate.Interval == nil {
		return 0, 0, fmt.Errorf("%s has no %s, and limits nothing", of, field)
	}
	interval, err = time.ParseDuration(*rate.Interval)
	if err != nil || interval < 50*time.Millisecond {
		return 0, 0, fmt.Errorf("%s.%s.interval: want a duration of at least 50ms", of, field)
	}
	return *rate.Num, interval, nil
}

func onLimit(limit *limitv3.LocalRateLimit, on *resources.OnRateLimit) {
	if on == nil {
		return
	}
	if on.Status != nil {
		limit.Status = &typev3.HttpStatus{Code: typev3.StatusCode(*on.Status)}
	}
	limit.ResponseHeadersToAdd = headerOptions(on.Headers)
}

// headerOptions returns the headers that a conf makes Envoy set; nil for none.
func headerOptions(changes *resources.HeaderChanges) (out []*corev3.HeaderValueOption) {
	if changes == nil {
		return nil
	}
	add := func(headers []resources.HeaderValue, how corev3.HeaderValueOption_HeaderAppendAction) {
		for _, h := range headers {
			if !resources.WritableHeader(h.Name) || !resources.HeaderText(h.Value) {
				continue // only a peer can send this
			}
			out = append(out, &corev3.HeaderValueOption{
				// Envoy reads % as the start of a variable; users write text.
				Header:       &corev3.HeaderValue{Key: h.Name, Value: strings.ReplaceAll(h.Value, "%", "%%")},
				AppendAction: how, KeepEmptyValue: true,
			})
		}
	}
	add(changes.Set, corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD)
	add(changes.Add, corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD)
	return out
}

// perRoute enables a filter for a route.
func perRoute(route *routev3.Route, filter string, config message) error {
	packed, err := pack(config)
	if err != nil {
		return err
	}
	if route.TypedPerFilterConfig == nil {
		route.TypedPerFilterConfig = map[string]*anypb.Any{}
	}
	route.TypedPerFilterConfig[filter] = packed
	return nil
}
