// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

// ClientOptions say how artifact servers are reached.
type ClientOptions struct {
	// ServerURLs are those of our own stores, the only ones that TokenFile and CAFile are for.
	ServerURLs []string
	// TokenFile holds the token that they ask for; "" for none.
	TokenFile string
	// CAFile holds the authorities, in PEM, that certificates of https servers are trusted by; "" for those of the system.
	CAFile string
}

const (
	dialTimeout   = 10 * time.Second
	answerTimeout = 30 * time.Second
)

// NewClient returns a client for a Loader: no proxy, and timeouts for all steps that must be quick. Both files are read
// again when they are needed, so that they can be replaced at any time; that they exist and are valid is checked now.
func NewClient(o ClientOptions) (*http.Client, error) {
	transport := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second,
		TLSHandshakeTimeout: dialTimeout, ResponseHeaderTimeout: answerTimeout,
	}
	if o.CAFile != "" {
		if _, err := authorities(o.CAFile); err != nil {
			return nil, err
		}
		transport.DialTLSContext = dialTrusting(o.CAFile)
	}
	if o.TokenFile == "" {
		return &http.Client{Transport: transport}, nil
	}
	bearer, err := BearerFromFile(transport, o.TokenFile, o.ServerURLs)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: bearer}, nil
}

// dialTrusting opens connections to servers with certificates of the authorities in a file, which is read for each connection.
func dialTrusting(file string) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		roots, err := authorities(file)
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(ctx, 2*dialTimeout)
		defer cancel()
		dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: dialTimeout}, Config: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
		return dialer.DialContext(ctx, network, addr)
	}
}

func authorities(file string) (*x509.CertPool, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the authorities of artifact servers: %w: check --artifact-ca-file", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("the file %s has no certificate in PEM: check --artifact-ca-file", file)
	}
	return pool, nil
}
