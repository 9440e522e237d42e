// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// freeAddress is an address on loopback that nothing listens on now.
func freeAddress(ctx context.Context) (string, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("finding a free address: %w", err)
	}
	address := listener.Addr().String()
	return address, listener.Close()
}

// Histogram reads a histogram that the process serves; nil if it has observed nothing.
func (p *Process) Histogram(ctx context.Context, name string) (*dto.Histogram, error) {
	family, err := p.metric(ctx, name)
	if family == nil || len(family.GetMetric()) == 0 {
		return nil, err
	}
	return family.GetMetric()[0].GetHistogram(), nil
}

// Sum reads a gauge that the process serves, and adds the values of all labels.
func (p *Process) Sum(ctx context.Context, name string) (float64, error) {
	family, err := p.metric(ctx, name)
	sum := 0.0
	for _, one := range family.GetMetric() {
		sum += one.GetGauge().GetValue()
	}
	return sum, err
}

// metric reads a metric that the process serves; nil if it has none.
func (p *Process) metric(ctx context.Context, name string) (*dto.MetricFamily, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.Metrics+"/metrics", nil)
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of %s: %w", p.Name, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of %s: %w", p.Name, err)
	}
	defer func() { _ = response.Body.Close() }()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of %s: %w", p.Name, err)
	}
	return families[name], nil
}
