// SPDX-License-Identifier: Apache-2.0

package objecterror

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// F40: only an unreachable webhook blocks; a webhook that answers has decided.
func TestF40Uncalled(t *testing.T) {
	const post = `failed calling webhook "a.example.org": failed to call webhook: Post "https://a.b.svc:443/x?timeout=10s": `
	for text, tc := range map[string]struct {
		err  error
		want string
	}{
		"refused connection": {apierrors.NewInternalError(errors.New(post + "dial tcp 127.0.0.1:1: connect: connection refused")), "a.example.org"},
		"no service":         {apierrors.NewInternalError(errors.New(post + `service "a" not found`)), "a.example.org"},
		"no endpoints":       {apierrors.NewInternalError(errors.New(post + `no endpoints available for service "a"`)), "a.example.org"},
		"time-out":           {apierrors.NewInternalError(errors.New(post + "context deadline exceeded")), "a.example.org"},
		"an error of its own": {apierrors.NewInternalError(errors.New(
			`failed calling webhook "a.example.org": failed to call webhook: an error on the server ("oops") has prevented the request from succeeding`)), ""},
		"denied": {apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New(`admission webhook "a.example.org" denied the request: `+post)), ""},
		"other":  {errors.New(post), ""},
		"none":   {nil, ""},
	} {
		if got := uncalled(tc.err); got != tc.want {
			t.Errorf("%s: %q, want %q", text, got, tc.want)
		}
	}
}
