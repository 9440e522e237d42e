// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"

	"k8s.io/client-go/rest"
)

// proxy stands between a controller and the API server and can act when an
// answer has been given.
type proxy struct {
	server *httptest.Server

	mu    sync.Mutex
	after func(*http.Request, int)
}

func newProxy(admin *rest.Config) (*proxy, error) {
	target, err := url.Parse(admin.Host)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the API server: %w", err)
	}
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(admin))
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	p := &proxy{}
	p.server = httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = "" },
		Transport:     transport,
		FlushInterval: -1, // watches
		ModifyResponse: func(response *http.Response) error {
			p.mu.Lock()
			after := p.after
			p.mu.Unlock()
			if after != nil {
				after(response.Request, response.StatusCode)
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	})
	return p, nil
}

// URL is where the proxy listens.
func (p *proxy) URL() string { return p.server.URL }

// onAnswer has a function called after each answer of the API server, before
// the controller sees it; nil ends that.
func (p *proxy) onAnswer(after func(*http.Request, int)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.after = after
}
