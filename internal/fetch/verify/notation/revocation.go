// SPDX-License-Identifier: Apache-2.0

package notation

import (
	"io"
	"net/http"
	"time"

	"github.com/notaryproject/notation-core-go/revocation"
	"github.com/notaryproject/notation-core-go/revocation/crl"
	"github.com/notaryproject/notation-core-go/revocation/purpose"
	"github.com/notaryproject/notation-go/verifier"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// Limits on what is asked about revocations.
const (
	revocationTimeout = 10 * time.Second
	maxRevocations    = 8 << 20 // bytes of one list
)

// newRevocations returns the options to check certificates for revocation with the client; without one, checks fail.
func newRevocations(client *http.Client) (verifier.VerifierOptions, error) {
	bounded := &http.Client{Transport: noRequests{}, Timeout: revocationTimeout}
	if client != nil {
		bounded.Transport, bounded.CheckRedirect = boundedBodies{client.Transport}, client.CheckRedirect
	}
	lists, err := crl.NewHTTPFetcher(bounded)
	if err != nil {
		return verifier.VerifierOptions{}, err
	}
	options := revocation.Options{OCSPHTTPClient: bounded, CRLFetcher: lists, CertChainPurpose: purpose.CodeSigning}
	signing, err := revocation.NewWithOptions(options)
	if err != nil {
		return verifier.VerifierOptions{}, err
	}
	options.CertChainPurpose = purpose.Timestamping
	timestamping, err := revocation.NewWithOptions(options)
	return verifier.VerifierOptions{RevocationCodeSigningValidator: signing, RevocationTimestampingValidator: timestamping}, err
}

// noRequests refuses every request.
type noRequests struct{}

// RoundTrip implements http.RoundTripper.
func (noRequests) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, fetch.Errorf(fetch.Refused, "revocation is not checked")
}

// boundedBodies bounds answers, for libraries that read them whole.
type boundedBodies struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b boundedBodies) RoundTrip(request *http.Request) (*http.Response, error) {
	next := b.next
	if next == nil {
		return nil, fetch.Errorf(fetch.Refused, "the client has no transport of its own, so that nothing guards it")
	}
	response, err := next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{http.MaxBytesReader(nil, response.Body, maxRevocations), response.Body}
	return response, nil
}
