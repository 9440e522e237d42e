// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"io"
	"net/http"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
)

// mostRepeats is how often one request is sent again, after pauses that double.
const (
	mostRepeats = 4
	firstRepeat = 50 * time.Millisecond
)

// repeats is the budget of the process: an API server that answers nothing in time gets little more load by it.
var repeats = rate.NewLimiter(20, 400)

// repeatingTransport sends a request again at once if the API server, or a proxy before it, answers that it ran out of time, and
// the request can be repeated. A step that needs hundreds of answers would never get all of them otherwise, as each of its
// attempts begins with the first.
type repeatingTransport struct {
	next   http.RoundTripper
	budget *rate.Limiter
}

// RoundTrip implements http.RoundTripper.
func (t repeatingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	for try := range mostRepeats {
		response, err := t.next.RoundTrip(request)
		if err != nil || response.StatusCode != http.StatusGatewayTimeout || !repeatable(request) || !t.budget.Allow() {
			return response, err
		}
		select {
		case <-request.Context().Done():
			return response, nil
		case <-time.After(firstRepeat << try):
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<16))
		_ = response.Body.Close()
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

// repeatable tells whether a request may be sent twice: it reads, or it is a server-side apply, which has the same result.
func repeatable(request *http.Request) bool {
	switch request.Method {
	case http.MethodGet:
		return request.URL.Query().Get("watch") == ""
	case http.MethodPatch:
		return request.Header.Get("Content-Type") == string(types.ApplyPatchType) && (request.Body == nil || request.GetBody != nil)
	}
	return false
}
