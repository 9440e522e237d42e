// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// proxy stands between a controller and the API server and can act when an
// answer has been given.
type proxy struct {
	server *httptest.Server

	mu    sync.Mutex
	after func(*http.Request, int)
	first func(*http.Request)

	deaths atomic.Int32 // of controllers
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
	quiet := log.New(io.Discard, "", 0) // a killed controller leaves broken connections
	forward := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = "" },
		Transport:     transport,
		FlushInterval: -1, // watches
		ErrorLog:      quiet,
		ModifyResponse: func(response *http.Response) error {
			p.mu.Lock()
			after := p.after
			p.mu.Unlock()
			if after != nil {
				after(response.Request, response.StatusCode)
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if !p.before(request) {
			panic(http.ErrAbortHandler) // who asked was killed: it has asked for nothing
		}
		forward.ServeHTTP(w, request)
	}))
	p.server.Config.ErrorLog = quiet
	p.server.StartTLS()
	return p, nil
}

// cluster is how a kubeconfig reaches the proxy: over TLS, since client-go sends
// no token without.
func (p *proxy) cluster() *clientcmdapi.Cluster {
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	return &clientcmdapi.Cluster{Server: p.server.URL, CertificateAuthorityData: authority}
}

// onAnswer has a function called after each answer of the API server, before
// the controller sees it; nil ends that.
func (p *proxy) onAnswer(after func(*http.Request, int)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.after = after
}

// onRequest has a function called before each request is passed on; nil ends that. What
// is killed by it has not asked.
func (p *proxy) onRequest(first func(*http.Request)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.first = first
}

// before calls the function, and tells whether who asked still waits.
func (p *proxy) before(request *http.Request) bool {
	p.mu.Lock()
	first := p.first
	p.mu.Unlock()
	if first == nil || request.Method == http.MethodGet {
		return true
	}
	died := p.deaths.Load()
	first(request)
	return p.deaths.Load() == died
}
