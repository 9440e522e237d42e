// SPDX-License-Identifier: Apache-2.0

// Package repeat sends requests to an API server again, in place, if it did not carry them out for a reason that passes. A step
// that needs hundreds of answers would never get all of them otherwise, as each of its attempts begins with the first.
package repeat

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// mostRepeats is how often one request is sent again, after pauses that double up to longestPause, and not after longest.
const (
	mostRepeats  = 7
	firstPause   = 50 * time.Millisecond
	longestPause = 400 * time.Millisecond
	longest      = 15 * time.Second
)

// budgets are those of the process, one an API server: a server that answers nothing in time gets little more load by repeated
// requests, and leaves the budgets of other servers alone.
var budgets = perHost{limiters: map[string]*rate.Limiter{}}

// mostHosts is how many servers have a budget of their own. Tenants name servers; the others share one.
const mostHosts = 1000

type perHost struct {
	mu       sync.Mutex
	limiters map[string]*rate.Limiter
}

// of returns the budget of a server.
func (p *perHost) of(host string) *rate.Limiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	limiter, known := p.limiters[host]
	if !known && len(p.limiters) >= mostHosts {
		host = ""
		limiter, known = p.limiters[host]
	}
	if !known {
		limiter = rate.NewLimiter(20, 400)
		p.limiters[host] = limiter
	}
	return limiter
}

// Wrap has all clients of a configuration repeat requests, with the budgets of the process.
func Wrap(config *rest.Config) {
	config.Wrap(Transport)
}

// Transport repeats requests with the budgets of the process.
func Transport(next http.RoundTripper) http.RoundTripper {
	return transport{next: next, budget: budgets.of}
}

type transport struct {
	next   http.RoundTripper
	budget func(host string) *rate.Limiter
}

// repeating marks the context of a request that another transport repeats.
type repeating struct{}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Context().Value(repeating{}) != nil {
		return t.next.RoundTrip(request)
	}
	request = request.WithContext(context.WithValue(request.Context(), repeating{}, true))
	began := time.Now()
	for try := range mostRepeats {
		response, err := t.next.RoundTrip(request)
		if !passes(response, err) || !repeatable(request) || time.Since(began) > longest || !t.budget(request.URL.Host).Allow() {
			return response, err
		}
		select {
		case <-request.Context().Done():
			return response, err
		case <-time.After(min(firstPause<<try, longestPause)):
		}
		if response != nil {
			_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<16))
			_ = response.Body.Close()
		}
		again := request.Clone(request.Context())
		if request.GetBody != nil {
			if again.Body, err = request.GetBody(); err != nil {
				return nil, err
			}
		}
		request = again
	}
	return t.next.RoundTrip(request)
}

// passes tells that the API server, or a proxy before it, may answer otherwise in a moment. An answer that says when is left to the
// library of the client, which waits for that.
func passes(response *http.Response, err error) bool {
	if err != nil {
		return utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err)
	}
	switch response.StatusCode {
	case http.StatusGatewayTimeout, http.StatusBadGateway:
		return true
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return response.Header.Get("Retry-After") == ""
	}
	return false
}

// repeatable tells whether a request may be carried out twice: it reads, or asks; it states all that it writes; or it names the
// object, not its name alone, that it deletes.
func repeatable(request *http.Request) bool {
	if request.Body != nil && request.Body != http.NoBody && request.GetBody == nil {
		return false
	}
	switch request.Method {
	case http.MethodGet, http.MethodHead:
		return !watches(request)
	case http.MethodPut:
		return true
	case http.MethodPatch:
		return request.Header.Get("Content-Type") != string(types.JSONPatchType)
	case http.MethodDelete:
		return conditional(request)
	case http.MethodPost:
		return request.URL.Query().Get("dryRun") == metav1.DryRunAll || strings.HasPrefix(request.URL.Path, "/apis/authorization.k8s.io/")
	}
	return false
}

func watches(request *http.Request) bool {
	asked := request.URL.Query().Get("watch")
	return asked != "" && asked != "false" && asked != "0"
}

// conditional tells whether a deletion is one of an object with a UID.
func conditional(request *http.Request) bool {
	if request.GetBody == nil {
		return false
	}
	body, err := request.GetBody()
	if err != nil {
		return false
	}
	content, err := io.ReadAll(io.LimitReader(body, 1<<16))
	var options metav1.DeleteOptions
	if err != nil || !bytes.HasPrefix(content, []byte("{")) || json.Unmarshal(content, &options) != nil {
		return false
	}
	return options.Preconditions != nil && options.Preconditions.UID != nil
}
