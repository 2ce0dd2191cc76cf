package xds

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/common/fault/v3"
	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/causeway-mesh/causeway/resources"
)

// faultFilter is the filter that injects faults.
const faultFilter = "envoy.filters.http.fault"

// applyFault adds the first fault of a conf to a route, because there is one filter for faults.
func applyFault(raw json.RawMessage, route *routev3.Route) error {
	var conf resources.FaultInjectionConf
	if err := json.Unmarshal(raw, &conf); err != nil {
		return err
	}
	if len(conf.HTTP) == 0 {
		return nil
	}
	fault, err := faultOf(&conf.HTTP[0])
	if err != nil {
		return err
	}
	if err := perRoute(route, faultFilter, fault); err != nil {
		return err
	}
	if len(conf.HTTP) > 1 {
		return errors.New("http: only the first item has an effect")
	}
	return nil
}

func faultOf(f *resources.Fault) (*faultv3.HTTPFault, error) {
	out := &faultv3.HTTPFault{}
	if a := f.Abort; a != nil {
		share, err := fraction(a.Percentage)
		if err != nil {
			return nil, fmt.Errorf("abort.percentage: %w", err)
		}
		if a.HTTPStatus == nil {
			return nil, errors.New("abort.httpStatus is missing")
		}
		out.Abort = &faultv3.FaultAbort{ErrorType: &faultv3.FaultAbort_HttpStatus{HttpStatus: *a.HTTPStatus},
			Percentage: share}
	}
	if d := f.Delay; d != nil {
		share, err := fraction(d.Percentage)
		if err != nil {
			return nil, fmt.Errorf("delay.percentage: %w", err)
		}
		value := optional(d.Value)
		if value == nil || *value < time.Nanosecond {
			return nil, errors.New("delay.value: want a duration of more than 0")
		}
		out.Delay = &commonv3.FaultDelay{
			FaultDelaySecifier: &commonv3.FaultDelay_FixedDelay{FixedDelay: durationpb.New(*value)}, Percentage: share,
		}
	}
	return out, bandwidthOf(f.ResponseBandwidth, out)
}

func bandwidthOf(b *resources.FaultBandwidth, out *faultv3.HTTPFault) error {
	if b == nil {
		return nil
	}
	share, err := fraction(b.Percentage)
	if err != nil {
		return fmt.Errorf("responseBandwidth.percentage: %w", err)
	}
	if b.Limit == nil {
		return errors.New("responseBandwidth.limit is missing")
	}
	bits, err := resources.ParseBandwidth(*b.Limit)
	if err != nil {
		return fmt.Errorf("responseBandwidth.limit: %w", err)
	}
	// Envoy counts whole KiB per second, at least one.
	out.ResponseRateLimit = &commonv3.FaultRateLimit{Percentage: share, LimitType: &commonv3.FaultRateLimit_FixedLimit_{
		FixedLimit: &commonv3.FaultRateLimit_FixedLimit{LimitKbps: uint64(max(1, math.Round(bits/8/1024)))},
	}}
	return nil
}

// fraction has four decimals of a percentage.
func fraction(raw json.RawMessage) (*typev3.FractionalPercent, error) {
	n, err := resources.ParsePercentage(raw)
	if err != nil {
		return nil, err
	}
	return &typev3.FractionalPercent{Numerator: uint32(math.Round(n * 10_000)),
		Denominator: typev3.FractionalPercent_MILLION}, nil
}
